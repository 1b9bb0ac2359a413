"""Windows of adaptive lengths begin at different times, and each is told what holds at its own."""

import numpy as np
import pytest
import torch

import vcnef
from vcnef.data.conditions import HARMONICS
from vcnef.models.interface import TrajectoryModel
from vcnef.surrogate import Surrogate

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": ()}
FIRST, LAST, RATE = 1.0, 3.0, 4.0
T = np.linspace(0, 2, 11)
GRID = torch.linspace(0.125, 0.875, 4).unsqueeze(-1)


class Forced(TrajectoryModel):
    """∂u/∂t = RATE cos(RATE t) of the time that it is told, with an error of t³ that some samples have."""

    ndim, channels, params = 1, 1, 1 + 2 * HARMONICS

    def __init__(self, window):
        super().__init__()
        self.window, self.weight = window, torch.nn.Parameter(torch.ones(()))

    def encode(self, u0, grid, params=None):
        return u0, FIRST + (params[:, :1] + 1) / 2 * (LAST - FIRST)

    def query(self, latent, t):
        u0, begin = latent
        later = begin + self.window * t
        change = torch.sin(RATE * later) - torch.sin(RATE * begin)
        wrong = (u0[:, 0] > 10) * 0.2 * t**3
        return u0.unsqueeze(1) + self.weight * (change + wrong)[..., None, None]


class Pushed(TrajectoryModel):
    """∂u/∂t = f of an f that is linear between the values that it is told at the ends of the trained window."""

    ndim, channels, params = 1, 1, 2

    def __init__(self, window):
        super().__init__()
        self.window, self.weight = window, torch.nn.Parameter(torch.ones(()))

    def encode(self, u0, grid, params=None):
        return u0, params

    def query(self, latent, t):
        u0, params = latent
        first, last = params[:, :1], params[:, 1:]
        change = self.window * (first * t + (last - first) * t.square() / 2)
        return u0.unsqueeze(1) + self.weight * change[..., None, None]


def forced():
    data = vcnef.from_arrays(np.random.default_rng(0).uniform(size=(8, 11, 4, 1)), t=FIRST + T)
    surrogate = Surrogate.build("vcnef", TINY, data, window=0.4, explicit_time=True, normalise=False, seed=0)
    surrogate.model = Forced(surrogate.window)
    return surrogate


def pushed(window):
    """With the true trajectories for forces that bend at every frame."""
    f = np.random.default_rng(0).uniform(-1, 1, (8, 11))
    change = np.concatenate([np.zeros((8, 1)), np.cumsum((f[:, 1:] + f[:, :-1]) / 2 * 0.2, axis=1)], axis=1)
    u = 2 + np.broadcast_to(change[:, :, None, None], (8, 11, 4, 1))
    data = vcnef.from_arrays(u, t=T, params={"f": f})
    surrogate = Surrogate.build("vcnef", TINY, data, window=window, normalise=False, seed=0)
    surrogate.provenance["semigroup"] = 0.1
    surrogate.model = Pushed(window)
    return surrogate, data


def test_each_sample_is_told_when_its_own_windows_begin():
    surrogate, t = forced(), torch.tensor([0.1, 0.9, 1.7], dtype=torch.float64)
    u0, start = torch.tensor([2.0, 20.0, 2.0, 20.0]).view(4, 1, 1).expand(4, 4, 1), torch.tensor([1.0, 1.0, 1.3, 1.3])
    begin = start[:, None]
    true = u0[:, None] + (torch.sin(RATE * (begin + t)) - torch.sin(RATE * begin))[..., None, None]
    surrogate.provenance |= {"semigroup": 0.1, "field_ranges": {}}
    found = surrogate.predict(u0, t=t, x=GRID[:, 0], start=start, tolerance=1e-3)
    np.testing.assert_allclose(found.values[::2], true[::2], atol=1e-4)
    np.testing.assert_allclose(found.values[1::2], true[1::2], atol=0.3)
    assert found.attrs["windows"][1] > found.attrs["windows"][0] == 5
    # Alone, each has the same answer, also where the others are halved.
    alone = surrogate.predict(u0[3:], t=t, x=GRID[:, 0], start=1.3, tolerance=1e-3)
    np.testing.assert_allclose(found.values[3:], alone.values, rtol=1e-6)


def test_halves_of_windows_follow_parameters_that_bend_within_them():
    surrogate, data = pushed(0.8)
    ask = {"t": T, "params": {"f": data.params[..., 0].numpy()}, "params_t": T}
    coarse = surrogate.predict(data.u[:, 0], **ask)
    fine = surrogate.predict(data.u[:, 0], **ask, tolerance=1e-6)
    assert abs(coarse.values - data.u.numpy()).max() > 0.03
    np.testing.assert_allclose(fine.values, data.u, atol=1e-4)


def test_where_windows_suit_the_answer_is_the_composition():
    surrogate, data = pushed(0.2)
    params, t = data.params, torch.tensor([0.1, 0.5, 1.7])
    ask = {"params_t": data.t.double()}
    plain = surrogate.answer(data.u[:, 0], data.grid, t, params, **ask)
    chosen = surrogate.answer(data.u[:, 0], data.grid, t, params, **ask, tolerance=1e-2)
    torch.testing.assert_close(chosen, plain)


def test_evaluation_with_a_tolerance_reads_the_time_and_the_values_off_the_data():
    surrogate, data = pushed(0.2)
    found = vcnef.evaluate(surrogate, data, split="all", tolerance=1e-2)
    assert found.result.scores["overall"]["nrmse"] < 1e-5
    assert "Windows were chosen with a tolerance of 0.01" in " ".join(found.notes)
    later, t = forced(), torch.tensor(FIRST + T[3:])
    u = 2 + (torch.sin(RATE * t) - torch.sin(RATE * t[:1]))[None, :, None, None].expand(6, -1, 4, 1)
    found = vcnef.evaluate(later, vcnef.from_arrays(u.numpy(), t=t.numpy()), split="all", tolerance=1e-2)
    assert found.result.scores["overall"]["nrmse"] < 1e-5


def test_histories_have_no_windows_of_other_lengths():
    data = vcnef.from_arrays(np.random.default_rng(0).uniform(size=(8, 11, 4, 1)), t=T)
    surrogate = Surrogate.build("vcnef", TINY | {"history": 2}, data, window=0.2, seed=0)
    said = "begins each window with 2 frames in the spacing of the data, which windows of other lengths do not end with"
    with pytest.raises(ValueError, match=said):
        surrogate.predict(data.u[:2, :2], t=[0.4], tolerance=1e-2)
    with pytest.raises(ValueError, match=said):
        vcnef.evaluate(surrogate, data, split="all", tolerance=1e-2)


def test_double_precision_holds_for_conditions_as_well():
    surrogate, data = pushed(0.2)
    ask = {"t": T[1:], "params": {"f": data.params[..., 0].numpy()}, "params_t": T}
    single = surrogate.predict(data.u[:, 0], **ask)
    double = surrogate.double().predict(data.u[:, 0].double(), **ask)
    assert double.dtype == np.float64
    np.testing.assert_allclose(double, single, atol=1e-5)
    told = forced().double()
    found = told.predict(np.full((2, 4, 1), 2.0), t=T[1:], start=[1.0, 1.1])
    expected = 2 + np.sin(RATE * (1.1 + T[1:])) - np.sin(RATE * 1.1)
    np.testing.assert_allclose(found[1, :, 0, 0], expected, atol=1e-9)
