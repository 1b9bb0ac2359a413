"""Answers beyond a window are those of windows one after the other."""

import warnings

import pytest
import torch

from vcnef.surrogate.composition import compose, windows_before


def decay(u, t, begin=0.0):
    """The exact flow map of du/dt = −u."""
    factor = torch.exp(-t)
    return u[:, None] * (factor[:, :, None, None] if t.ndim == 2 else factor[:, None, None])


@pytest.mark.parametrize("window", [0.3, 0.5, 1.0, 7.0])
def test_of_an_exact_flow_map_nothing_changes(window):
    u0, t = torch.rand(3, 4, 1, dtype=torch.float64), torch.tensor([0.0, 0.2, 0.5, 1.0, 2.7, 0.1], dtype=torch.float64)
    expected = decay(u0, t)
    torch.testing.assert_close(compose(decay, u0, t, window), expected)
    own = torch.stack((t, t.flip(0), t / 2))
    torch.testing.assert_close(compose(decay, u0, own, window), decay(u0, own))


@torch.no_grad()
def test_a_window_is_asked_once_and_its_end_not_twice():
    asked = []

    def flow(u, t, begin):
        asked.append(t.tolist())
        return decay(u, t)

    compose(flow, torch.rand(2, 4, 1), torch.tensor([1.0, 2.0, 2.5]), 1.0)
    assert asked == [[1.0], [1.0], [0.5]]
    assert windows_before(torch.tensor([0.0, 0.5, 1.0, 1.000001, 1.1, 2.0]), 1.0).tolist() == [0, 0, 0, 0, 1, 1]


def test_no_times_are_no_answer():
    assert compose(decay, torch.rand(2, 4, 1), torch.zeros(0), 1.0).shape == (2, 0, 4, 1)


def test_a_surrogate_composes_beyond_its_horizon_and_says_so(make_surrogate, make_data):
    surrogate, u0 = make_surrogate(), make_data().u[:2, 0]
    assert surrogate.window == surrogate.horizon == 2.0
    params = {"nu": [0.01, 0.02]}
    with pytest.warns(UserWarning, match="trained to 2. The rest is composed of windows of 2, and errors grow"):
        later = surrogate.predict(u0, t=[1.0, 3.0], params=params)
    at_horizon = torch.from_numpy(surrogate.predict(u0, t=[2.0], params=params).values)[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an untrained model's fields are unlike those of training
        then = surrogate.predict(at_horizon, t=[1.0], params=params)
    torch.testing.assert_close(torch.from_numpy(later.values)[:, 1], torch.from_numpy(then.values)[:, 0])


def test_a_model_that_steps_goes_on_by_itself(make_surrogate, make_data):
    surrogate = make_surrogate(model="fno", options={"width": 4, "modes": 2})
    assert not surrogate.composes
    with pytest.warns(UserWarning, match="The rest is extrapolated"):
        surrogate.predict(make_data().u[:2, 0], t=[3.0], params={"nu": 0.01})
