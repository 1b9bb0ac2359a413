"""Equations that depend on the time itself: windows that are told when they begin."""

import os
import signal

import pytest
import torch
import xarray as xr

import vcnef
from vcnef.data import Batches, Queries
from vcnef.data.conditions import HARMONICS
from vcnef.data.windows import length_of
from vcnef.models.interface import TrajectoryModel
from vcnef.surrogate import Surrogate
from vcnef.surrogate.export import OnGrid
from vcnef.training import Recipe, Stopped
from vcnef.training import fit as train
from vcnef.training.job import default_objective
from vcnef.training.losses import mean_square
from vcnef.training.windows import Windows

FIRST, LAST, RATE = 1.0, 3.0, 4.0
UNEVEN = [1.0, 1.1, 1.3, 1.35, 1.6, 1.7, 2.0, 2.4, 2.5, 3.0]
TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": ()}


def driven(u0, begin, t):
    """The solution of ∂u/∂t = RATE cos(RATE t) at times `t` since `begin`: both `b t` or of sizes that broadcast."""
    change = torch.sin(RATE * (begin + t)) - torch.sin(RATE * begin)
    return u0.unsqueeze(1) + change[..., None, None]


class Driven(TrajectoryModel):
    """Its exact flow map, which knows of the time what it is told; `window` is the network's time 1."""

    ndim, channels, params = 1, 1, 1 + 2 * HARMONICS

    def __init__(self, window):
        super().__init__()
        self.window, self.strength, self.told = window, torch.nn.Parameter(torch.ones(())), []

    def encode(self, u0, grid, params=None):
        self.told.append(params)
        return u0, params[:, :1]

    def query(self, latent, t):
        u0, told = latent
        begin = FIRST + (told + 1) / 2 * (LAST - FIRST)
        u = driven(u0, begin, self.window * (t if t.ndim == 2 else t.unsqueeze(0)))
        return u0.unsqueeze(1) + self.strength * (u - u0.unsqueeze(1))


def driven_data(times=None, samples=8):
    t = torch.linspace(FIRST, LAST, 11) if times is None else torch.tensor(times)
    u0 = torch.rand(samples, 4, 1, generator=torch.Generator().manual_seed(0))
    return vcnef.from_arrays(driven(u0, t[:1], (t - t[0]).expand(samples, -1)).numpy(), t=t.numpy())


def surrogate_of(data, frames=2, **options):
    window = length_of(data.t, frames)
    return Surrogate.build("vcnef", TINY | options, data, window=window, explicit_time=True, normalise=False, seed=0)


@pytest.fixture
def exact():
    """A surrogate whose network is the exact flow map."""
    surrogate = surrogate_of(driven_data())
    surrogate.model = Driven(surrogate.window)
    return surrogate


def objective_and_batch(times, *, pushes=2, chain=2, semigroup=1.0):
    data = driven_data(times, samples=64)
    surrogate = surrogate_of(data)
    queries = Queries(window=2, pushes=pushes, chain=chain)
    batch = next(iter(Batches(data, 64, queries=queries, scaling=surrogate.scaling)))
    options = {"chain": chain, "semigroup": semigroup, "columns": surrogate.scaling.columns}
    return Windows(mean_square, 2, pushes, times is None, **options), batch, Driven(surrogate.window)


