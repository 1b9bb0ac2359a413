"""The driver: samples do not see each other, output times are met, blown-up runs end, compiled steps are the same."""

import subprocess
import sys

import pytest
import torch

from vcnef.pde import equation, stepping
from vcnef.pde.gas import SplitGas

SMALL = {"advection": 64, "burgers": 64, "cns1d": 64, "cns2d": 16, "cns3d": 8}


def case(name, samples=6, **options):
    chosen = equation(name)
    return chosen, chosen.initial_states(range(samples), seed=2, resolution=SMALL[name], **options)


@pytest.mark.parametrize("name", ["burgers", "cns1d", "cns2d"])
def test_a_sample_does_not_depend_on_its_batch(name, monkeypatch):
    chosen, u0 = case(name)
    together = chosen.solve(u0, [0.0, 0.02, 0.05])
    monkeypatch.setitem(stepping.GROUP_CELLS, "cpu", 2 * u0[0, ..., 0].numel())
    assert torch.equal(chosen.solve(u0, [0.0, 0.02, 0.05]), together)  # sorted into three groups of two
    assert torch.equal(chosen.solve(u0[3:4], [0.0, 0.02, 0.05]), together[3:4])


def test_time_zero_is_the_initial_state_and_extra_output_times_hardly_matter():
    chosen, u0 = case("cns1d", dtype=torch.float64)
    few, many = chosen.solve(u0, [0.0, 0.1]), chosen.solve(u0, [0.0, 0.013, 0.04, 0.1])
    assert torch.equal(few[:, 0], u0)
    assert ((few[:, 1] - many[:, 3]).norm(dim=1) / few[:, 1].norm(dim=1)).max() < 2e-3


def test_many_small_steps_take_as_long_as_they_should():
    class Counting:
        """Its state is the number of steps that have been taken, which single precision holds."""

        def limit(self, state):
            return torch.full_like(state[0][:, 0], 1.3e-4)

        def step(self, state, dt):
            return (state[0] + 1.0,)

    u = stepping.integrate(lambda p: Counting(), torch.zeros(1, 4, 1), [1.9], [])
    # A clock of single precision is there after 14613.
    assert u.flatten().tolist() == [14616.0] * 4


def test_a_run_that_blows_up_ends_and_leaves_the_others_alone():
    chosen, u0 = case("cns2d")
    healthy = chosen.solve(u0, [0.02, 0.05])
    u0[1, 3, 3, 0] = -0.1
    u = chosen.solve(u0, [0.02, 0.05])
    assert not torch.isfinite(u[1]).all()
    rest = [0, 2, 3, 4, 5]
    assert torch.equal(u[rest], healthy[rest])


def test_a_run_that_blew_up_costs_the_others_no_substeps(monkeypatch):
    taken, substep = [], SplitGas.substep
    monkeypatch.setattr(SplitGas, "substep", lambda gas, state, dt: taken.append(1) or substep(gas, state, dt))
    chosen, u0 = case("cns1d")
    counts = []
    for density in (float(u0[1, 3, 0]), -0.1):
        u0[1, 3, 0] = density
        chosen.solve(u0, [0.02, 0.05], {"eta": 0.1, "zeta": 0.1})
        counts.append(len(taken))
        taken.clear()
    assert counts[1] <= counts[0]


def test_a_run_of_infinite_speed_is_given_up():
    u0 = torch.tensor([1e-30, 1e30, 0.0]).expand(1, 8, 3).clone()  # the speed of sound is beyond single precision
    assert torch.isnan(equation("cns1d").solve(u0, [0.1])).all()


def test_a_run_whose_steps_collapse_is_given_up():
    class Collapsing:
        def limit(self, state):
            return 0.1 * torch.exp(-state[0][:, 0])

        def step(self, state, dt):
            return (state[0] + 10.0 * dt[:, None] / dt[:, None],)

    u = stepping.integrate(lambda p: Collapsing(), torch.zeros(1, 4, 1), [0.01, 1.0], [])
    assert torch.isfinite(u[:, 0]).all()
    assert torch.isnan(u[:, 1]).all()


COMPARISON = """
import sys, torch
from vcnef.pde import equation
name, resolution, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
chosen = equation(name)
u0, moved = (
    chosen.initial_states(range(6), seed=2, resolution=resolution, dtype=torch.float64, device=where)
    for where in ("cpu", device)
)
torch.testing.assert_close(moved.cpu(), u0, atol=1e-12, rtol=1e-12)
params = {"nu": torch.tensor([0.001, 1.0] * 3)} if name == "burgers" else None  # explicit and exponential
plain = chosen.solve(u0, [0.0, 0.01, 0.03], params, compiled=False)
fused = chosen.solve(moved, [0.0, 0.01, 0.03], params, compiled=True)
torch.testing.assert_close(fused.cpu(), plain, atol=1e-9, rtol=1e-9)
"""


def compare(name, device):
    """In a fresh interpreter: the hook that checks shapes in tests would hide the functions from the compiler."""
    subprocess.run([sys.executable, "-c", COMPARISON, name, str(SMALL[name]), device], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["burgers", "cns2d"])
def test_compiled_steps_agree_with_plain_ones(name):
    compare(name, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["advection", "burgers", "cns1d", "cns2d", "cns3d"])
def test_compiled_steps_on_cuda_agree_with_plain_ones_on_the_cpu(name):
    compare(name, "cuda")
