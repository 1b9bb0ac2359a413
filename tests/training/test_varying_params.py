"""Parameters that change with time: windows are told their values at both ends."""

import numpy as np
import pytest
import torch
import xarray as xr

import vcnef
from vcnef.data import Batches, Queries
from vcnef.data import open as open_data
from vcnef.data.windows import departures
from vcnef.models.interface import TrajectoryModel
from vcnef.surrogate import Surrogate
from vcnef.training import Recipe
from vcnef.training.job import default_objective
from vcnef.training.losses import mean_square
from vcnef.training.windows import Windows

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": ()}
TIMES = np.linspace(0, 2, 11)
UNEVEN = np.array([0.0, 0.1, 0.3, 0.35, 0.6, 0.7, 1.0, 1.4, 1.5, 2.0])


def records(samples, t, seed=0):
    """Random values at the frames, which are linear between them."""
    return np.random.default_rng(seed).uniform(-1, 1, (samples, len(t)))


def integrals(f, t):
    """Of these, from the first frame on: exact for lines."""
    parts = np.diff(t) * (f[:, 1:] + f[:, :-1]) / 2
    return np.concatenate([np.zeros((len(f), 1)), parts.cumsum(axis=1)], axis=1)


def driven_data(t=TIMES, samples=8, seed=0, every=1):
    """∂u/∂t = g f(t), with g of each sample and f linear between every so many frames."""
    ends = records(samples, t[::every], seed)
    f = np.stack([np.interp(t, t[::every], row) for row in ends])
    g = np.random.default_rng(1).uniform(1, 2, samples)
    u0 = np.random.default_rng(2).uniform(0, 1, (samples, 1, 4))
    u = u0 + (g[:, None] * integrals(f, t))[:, :, None]
    return vcnef.from_arrays(u[..., None], t=t, params={"g": g, "f": f})


class Driven(TrajectoryModel):
    """The exact flow map: u + g (f₀ τ + (f₁ − f₀) τ²/2w), of what it is told: g, f at the start, f at the end."""

    ndim, channels, params = 1, 1, 3

    def __init__(self, window):
        super().__init__()
        self.window, self.strength, self.told = window, torch.nn.Parameter(torch.ones(())), []

    def encode(self, u0, grid, params=None):
        self.told.append(params)
        return u0, params

    def query(self, latent, t):
        u0, params = latent
        g, first, last = params[..., None].unbind(dim=1)
        t = t if t.ndim == 2 else t.unsqueeze(0)
        change = self.window * g * (first * t + (last - first) * t.square() / 2)
        return u0.unsqueeze(1) + self.strength * change[..., None, None]


def surrogate_of(data, window, **options):
    return Surrogate.build("vcnef", TINY | options, data, window=window, normalise=False, seed=0)


@pytest.fixture
def exact():
    surrogate = surrogate_of(driven_data(), 0.2)
    surrogate.model = Driven(0.2)
    return surrogate


GRID = torch.linspace(0.125, 0.875, 4).unsqueeze(-1)


def test_values_at_all_frames_make_a_parameter_that_varies():
    data = driven_data()
    assert data.problem.parameters == ("g", "f")
    assert data.problem.varying == ("f",)
    assert data.params.shape == (8, 11, 2)
    assert torch.equal(data.params[:, 0, 0], data.params[:, 5, 0])
    assert data.problem.ranges["f"] == (
        pytest.approx(data.params[..., 1].min()),
        pytest.approx(data.params[..., 1].max()),
    )
    view = data.view(time_stride=2)
    assert torch.equal(view.params, data.params[:, ::2])
    assert data.split("train").params.shape[1:] == (11, 2)
    shared = vcnef.from_arrays(np.ones((3, 5, 4, 1)), params={"f": np.arange(5.0)[None]})
    assert torch.equal(shared.params[2, :, 0], torch.arange(5.0))


@pytest.mark.parametrize("shape", [(3, 4), (5, 3), (3, 5, 1)])
def test_values_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"expected one value or 3, one per sample, or \[3, 5\], those at all times"):
        vcnef.from_arrays(np.ones((3, 5, 4, 1)), params={"f": np.ones(shape)})


