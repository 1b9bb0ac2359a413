"""`benchmarks/foreign_problems.py`: solutions that are converged, that keep what they should keep, and that move."""

import math

import pytest
import torch

import foreign_problems
import vcnef
from foreign_problems import ETDRK4, PROBLEMS, Waves

CHAOTIC = ("ks", "ks_wide", "kolmogorov")
NAMES = list(PROBLEMS)
ONE_CHANNEL = {"ks", "ks_wide", "kdv", "kolmogorov", "forced", "decaying"}  # whose mean does not change


@pytest.fixture(scope="module")
def made():
    """Three samples of each problem, made once."""
    return {name: foreign_problems.make(name, samples=3, seed=1) for name in NAMES}


def relative(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Of each sample, how far it is from what is expected, by that one's norm."""
    return (found - expected).flatten(1).norm(dim=1) / expected.flatten(1).norm(dim=1)


@pytest.mark.parametrize("name", NAMES)
def test_steps_of_half_the_length_change_nothing_that_matters(name):
    problem = PROBLEMS[name]
    start, params = problem.draw(2, seed=2, device="cpu")
    last, finer = (problem.solve(start, params, refine=refine)[:, -1] for refine in (1, 2))
    assert relative(last, finer).max() < (1e-3 if name in CHAOTIC else 1e-4)


def test_etdrk4_is_of_fourth_order_and_exact_in_its_linear_part():
    rates = torch.tensor([0.0, -1e-3, -1.0, -30.0], dtype=torch.float64)
    start = torch.full((4,), 0.5, dtype=torch.float64)
    exact = start * torch.exp(rates)
    assert torch.allclose(ETDRK4(rates, torch.zeros_like, 1.0)(start), exact, atol=1e-14)

    # u' = rate u - u^2 is solved by u = rate / (1 + c exp(-rate t)).
    rate = torch.tensor([-2.0], dtype=torch.float64)
    solution = rate / (1 + (rate / 0.5 - 1) * torch.exp(-rate))
    errors = []
    for steps in (10, 20):
        advance = ETDRK4(rate, lambda u: -u.square(), 1 / steps)
        u = start[:1]
        for _ in range(steps):
            u = advance(u)
        errors.append(float((u - solution).abs()))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.3)


def test_products_do_not_alias():
    waves = Waves((16, 16), (2 * math.pi, 2 * math.pi))
    x = torch.arange(16, dtype=torch.float64) * (2 * math.pi / 16)
    field = (torch.cos(7 * x)[:, None] * torch.cos(2 * x)).reshape(1, 1, 16, 16)
    square = waves.to_points(waves.to_spectrum(waves.to_finer_points(waves.to_spectrum(field)).square()))
    # cos^2(7 x) = (1 + cos(14 x)) / 2, and the grid holds no wave of number 14, which would look like number 2.
    expected = (0.5 * torch.cos(2 * x).square()).expand(16, 16)
    assert torch.allclose(square[0, 0], expected, atol=1e-12)


@pytest.mark.parametrize("name", sorted(ONE_CHANNEL))
def test_the_mean_stays_zero(made, name):
    assert made[name].u.double().flatten(2).mean(dim=2).abs().max() < 1e-6


def test_shear_flow_keeps_its_mean_vorticity_and_its_tracer(made):
    mean = made["shear_flow"].u.double().flatten(2, 3).mean(dim=2)
    assert torch.allclose(mean, mean[:, :1].expand_as(mean), atol=1e-6)


def test_kdv_keeps_its_energy(made):
    energy = made["kdv"].u.double().square().sum(dim=(2, 3))
    assert torch.allclose(energy, energy[:, :1].expand_as(energy), rtol=1e-5)


def test_kdv_carries_a_soliton_along():
    problem = PROBLEMS["kdv"]
    speed, x = 4.0, problem.axes()[0]
    start, expected = (speed / 2 / torch.cosh(math.sqrt(speed) / 2 * (x - c)) ** 2 for c in (6.0, 6.0 + speed * 2.0))
    found = problem.solve(start[None, None], {})[:, -1]
    assert relative(found, expected[None, None]).max() < 1e-4


