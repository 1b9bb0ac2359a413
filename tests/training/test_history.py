"""Fields that one frame does not determine: windows that begin with several."""

import numpy as np
import pytest
import torch
import xarray as xr

import vcnef
from vcnef.data import Batches, Queries
from vcnef.data.history import as_channels, go_on
from vcnef.models.interface import TrajectoryModel
from vcnef.surrogate import Surrogate
from vcnef.training import Recipe
from vcnef.training.job import default_objective
from vcnef.training.losses import mean_square
from vcnef.training.objectives import data_objective
from vcnef.training.windows import Windows

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": ()}
GAP, RATE = 0.1, 3.0
T = GAP * np.arange(21)


def swinging(samples=8, t=T):
    """∂²u/∂t² = −RATE² u, of which the velocity is hidden: two frames determine what follows."""
    generator = np.random.default_rng(0)
    size, phase = generator.uniform(0.5, 1, (samples, 1, 4)), generator.uniform(0, 6.28, (samples, 1, 4))
    return vcnef.from_arrays((size * np.sin(RATE * t[:, None] + phase))[..., None], t=t)


class Swing(TrajectoryModel):
    """The exact flow map from the first and the last of `history` frames; `window` is the network's time 1."""

    ndim, channels, params = 1, 1, 0

    def __init__(self, window, history):
        super().__init__()
        self.window, self.history = window, history
        self.strength, self.asked = torch.nn.Parameter(torch.ones(())), []

    def encode(self, u0, grid, params=None):
        self.asked.append(u0)
        return u0

    def query(self, latent, t):
        old, new = latent[..., :1].unsqueeze(1), latent[..., -1:].unsqueeze(1)
        past = torch.tensor(RATE * GAP * (self.history - 1))
        angle = (RATE * self.window * (t if t.ndim == 2 else t.unsqueeze(0)))[..., None, None]
        slope = (new * torch.cos(past) - old) / torch.sin(past)
        return new + self.strength * (new * (torch.cos(angle) - 1) + slope * torch.sin(angle))


def surrogate_of(data, frames, history):
    options = TINY | {"history": history}
    return Surrogate.build("vcnef", options, data, window=frames * GAP, normalise=False, seed=0)


def exact(frames, history):
    surrogate = surrogate_of(swinging(), frames, history)
    surrogate.model = Swing(surrogate.window, history)
    return surrogate


def test_a_history_goes_on_with_the_frames_that_follow():
    frames = torch.arange(7.0).view(1, 7, 1, 1)
    assert go_on(frames[:, :4], frames[:, 4:6]).flatten().tolist() == [2, 3, 4, 5]
    assert go_on(frames[:, :2], frames[:, 2:7]).flatten().tolist() == [5, 6]
    assert as_channels(torch.arange(12.0).view(1, 3, 2, 2)).tolist() == [[[0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]]]


@pytest.mark.parametrize("progress", [0.05, 0.5, 0.9])
@pytest.mark.parametrize(("frames", "history"), [(1, 2), (1, 4), (3, 2), (2, 4), (2, 3)])
def test_windows_of_training_begin_with_histories(frames, history, progress):
    data = swinging(64)
    queries = Queries(window=frames, pushes=2, chain=2, history=history)
    scaling = surrogate_of(data, frames, history).scaling
    batch = next(iter(Batches(data, 64, queries=queries, scaling=scaling)))
    objective = Windows(mean_square, frames, 2, True, chain=2, history=history)
    model = Swing(frames * GAP, history)
    assert objective(model, batch, progress).item() < 1e-8
    assert {u0.shape[1:] for u0 in model.asked} == {(4, history)}
    model.strength.data.mul_(0.5)
    assert objective(model, batch, progress).item() > 1e-4


def test_no_window_that_is_learnt_from_lacks_a_frame():
    """Pushed windows may lie before the first frame; then nothing is pushed."""
    data, history = swinging(64, T[:8]), 3
    queries = Queries(window=2, pushes=2, history=history)
    scaling = surrogate_of(data, 2, history).scaling
    for seed in range(3):
        batch = next(iter(Batches(data, 64, queries=queries, scaling=scaling, seed=seed)))
        loss = Windows(mean_square, 2, 2, True, history=history)(Swing(2 * GAP, history), batch, 0.5)
        assert loss.item() < 1e-8