@pytest.mark.parametrize("name", ["mine.npz", "mine.nc", "mine.hdf5"])
def test_files_keep_them(name, tmp_path):
    data = driven_data()
    found = open_data(data.save(tmp_path / name))
    assert found.problem.varying == ("f",)
    torch.testing.assert_close(found.params, data.params)
    thinned = open_data(tmp_path / name, time_stride=5, horizon=1.0)
    torch.testing.assert_close(thinned.params, data.params[:, :6:5])
    one = open_data([tmp_path / name, tmp_path / name])
    assert one.params.shape == (16, 11, 2)


def test_plain_files_may_hold_them(tmp_path):
    import h5py

    data = driven_data()
    u, f = data.u.numpy(), data.params[..., 1].numpy()
    np.savez(tmp_path / "plain.npz", u=u, f=f)
    with h5py.File(tmp_path / "plain.hdf5", "w") as file:
        file["tensor"], file["t-coordinate"], file["x-coordinate"] = u[..., 0], TIMES, np.arange(4) / 4
        file["f"] = f
    for name in ("plain.npz", "plain.hdf5"):
        found = open_data(tmp_path / name)
        assert found.problem.varying == ("f",)
        np.testing.assert_allclose(found.params[..., 0], f)
    labelled = data.to_xarray()
    assert labelled["f"].dims == ("sample", "t")
    again = vcnef.from_arrays(labelled.assign(f=labelled["f"].T))
    torch.testing.assert_close(again.params, data.params)


def test_files_of_both_kinds_are_no_one_data_set(tmp_path):
    data = driven_data()
    data.save(tmp_path / "varying.npz")
    vcnef.from_arrays(data.u.numpy(), t=TIMES, params={"g": 1.0, "f": 0.5}).save(tmp_path / "constant.npz")
    with pytest.raises(ValueError, match="their parameters that change with time are none and f"):
        open_data([tmp_path / "varying.npz", tmp_path / "constant.npz"])