def test_fisher_kpp_stays_between_0_and_1(made):
    u = made["fisher_kpp"].u
    assert u.min() > -1e-5
    assert u.max() < 1 + 1e-5


def test_vorticity_without_forcing_fades(made):
    enstrophy = made["decaying"].u.square().flatten(2).sum(dim=2)
    assert (enstrophy.diff(dim=1) < 0).all()


def test_a_laminar_kolmogorov_flow_is_at_rest():
    problem = PROBLEMS["kolmogorov"]
    nu = torch.tensor([0.01], dtype=torch.float64)
    y = problem.axes()[1]
    laminar = (-4 * torch.cos(4 * y) / (16 * nu + 0.1)).expand(1, 1, 64, 64)
    found = problem.follow(laminar, {"nu": nu}, frames=1, steps=20, dt=0.005)
    assert relative(found[:, -1], laminar).max() < 1e-10


def test_heat_between_walls_is_the_exact_series():
    problem = PROBLEMS["heat_walls"]
    start, params = torch.zeros(2, 1, problem.sines), {"k": torch.tensor([0.005, 0.05])}
    start[:, 0, 0] = 1.0
    u = problem.solve(start.double(), {"k": params["k"].double()})
    t, x = problem.times(), problem.axes()[0]
    decay = torch.exp(-params["k"][:, None] * math.pi**2 * t)
    assert torch.allclose(u[:, :, 0].double(), decay[..., None] * torch.sin(math.pi * x), atol=1e-6)


def test_heat_between_walls_obeys_its_equation(made):
    data = made["heat_walls"]
    u, k = data.u[..., 0].double(), data.params["k"].double()
    assert not u[..., [0, -1]].any()
    in_time = (u[:, 2:, 1:-1] - u[:, :-2, 1:-1]) / (2 * float(data.t[1]))
    in_space = (u[..., 2:] - 2 * u[..., 1:-1] + u[..., :-2]) * 100**2
    assert relative(in_time, k[:, None, None] * in_space[:, 1:-1]).max() < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_names_are_those_that_the_package_takes(made, name):
    data, problem = made[name], PROBLEMS[name]
    assert data.u.shape == (3, problem.frames, *problem.points, len(problem.channels))
    tensors = (data.u, data.t, *data.x, *data.params.values())
    assert {tensor.dtype for tensor in tensors} == {torch.float32}
    assert data.t[-1] == problem.horizon
    found = vcnef.from_arrays(
        data.u, t=data.t, x=data.x, params=data.params, channels=data.channels, periodic=data.periodic
    )
    assert found.problem.ndim == len(problem.points)
    assert found.problem.channels == problem.channels
    assert found.problem.parameters == tuple(data.params)
    assert found.problem.periodic == (name != "heat_walls")


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_moves(made, name):
    u = made[name].u
    assert relative(u[:, -1], u[:, 0]).min() > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_gives_other_states_and_parameters(name):
    (start, params), (again, same), (other, others) = (PROBLEMS[name].draw(1, seed, "cpu") for seed in (1, 1, 2))
    assert torch.equal(again, start)
    assert relative(other, start).min() > 0.1
    for key in params:
        assert torch.equal(same[key], params[key])
        assert not torch.equal(others[key], params[key])


def test_a_seed_gives_the_same_data(made):
    for name in ("kdv", "swift_hohenberg"):
        assert torch.equal(foreign_problems.make(name, samples=3, seed=1).u, made[name].u)


def test_samples_are_the_same_in_parts(made, monkeypatch):
    monkeypatch.setattr(foreign_problems, "POINTS_AT_ONCE", {"cpu": 1})
    again = foreign_problems.make("fisher_kpp", samples=3, seed=1)
    assert torch.allclose(again.u, made["fisher_kpp"].u, atol=1e-6)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="name is 'heat'; expected one of ks, ks_wide"):
        foreign_problems.make("heat")
