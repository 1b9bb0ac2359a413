"""Windows shorten where one and its halves differ, lengthen again, and the answer says so."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import vcnef
from vcnef.surrogate import adaptive as adaptive_windows
from vcnef.surrogate.adaptive import SHORTEST, compose_adaptively
from vcnef.surrogate.composition import compose

T = torch.tensor([0.0, 0.3, 1.0, 2.7, 0.1, 4.0], dtype=torch.float64)


class Flow:
    """u₀ e^{−t} with an error of `off` t³ for each window; notes the lengths of windows that it is asked for."""

    def __init__(self, off=0.0):
        self.off, self.asked = off, []

    def __call__(self, u, t, place=None):
        self.asked.append(t[:, -1].tolist() if t.ndim == 2 else [float(t[-1])])
        off = self.off[place.rows, None] if isinstance(self.off, torch.Tensor) else self.off
        factor = torch.exp(-t) + off * t**3
        return u[:, None] * (factor[:, :, None, None] if t.ndim == 2 else factor[:, None, None])


def distance(u, reference, rows):
    return (u - reference).flatten(1).norm(dim=1) / reference.flatten(1).norm(dim=1)


def adaptive(flow, u0, t, tolerance, window=1.0):
    return compose_adaptively(flow, distance, u0, t, window, tolerance)


@pytest.fixture
def u0():
    return 1 + torch.rand(3, 4, 1, dtype=torch.float64)


def test_where_windows_suit_the_answer_is_the_composition_and_costs_two_calls_a_window(u0):
    flow = Flow(off=1e-3)
    u, steps = adaptive(flow, u0, T, 0.1)
    torch.testing.assert_close(u, compose(flow, u0, T, 1.0))
    assert steps.windows.tolist() == [4, 4, 4]
    assert steps.calls == 8
    assert steps.shortest == 1.0
    own = torch.stack((T, T.flip(0), T / 2))
    u, steps = adaptive(Flow(off=1e-3), u0, own, 0.1)
    torch.testing.assert_close(u, compose(flow, u0, own, 1.0))
    assert steps.windows.tolist() == [4, 4, 2]


def test_the_answer_approaches_that_of_short_windows(u0):
    exact = compose(Flow(), u0, T, 1.0)
    errors, windows = [], []
    for tolerance in (1e-1, 1e-2, 1e-3, 1e-4):
        u, steps = adaptive(Flow(off=0.1), u0, T, tolerance)
        errors.append(float((u - exact).norm() / exact.norm()))
        windows.append(int(steps.windows[0]))
        assert steps.failed.sum() == 0
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.02 * errors[0]
    assert windows == sorted(windows)
    shortest, _ = adaptive(Flow(off=0.1), u0, T, 1e-30)
    torch.testing.assert_close(shortest, compose(Flow(off=0.1), u0, T, SHORTEST))


def test_the_estimate_is_of_the_size_of_the_error(u0):
    u, steps = adaptive(Flow(off=0.1), u0, T, 1e-2)
    last = int(T.argmax())
    true = (u - compose(Flow(), u0, T, 1.0))[:, last].flatten(1).norm(dim=1) / u[:, last].flatten(1).norm(dim=1)
    ratio = steps.error / true
    assert (ratio > 0.3).all()
    assert (ratio < 3).all()


def test_windows_lengthen_again_up_to_the_trained_one(u0):
    class Hard(Flow):
        """Wrong in the first window only."""

        def __call__(self, u, t, place=None):
            self.off = 1.0 if float(u[0, 0, 0]) > 0.8 * float(start[0, 0, 0]) else 0.0
            return super().__call__(u, t)

    start, flow = u0[:1], Hard()
    _, steps = adaptive(flow, start, torch.tensor([6.0], dtype=torch.float64), 1e-2)
    assert steps.shortest < 0.5
    wholes = [length for lengths in flow.asked[::2] for length in lengths]
    assert max(wholes[-4:]) == 1.0


def test_there_are_never_more_than_so_many_windows(u0):
    _, steps = adaptive(Flow(off=0.5), u0, torch.tensor([3.0], dtype=torch.float64), 1e-12)
    assert steps.windows.tolist() == [round(3 / SHORTEST)] * 3
    assert (steps.failed == steps.windows).all()
    (said,) = steps.doubts({})
    assert "In 3 of 3 samples windows of 1/32 of the trained one still differ from their halves" in said
    broken, steps = adaptive(Flow(off=float("nan")), u0, T, 1e-2)
    assert broken.isnan().any()
    assert steps.error.isnan().all()


def test_a_sample_has_windows_of_its_own(u0):
    """Whatever is asked beside it, its answer is the same."""
    off = torch.tensor([1e-4, 0.3, 1e-2], dtype=torch.float64)
    u, steps = adaptive(Flow(off=off), u0, T, 1e-2)
    assert steps.windows[1] > steps.windows[2] > steps.windows[0]
    for row in range(3):
        alone, own = adaptive(Flow(off=off[row : row + 1]), u0[row : row + 1], T, 1e-2)
        torch.testing.assert_close(alone[0], u[row])
        assert int(own.windows) == int(steps.windows[row])


def test_no_times_are_no_answer(u0):
    u, steps = adaptive(Flow(), u0, torch.zeros(0), 1e-2)
    assert u.shape == (3, 0, 4, 1)
    assert steps.calls == 0


@pytest.fixture(scope="module")
def flow_map():
    """Waves on windows of two frames, untrained."""
    t, x = np.linspace(0, 1, 9), (np.arange(16) + 0.5) / 16
    u = np.sin(2 * np.pi * (x - t[:, None] + np.arange(6)[:, None, None] / 6))[..., None]
    data = vcnef.from_arrays(u, t=t, x=x)
    options = {"width": 16, "heads": 2, "modulations": 1, "patches": (4,), "rate": True, "conserved": (0,)}
    surrogate = vcnef.Surrogate.build("vcnef", options, data, window=0.25, seed=0)
    surrogate.provenance["times"] = t.tolist()
    return surrogate, data


def test_predict_reports_what_it_did(flow_map, tmp_path):
    surrogate, data = flow_map
    u0, t = data.u[:3, 0], [0.0, 0.1, 0.5, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loose = surrogate.predict(u0, t, tolerance=10.0)
    np.testing.assert_allclose(loose.values, surrogate.predict(u0, t).values, atol=1e-5)
    assert np.array_equal(loose.values[:, 0], u0.numpy())
    assert loose.attrs["windows"].tolist() == [4, 4, 4]
    assert (loose.attrs["network_calls"], loose.attrs["shortest_window"]) == (8, 0.25)
    assert loose.attrs["tolerance"] == 10.0
    assert (loose.attrs["estimated_error"] > 0).all()
    assert "doubts" not in loose.attrs
    assert surrogate.predict(u0, t).attrs == {}
    loose.to_netcdf(tmp_path / "answer.nc", engine="h5netcdf")


def test_what_was_never_trained_is_said(flow_map):
    surrogate, data = flow_map
    half = float(np.median(surrogate.predict(data.u[:3, 0], [1.0], tolerance=10.0).attrs["estimated_error"])) / 8
    with pytest.warns(UserWarning, match="but frames in training are 0.125 apart, and train.semigroup was 0"):
        tight = surrogate.predict(data.u[:3, 0], [1.0], tolerance=half)
    assert tight.attrs["shortest_window"] < 0.25
    assert "what lies between frames was never learnt" in tight.attrs["doubts"]
    learnt = replace(surrogate, provenance=surrogate.provenance | {"semigroup": 0.1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learnt.predict(data.u[:3, 0], [1.0], tolerance=half)


def test_parameters_are_those_of_each_sample(make_surrogate, make_data):
    surrogate, u0 = make_surrogate(), make_data().u[:3, 0]
    grid, t, params = make_data().grid, torch.tensor([1.0, 5.0]), make_data().params[:3]
    u, steps = surrogate.answer_adaptively(u0, grid, t, params, tolerance=100.0)
    torch.testing.assert_close(u, surrogate.answer(u0, grid, t, params), rtol=1e-4, atol=1e-5)
    assert steps.windows.tolist() == [3, 3, 3]
    for row in range(3):
        mine = slice(row, row + 1)
        alone = surrogate.answer(u0[mine], grid, t, params[mine], tolerance=100.0)
        torch.testing.assert_close(alone[0], u[row], rtol=1e-4, atol=1e-5)


def test_what_has_no_tolerance_is_refused(flow_map, make_surrogate, make_data):
    surrogate, data = flow_map
    question = data.u[:2, 0], data.grid, data.t[1:], data.params[:2]
    with pytest.raises(ValueError, match="tolerance is 0; expected a number above 0"):
        surrogate.predict(data.u[:2, 0], [1.0], tolerance=0)
    with pytest.raises(ValueError, match=r"that choice has no gradient\. Leave out tolerance"):
        surrogate.answer(*question, tolerance=0.1, differentiable=True)
    steps = make_surrogate(model="fno", options={"width": 4, "modes": 2})
    with pytest.raises(ValueError, match="'fno' does not compose windows, whose lengths could be chosen"):
        steps.predict(make_data().u[:2, 0], t=[1.0], params={"nu": 0.01}, tolerance=1e-3)


def test_an_evaluation_says_how_many_windows_there_were(flow_map, monkeypatch):
    surrogate, data = flow_map
    loose = vcnef.evaluate(surrogate, data, split="all", tolerance=10.0, solver=False)
    (said,) = [note for note in loose.notes if "tolerance" in note]
    assert said.startswith("Windows were chosen with a tolerance of 10: 4.0 for a trajectory, the shortest 0.25 long.")
    monkeypatch.setattr(adaptive_windows, "SHORTEST", 0.5)
    tight = vcnef.evaluate(surrogate, data, split="all", tolerance=1e-6, solver=False)
    assert any("In 6 of 6 samples windows of 1/2 of the trained one" in note for note in tight.notes)
    with pytest.raises(ValueError, match="the model is none of vcnef's surrogates, whose windows could be chosen"):
        vcnef.evaluate(lambda u0, t, params: u0[:, None].expand(-1, len(t), -1, -1), data, split="all", tolerance=0.1)
