"""`benchmarks/far.py` and its gases: what is solved, how errors and statistics are counted, and a run of each kind."""

import warnings

import pytest
import torch

import far
import foreign_problems
from gas_problems import GASES, Euler, Gas, until


def small(length=5.0, points=64):
    return Euler(length, points)


def test_a_gas_at_rest_stays_and_sound_travels_at_its_speed():
    problem = until(small(points=512), 0.5)
    x = problem.axes()[0]
    wave = 1e-4 * torch.sin(2 * torch.pi * x / 5.0)
    # A simple wave to the right: its density, pressure and velocity rise together.
    speed = problem.gamma**0.5
    start = torch.stack((1 + wave, 1 + problem.gamma * wave, speed * wave))[None]
    found = problem.solve(start, {})[0, -1]
    moved = 1 + 1e-4 * torch.sin(2 * torch.pi * (x - 0.5 * speed) / 5.0)
    assert (found[0] - moved).abs().max() < 5e-6
    still = torch.tensor([1.2, 0.9, 0.0]).reshape(1, 3, 1).expand(1, 3, 512).double()
    torch.testing.assert_close(problem.solve(still, {})[0, -1].double(), still[0])


def test_mass_momentum_and_energy_are_kept():
    problem = small()
    start, params = problem.draw(3, 0, "cpu")
    u = problem.solve(start, params).double()
    total = problem.conserved(u.movedim(1, 0).flatten(0, 1)).mean(dim=-1).unflatten(0, (problem.frames, 3))
    torch.testing.assert_close(total, total[:1].expand_as(total), rtol=1e-5, atol=1e-6)


def test_longer_trajectories_begin_as_shorter_ones():
    short, long = small(), until(small(), 3.0)
    assert (long.frames, long.horizon) == (31, 3.0)
    start, params = short.draw(2, 0, "cpu")
    torch.testing.assert_close(long.solve(start, params)[:, :16], short.solve(start, params), rtol=1e-3, atol=1e-4)


def test_states_have_the_strength_that_is_asked_for():
    start, _ = small(points=256).draw(50, 0, "cpu")
    density, pressure, velocity = start.unbind(dim=1)
    assert float((density - 1).square().mean().sqrt()) == pytest.approx(0.15)
    assert float((pressure - 1).square().mean().sqrt()) == pytest.approx(0.10)
    assert 0.05 < float(velocity.square().mean(dim=-1).sqrt().min()) / 1.4**0.5 < 0.15


def test_waves_of_the_coarse_grid_are_kept_and_finer_ones_left_out():
    gas, fine = Gas(), torch.arange(128) / 128
    low, high = torch.cos(2 * torch.pi * 5 * fine), torch.cos(2 * torch.pi * 40 * fine)
    found = gas.coarsen((low + high)[:, None] * low[None])
    torch.testing.assert_close(found, low[::2, None] * low[None, ::2], rtol=0.0, atol=1e-5)


def test_errors_count_velocities_together():
    truth = torch.ones(2, 3, 4, 4, 4)
    wrong = truth.clone()
    wrong[..., 2] += 0.3
    found = far.relative(wrong, truth, Gas.channels)
    assert found == pytest.approx({"density": 0.0, "pressure": 0.0, "velocity": 0.3 / 2**0.5, "mean": 0.1 / 2**0.5})


def test_statistics_are_nothing_for_the_same_and_half_for_half_the_energy():
    truth = torch.randn(4, 20, 32, 1, generator=torch.Generator().manual_seed(0))
    assert far.statistics(truth, truth) == {"spectrum": 0.0, "distribution": 0.0}
    found = far.statistics(0.5**0.5 * truth, truth)
    assert found["spectrum"] == pytest.approx(0.5, abs=1e-5)
    assert 0.05 < found["distribution"] < 0.3
    assert far.statistics(truth + 100, truth)["distribution"] == pytest.approx(1.0, abs=0.01)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setitem(GASES, "euler_5", small(points=32))
    monkeypatch.setattr(far, "GASES_END", 2.0)
    monkeypatch.setattr(far, "LONG", 24)
    monkeypatch.setattr(far, "LONGEST", 30)
    monkeypatch.setattr(far, "LONG_SAMPLES", 2)
    monkeypatch.setattr(foreign_problems.PROBLEMS["ks"], "spin_up", 5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def test_a_gas_is_learnt_and_asked_for_longer(quick):
    found = far.beyond("euler_5", "vcnef", 0.02, 0, "cpu", samples=12)
    assert found["window"]["frames"] >= 1
    assert 0 < found["trained to"]["mean"] < 10
    assert set(found["all"]) == {"density", "pressure", "velocity", "mean"}


def test_a_chaotic_problem_is_continued(quick):
    found = far.continued("ks", "vcnef", 0.02, 0, "cpu", samples=12)
    assert found["answer"]["spectrum"] > 0
    assert 0 < found["truth"]["distribution"] < 1
    assert found["largest after a thousand windows"] > 0