@pytest.mark.parametrize("progress", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("t", [TIMES, UNEVEN], ids=["even", "uneven"])
def test_each_window_of_training_is_told_the_values_at_its_ends(t, progress):
    data = driven_data(t, samples=64)
    longest = float(np.diff(t).max())
    scaling = surrogate_of(data, longest).scaling
    queries = Queries(window=1, pushes=2, chain=2)
    batch = next(iter(Batches(data, 64, queries=queries, scaling=scaling)))
    even = t is TIMES
    objective = Windows(mean_square, 1, 2, even, chain=2, semigroup=1.0, columns=scaling.columns)
    model = Driven(longest)
    assert objective(model, batch, progress).item() < 1e-10
    model.strength.data.mul_(0.5)
    assert objective(model, batch, progress).item() > 1e-3


def expected_of(u0, g, f, times, t):
    """The exact answer at times that are among those of the record."""
    whole = integrals(f, times) * g[:, None]
    return (
        u0.numpy()[:, None] + np.stack([whole[:, np.isclose(times, each)][:, 0] for each in t], axis=1)[..., None, None]
    )


def test_an_answer_composes_windows_with_values_of_their_own(exact):
    u0, t = torch.rand(3, 4, 1), [0.2, 0.4, 1.0, 2.0]
    f, g = records(3, TIMES, seed=5), np.array([1.1, 1.5, 1.9])
    expected = expected_of(u0, g, f, TIMES, t)
    given = {"g": g, "f": f}
    np.testing.assert_allclose(exact.predict(u0, t=t, params=given, params_t=TIMES).values, expected, atol=1e-5)
    labelled = xr.DataArray(f.T, dims=("t", "sample"), coords={"t": TIMES})
    np.testing.assert_allclose(exact.predict(u0, t=t, params=given | {"f": labelled}).values, expected, atol=1e-5)
    function = lambda time: [np.interp(time, TIMES, row) for row in f]  # noqa: E731
    np.testing.assert_allclose(exact.predict(u0, t=t, params=given | {"f": function}).values, expected, atol=1e-5)
    # A record of a few times is linear between them; one for all samples; and one value that stays.
    coarse = exact.predict(u0, t=t, params={"g": g, "f": f[0, [0, 5, 10]]}, params_t=TIMES[[0, 5, 10]])
    fine = np.interp(TIMES, TIMES[[0, 5, 10]], f[0, [0, 5, 10]])[None].repeat(3, axis=0)
    np.testing.assert_allclose(coarse.values, expected_of(u0, g, fine, TIMES, t), atol=1e-5)
    each = exact.predict(u0, t=t, params={"g": g, "f": xr.DataArray([0.3, 0.3, 0.3], dims="sample")}).values
    steady = exact.predict(u0, t=t, params={"g": g, "f": 0.3}).values
    np.testing.assert_array_equal(each, steady)
    np.testing.assert_allclose(steady[:, :, 0, 0], u0[:, :1, 0].numpy() + 0.3 * g[:, None] * np.array(t), atol=1e-5)


def test_a_record_may_end_with_the_last_time(exact):
    """The last window is told the slope as far as it is known."""
    u0, f = torch.rand(1, 4, 1), np.array([[0.2, 0.8]])
    answer = exact.predict(u0, t=[0.2, 0.5], params={"g": 1.0, "f": f}, params_t=[0.0, 0.5]).values
    slope = 0.6 / 0.5
    exactly = [0.2 * t + slope * t**2 / 2 for t in (0.2, 0.5)]
    np.testing.assert_allclose(answer[0, :, 0, 0] - float(u0[0, 0, 0]), exactly, atol=1e-5)


def test_answers_are_labelled_with_the_values_at_their_times(exact):
    found = exact.predict(torch.rand(2, 4, 1), t=[0.1, 0.2], params={"g": 1.0, "f": [0.0, 0.4]}, params_t=[0.0, 0.2])
    assert found["f"].dims == ("sample", "t")
    np.testing.assert_allclose(found["f"], [[0.2, 0.4]] * 2, atol=1e-6)
    assert found["g"].dims == ("sample",)
    # What changes is not taken from the label of one time.
    with pytest.raises(ValueError, match=r"The parameter f \(trained on .*\) is missing"):
        exact.predict(found.isel(t=-1), t=[0.1])


def test_gradients_reach_a_record(exact):
    f = torch.rand(1, 11, requires_grad=True)
    params = torch.stack([torch.ones(1, 11), f], dim=-1)
    u = exact.answer(
        torch.rand(1, 4, 1), GRID, torch.tensor([0.4]), params, params_t=torch.from_numpy(TIMES), differentiable=True
    )
    u[0, 0, 0, 0].backward()
    torch.testing.assert_close(f.grad[0, :4], torch.tensor([0.1, 0.2, 0.1, 0.0]), atol=1e-6, rtol=0)


def late(first, last):
    return xr.DataArray([0.1, 0.2], dims="t", coords={"t": [first, last]})


@pytest.mark.parametrize(
    ("params", "params_t", "said"),
    [
        ({"f": np.ones(3)}, [0.0, 0.2, 0.4], "params_t goes from 0 to 0.4, but t to 1; expected parameters from u0"),
        ({"f": np.ones((2, 3))}, None, r"params\['f'\] has shape \(2, 3\), but params_t is not given"),
        ({"f": np.ones(2)}, [0.0, 0.5, 1.0], r"expected \[3\] or \[sample, 3\], a value for each time of params_t"),
        ({"f": late(0.0, 0.5)}, None, "params_t goes from 0 to 0.5, but t to 1; expected parameters from u0"),
        ({"f": late(0.2, 1.0)}, None, "params_t goes from 0.2 to 1, but t to 1; expected parameters from u0"),
        ({"f": late(1.0, 0.0)}, None, "t of params.'f'. has shape .2,.; expected ascending, finite times since u0"),
        ({"f": np.ones(3)}, [0.0, 0.5, 0.5], "expected ascending, finite times since u0"),
        ({"f": lambda time: np.ones((2, 2))}, None, "expected one number for each time, or one per sample"),
    ],
)
def test_records_that_say_too_little_are_refused(exact, params, params_t, said):
    with pytest.raises(ValueError, match=said):
        exact.predict(torch.rand(2, 4, 1), t=[1.0], params={"g": 1.5} | params, params_t=params_t)


def test_times_of_values_that_do_not_change_are_refused():
    data = vcnef.from_arrays(np.random.default_rng(0).uniform(size=(3, 5, 4, 1)), params={"f": [1.0, 2.0, 3.0]})
    surrogate = Surrogate.build("vcnef", TINY, data, window=0.25)
    with pytest.raises(ValueError, match="params_t is given, but no parameter of custom changed with time in training"):
        surrogate.predict(data.u[:1, 0], t=[0.5], params={"f": [1.0, 2.0]}, params_t=[0.0, 0.5])
    with pytest.raises(ValueError, match=r"params\['f'\] has shape \(1, 2\); expected one value or"):
        surrogate.predict(data.u[:1, 0], t=[0.5], params={"f": [[1.0, 2.0]]})


def test_evaluation_takes_the_values_of_the_data(exact):
    data = driven_data(samples=20)
    found = vcnef.evaluate(exact, data, split="all")
    assert found.result.scores["overall"]["nrmse"] < 1e-5
    assert found.params["f"].shape == (20, 11)
    assert found.params["g"].shape == (20,)
    longer = driven_data(np.linspace(0, 4, 21), samples=20)
    further = vcnef.evaluate(exact, longer, split="all", horizon=2)
    assert further.beyond.scores["overall"]["nrmse"] < 1e-5
    with pytest.raises(ValueError, match="f changes with time in these data, but a module or function is told one"):
        vcnef.evaluate(lambda u0, t, params: u0, data)
    constant = vcnef.from_arrays(data.u.numpy(), t=TIMES, params={"g": 1.0, "f": 0.5})
    other = Surrogate.build("vcnef", TINY, constant, window=0.2)
    with pytest.raises(ValueError, match="f changes with time in these data, but the model was trained on values that"):
        vcnef.evaluate(other, data, split="all")


def test_models_without_windows_are_refused(tmp_path):
    data = driven_data(samples=20)
    for options in ({"window": "direct"}, {"model": "fno"}):
        with pytest.raises(ValueError, match="f changes with time, but there are no windows"):
            vcnef.fit(data, out=tmp_path / "run", epochs=1, **options)
    surrogate = surrogate_of(data, 0.2)
    with pytest.raises(ValueError, match=r"which such a loss does not know\. Set physics to 0"):
        default_objective(Recipe(physics=1.0), surrogate, Queries(window=1), data.t)
    with pytest.raises(ValueError, match="f changes with time, which one input cannot say"):
        surrogate.export(tmp_path / "model.pt2")


def test_bends_within_windows_are_told():
    rough, smooth = driven_data(samples=20), driven_data(samples=20, every=5)
    assert departures(rough, 1) == {"f": 0.0}
    assert departures(rough, 5)["f"] > 0.5
    assert departures(smooth, 2)["f"] < departures(rough, 2)["f"]


FEW = {"epochs": 8, "validate_every": 8, "batch": 32, "window": 0.2, "pushes": 0, "learning_rate": 0.02, "ema": None}
SMALL = {"width": 8, "heads": 2, "depth": 0, "modulations": 1, "patches": [], "modes": 1, "local": 0, "pace": 1}


def test_what_is_told_the_values_learns_them_and_what_is_told_a_mean_does_not(tmp_path):
    data = driven_data(samples=30)
    t, f = data.t.numpy(), data.params[..., 1].numpy()
    mean = vcnef.from_arrays(data.u.numpy(), t=t, params={"g": data.params[:, 0, 0].numpy(), "f": f.mean(axis=1)})
    options = {"preset": "own/windows1d", "quiet": True} | FEW | SMALL
    told = vcnef.fit(data, out=tmp_path / "told", **options)
    without = vcnef.fit(mean, out=tmp_path / "mean", **options)
    assert told.best < 0.3 * without.best
    loaded = vcnef.load(tmp_path / "told")
    assert loaded.problem.varying == ("f",)
    ask = {"t": [0.3, 2.0], "params": {"g": 1.5, "f": f[:2]}, "params_t": t}
    assert (loaded.predict(data.u[:2, 0], **ask).values == told.surrogate.predict(data.u[:2, 0], **ask).values).all()
    with pytest.warns(UserWarning, match="Within a window of 5 frames f departs from a straight line by"):
        vcnef.fit(data, out=tmp_path / "bent", **options | {"window": 1.0, "epochs": 1})