@pytest.mark.parametrize(("frames", "history"), [(1, 2), (1, 4), (3, 2), (2, 4), (4, 4)])
def test_an_answer_composes_windows_from_what_they_gave(frames, history):
    surrogate, data = exact(frames, history), swinging(8, GAP * np.arange(40))
    begin, t = data.u[:, 5 : 5 + history], [0.05, 0.1, 0.4, 0.43, 1.2, 1.7]
    found = surrogate.predict(begin, t=t)
    later = swinging(8, np.array(t) + GAP * (4 + history)).u
    np.testing.assert_allclose(found.values, later, atol=1e-4)
    # Each sample at times of its own, and at time 0 the last frame.
    own = torch.tensor([[0.1, 0.9], [0.5, 1.2]] * 4)
    answer = surrogate.answer(begin, data.grid, own, data.params)
    both = surrogate.predict(begin, t=[0.1, 0.5, 0.9, 1.2]).values
    np.testing.assert_allclose(answer[0], both[0, [0, 2]], atol=1e-5)
    np.testing.assert_allclose(answer[1], both[1, [1, 3]], atol=1e-5)
    assert np.array_equal(surrogate.predict(begin, t=[0.0]).values[:, 0], begin[:, -1].numpy())


def test_derivatives_run_through_histories():
    surrogate, data = exact(1, 2), swinging(2)
    begin = data.u[:, :2].clone().requires_grad_()
    u = surrogate.answer(begin, data.grid, torch.tensor([0.35]), data.params, differentiable=True)
    u.sum().backward()
    assert (begin.grad.abs().sum(dim=(0, 2, 3)) > 0.1).all()


def test_labelled_frames_are_a_history():
    surrogate, data = exact(2, 3), swinging().to_xarray()
    expected = surrogate.predict(swinging().u[:, 4:7], t=[0.3])
    np.testing.assert_array_equal(surrogate.predict(data.isel(t=slice(4, 7)), t=[0.3]).values, expected.values)
    one = xr.DataArray(data["u"].values[0, 4:7], dims=("t", "x"))
    np.testing.assert_array_equal(surrogate.predict(one, t=[0.3]).values, expected.values[:1])
    assert surrogate.predict(swinging().u[0, 4:7, :, 0], t=[0.3]).shape == (1, 1, 4, 1)
    with pytest.raises(ValueError, match=r"The frames of u0 are 0\.2 to 0\.2 apart; expected 0\.1, as in training"):
        surrogate.predict(data.isel(t=slice(0, 6, 2)), t=[0.3])


@pytest.mark.parametrize("shape", [(2, 4, 1), (2, 2, 4, 1), (2, 3, 4, 2)])
def test_too_few_frames_are_refused(shape):
    with pytest.raises(ValueError, match=r"remembers 3 frames and expects \[sample, 3, x, 1\], the initial state last"):
        exact(2, 3).predict(torch.rand(shape), t=[0.3])


def test_evaluation_begins_after_the_first_frames():
    surrogate, data = exact(2, 4), swinging(20)
    found = vcnef.evaluate(surrogate, data, split="all")
    assert found.result.frames == 18
    assert found.result.scores["overall"]["nrmse"] < 1e-4
    assert found.result.cost.seconds > 0
    with pytest.raises(ValueError, match="time has 6 frames, but the model begins with 4 frames as in training"):
        vcnef.evaluate(surrogate, data, split="all", time=(6,))
    with pytest.raises(ValueError, match=r"begins with 4 frames that are 0\.1 apart; the data have 11, 0\.2 apart"):
        vcnef.evaluate(surrogate, data.view(time_stride=2), split="all")


def test_what_has_no_frames_to_remember_is_refused(tmp_path):
    data = swinging(20)
    with pytest.raises(ValueError, match="history is 2, which needs windows on frames that are equally far apart"):
        vcnef.fit(data, out=tmp_path / "run", epochs=1, history=2, window="direct")
    with pytest.raises(ValueError, match=r"semigroup is 0\.1 with history=2: between frames there is no history"):
        vcnef.fit(data, out=tmp_path / "run", epochs=1, history=2, window=0.1, semigroup=0.1)
    with pytest.raises(ValueError, match="expected 1, or more frames before windows"):
        Queries(history=2)
    with pytest.raises(ValueError, match="begin with 2 frames, which an exported file does not take"):
        exact(1, 2).export(tmp_path / "model.pt2")
    surrogate, queries = surrogate_of(data, 1, 2), Queries(window=1, history=2)
    fields = surrogate.scaling.fields
    with pytest.raises(ValueError, match="history is 2, but the frames of the data are not equally far apart"):
        data_objective(Recipe(), fields, surrogate.model, queries, even=False)