@pytest.mark.parametrize("progress", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("times", [None, UNEVEN])
def test_each_window_of_training_is_told_when_it_begins(times, progress):
    objective, batch, model = objective_and_batch(times)
    assert objective(model, batch, progress).item() < 1e-10
    model.strength.data.mul_(0.5)
    assert objective(model, batch, progress).item() > 1e-3


def test_the_network_sees_the_time_between_minus_one_and_one_and_its_harmonics():
    objective, batch, model = objective_and_batch(None, pushes=0, chain=1, semigroup=0.0)
    objective(model, batch, 0.05)
    (told,) = model.told
    assert told.shape == (64, 17)
    assert (told[:, 0].min(), told[:, 0].max()) == (-1.0, pytest.approx(0.6))
    torch.testing.assert_close(told[:, 1], torch.sin(torch.pi * (told[:, 0] + 1)))
    torch.testing.assert_close(told[:, 16], torch.cos(8 * torch.pi * (told[:, 0] + 1)), atol=1e-5, rtol=0)


def test_a_step_launches_the_same_for_any_draw():
    objective, batch, model = objective_and_batch(None)
    counts = []
    for _ in range(4):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            objective(model, batch, 0.9)
        counts.append({each.key: each.count for each in profile.key_averages()})
    assert all(each == counts[0] for each in counts)


def test_an_answer_composes_windows_that_each_know_their_beginning(exact):
    u0, t = torch.rand(3, 4, 1), torch.tensor([0.1, 0.4, 0.5, 1.9, 2.0])
    expected = driven(u0, torch.tensor([FIRST]), t.expand(3, -1))
    torch.testing.assert_close(exact.answer(u0, exact_grid(exact), t, torch.zeros(3, 0)), expected)
    torch.testing.assert_close(torch.from_numpy(exact.predict(u0, t=t).values), expected)
    # From another time, from one for each sample, and at times of their own.
    starts = torch.tensor([1.3, 1.0, 2.2])
    later = exact.predict(u0, t=[0.1, 0.7], start=1.3)
    torch.testing.assert_close(
        torch.from_numpy(later.values), driven(u0, starts[:1], torch.tensor([0.1, 0.7]).expand(3, -1))
    )
    own = torch.tensor([[0.1, 0.9], [0.4, 1.2], [0.7, 0.8]])
    found = exact.answer(u0, exact_grid(exact), own, torch.zeros(3, 0), start=starts)
    torch.testing.assert_close(found, driven(u0, starts[:, None], own))


def exact_grid(surrogate):
    return torch.linspace(0.125, 0.875, 4).unsqueeze(-1)


def test_an_exported_module_takes_the_start_as_an_input(exact):
    u0, t, start = torch.rand(2, 4, 1), torch.tensor([1.1, 0.1, 0.4, 0.0]), torch.tensor([1.0, 1.7])
    found = OnGrid(exact, exact_grid(exact))(u0, t, None, start)
    torch.testing.assert_close(found, driven(u0, start[:, None], t.expand(2, -1)))


def test_evaluation_begins_with_the_first_time_of_the_data(exact):
    data = driven_data()
    found = vcnef.evaluate(exact, data, split="all")
    assert found.result.scores["overall"]["nrmse"] < 1e-5
    later = data.view()
    cut = vcnef.from_arrays(later.u[:, 4:].numpy(), t=later.t[4:].numpy())
    assert vcnef.evaluate(exact, cut, split="all").result.scores["overall"]["nrmse"] < 1e-5


def test_times_that_training_did_not_have_are_doubted(exact):
    u0 = torch.rand(2, 4, 1) * 0.5 + 0.2
    with pytest.warns(UserWarning, match=r"clock of the data goes from 2\.5 to 3\.1 in this answer; the surrogate was"):
        exact.predict(u0, t=[0.6], start=2.5)
    with pytest.warns(UserWarning, match=r"goes from 0\.5 to 1 in this answer; the surrogate was trained on 1 to 3"):
        exact.predict(u0, t=[0.5], start=0.5)


def test_a_label_of_u0_that_says_another_time_is_asked_about(exact):
    u = xr.DataArray(driven_data().u[:2].numpy(), dims=("sample", "t", "x", "channel"), coords={"t": driven_data().t})
    expected = exact.predict(u.isel(t=0).values, t=[0.5]).values
    assert (exact.predict(u.isel(t=0), t=[0.5]).values == expected).all()
    with pytest.raises(
        ValueError, match=r"u0 is labelled t = 1\.4, .* Give start=1\.4, if that is what the label says"
    ):
        exact.predict(u.isel(t=2), t=[0.5])
    exact.predict(u.isel(t=2), t=[0.5], start=1.4)


def test_a_start_that_says_nothing_is_refused(exact):
    with pytest.raises(ValueError, match="expected one finite time, or 3, one for each initial state"):
        exact.predict(torch.rand(3, 4, 1), t=[0.5], start=[1.0, 2.0])
    plain = Surrogate.build("vcnef", TINY, driven_data(), window=0.4, seed=0)
    with pytest.raises(ValueError, match=r"start is 0\.3, but this surrogate knows no absolute time"):
        plain.predict(torch.rand(3, 4, 1), t=[0.5], start=0.3)


def test_windows_are_needed(tmp_path):
    data = driven_data()
    with pytest.raises(ValueError, match="explicit_time is true, but window is direct: such an answer begins with the"):
        vcnef.fit(data, out=tmp_path / "run", epochs=1, explicit_time=True, window="direct")
    with pytest.raises(ValueError, match="explicit_time is true, but there are no windows: a direct answer begins"):
        Surrogate.build("vcnef", TINY, data, explicit_time=True)


FEW = {"epochs": 8, "validate_every": 8, "batch": 32, "window": 0.1, "pushes": 0, "learning_rate": 0.02, "ema": None}
SMALL = {"width": 8, "heads": 2, "depth": 0, "modulations": 1, "patches": [], "modes": 1, "local": 0, "pace": 1}


@pytest.fixture(scope="module")
def forced():
    """Waves at rest that an oscillating force lifts and lowers."""
    generator = torch.Generator().manual_seed(0)
    t, x = torch.linspace(0, 1, 11)[:, None], 2 * torch.pi * torch.arange(4) / 4
    phase, size, level = torch.rand(3, 24, 1, 1, generator=generator)
    u = (0.2 + 0.2 * size) * torch.sin(x + 6.3 * phase) + level + torch.sin(12.0 * t)
    return vcnef.from_arrays(u[..., None].numpy(), t=t[:, 0].numpy(), x=x.numpy())


def test_what_is_told_the_time_learns_a_force_and_what_is_not_does_not(forced, tmp_path):
    runs = {}
    for told in (False, True):
        options = {"preset": "own/windows1d", "quiet": True, "explicit_time": told}
        runs[told] = vcnef.fit(forced, out=tmp_path / str(told), **options, **FEW, **SMALL)
    assert runs[True].best < 0.3
    assert runs[False].best > 5 * runs[True].best
    loaded = vcnef.load(tmp_path / "True")
    assert loaded.scaling.explicit_time == (0.0, 1.0)
    u0 = forced.u[:2, 0]
    assert (loaded.predict(u0, t=[0.3, 1.0]).values == runs[True].surrogate.predict(u0, t=[0.3, 1.0]).values).all()
    # The force at u0 is another one at another time.
    there, then = (loaded.predict(u0, t=[0.2], start=start).values for start in (0.0, 0.4))
    assert abs(there - then).mean() > 0.5


def test_a_run_that_was_stopped_goes_on_bit_by_bit(forced, tmp_path, monkeypatch):
    def run(name, *, last=None, resume=False):
        surrogate = Surrogate.build("vcnef", TINY, forced, window=0.1, explicit_time=True, seed=0)
        recipe = Recipe(epochs=1, batch=6, semigroup=0.1, input_noise=0.01, ema=0.9)
        queries, left = Queries(window=1, pushes=2, chain=2), [last]
        usual = default_objective(recipe, surrogate, queries, forced.t)

        def objective(model, batch, progress):
            if left[0] is not None:
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGTERM)
            return usual(model, batch, progress)

        monkeypatch.setattr("vcnef.training.job.default_objective", lambda *_: objective)
        return train(surrogate, forced, None, recipe, out=tmp_path / name, queries=queries, devices="cpu",
                     resume=resume)  # fmt: skip

    whole = run("whole")
    with pytest.raises(Stopped):
        run("parts", last=23)
    parts = run("parts", resume=True)
    assert len(parts.history) == len(whole.history)
    for name, weight in whole.surrogate.model.state_dict().items():
        assert torch.equal(weight, parts.surrogate.model.state_dict()[name]), name