def test_means_stay_those_of_the_last_frame():
    data = swinging(8)
    options = TINY | {"history": 3, "conserved": (0,), "rate": True}
    surrogate = Surrogate.build("vcnef", options, data, window=0.2, seed=0)
    begin, t = data.u[:, 4:7], [0.15, 0.2, 0.7]
    found = surrogate.predict(begin, t=t).values
    expected = begin[:, -1:].mean(dim=2).expand(-1, 3, -1)
    np.testing.assert_allclose(found.mean(axis=2), expected, atol=1e-5)
    ask = (begin, data.grid, torch.tensor(t), data.params)
    np.testing.assert_allclose(surrogate.answer(*ask, differentiable=True).detach(), found, atol=1e-4)


def test_frames_in_another_order_are_told_by_a_layout():
    surrogate, u = exact(2, 3), swinging().u[:, 4:7]
    expected = surrogate.predict(u, t=[0.3])
    found = surrogate.predict(u.permute(2, 3, 0, 1), t=[0.3], layout="x c n t")
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(surrogate.predict(u[0, ..., 0].T, t=[0.3], layout="x t").values, expected.values[:1])
    with pytest.raises(ValueError, match=r"layout is 'n c x'; expected a letter for each axis, .* of which t and x"):
        surrogate.predict(u[:, 0], t=[0.3], layout="n c x")


def ask_for_nothing(model, batch, progress):
    return sum(weight.sum() for weight in model.parameters())


@pytest.mark.parametrize("objective", [ask_for_nothing, vcnef.training.Beside(ask_for_nothing)])
@pytest.mark.parametrize(
    ("about", "said"),
    [({"history": 2}, "begin with 2 frames, where such a loss"), ({"explicit_time": True}, "are told of the time or")],
)
def test_a_loss_of_ones_own_knows_one_state_and_what_stays(tmp_path, objective, about, said):
    options = {"epochs": 1, "window": 0.1, "quiet": True, "objective": objective, **about, **SMALL}
    with pytest.raises(ValueError, match=f"is a function of your own, but windows {said}"):
        vcnef.fit(swinging(20), out=tmp_path / "run", **options)


def test_residuals_do_not_begin_with_histories():
    surrogate, queries = surrogate_of(swinging(), 1, 2), Queries(window=1, history=2)
    with pytest.raises(ValueError, match=r"physics is 1, but windows begin with 2 frames.*Set physics to 0"):
        default_objective(Recipe(physics=1.0), surrogate, queries, swinging().t)


FEW = {"epochs": 8, "validate_every": 8, "batch": 32, "window": 0.1, "pushes": 0, "learning_rate": 0.02, "ema": None}
SMALL = {"width": 8, "heads": 2, "depth": 0, "modulations": 1, "patches": [], "modes": 1, "local": 0, "pace": 1}


def test_two_frames_say_what_one_does_not(tmp_path):
    data = swinging(24, T[:11])
    options = {"preset": "own/windows1d", "quiet": True} | FEW | SMALL
    runs = {}
    for history in (1, 2):
        runs[history] = vcnef.fit(data, out=tmp_path / str(history), history=history, **options)
    assert runs[2].best < 0.5 * runs[1].best
    loaded = vcnef.load(tmp_path / "2")
    assert (loaded.history, loaded.earlier) == (2, (0.1,))
    ask = {"u0": data.u[:2, :2], "t": [0.35, 0.9]}
    assert (loaded.predict(**ask).values == runs[2].surrogate.predict(**ask).values).all()


def test_histories_know_the_time_of_their_last_frame():
    data = swinging(20)
    surrogate = Surrogate.build("vcnef", TINY | {"history": 3}, data, window=0.2, explicit_time=True, seed=0)
    begin = data.u[:2, :3]
    usual = surrogate.predict(begin, t=[0.3, 0.7])
    assert np.array_equal(usual.values, surrogate.predict(begin, t=[0.3, 0.7], start=2 * GAP).values)
    assert np.array_equal(
        usual.values, surrogate.predict(data.to_xarray().isel(sample=[0, 1], t=[0, 1, 2]), t=[0.3, 0.7])
    )
    with pytest.raises(ValueError, match=r"u0 is labelled t = 0\.5, .* 0\.2 if left out\. Give start=0\.5"):
        surrogate.predict(data.to_xarray().isel(t=[3, 4, 5]), t=[0.3])
