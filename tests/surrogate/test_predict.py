"""Predictions: many forms of the question, one labelled answer, and a plain word when something does not fit."""

import numpy as np
import pytest
import torch
import xarray as xr

QUESTION = {"t": [0.5, 2.0], "params": {"nu": 0.01}}


def test_the_answer_is_labelled(make_surrogate, make_data):
    surrogate, u0 = make_surrogate("cns2d"), make_data("cns2d").u[:3, 0].numpy()
    u = surrogate.predict(u0, t=[0.0, 1.0], params={"eta": [0.01, 0.02, 0.03], "zeta": 0.05})
    assert u.dims == ("sample", "t", "x", "y", "channel")
    assert u.shape == (3, 2, 8, 8, 4)
    assert u.name == "cns2d"
    assert list(u.channel.values) == ["density", "pressure", "vx", "vy"]
    np.testing.assert_allclose(u.y, np.linspace(-0.875, 0.875, 8), rtol=1e-6)
    np.testing.assert_allclose(u.eta, [0.01, 0.02, 0.03], rtol=1e-6)
    assert u.eta.dims == u.zeta.dims == ("sample",)
    assert (u.t.attrs["units"], u.x.attrs["units"], u.y.attrs["units"]) == ("s", "m", "m")
    assert list(u.units.values) == ["kg/m³", "", "", ""]
    assert float(u.sel(channel="vx", t=1.0).mean()) != 0.0
    np.testing.assert_array_equal(u.sel(t=0.0), u0)


def test_forms_of_an_initial_state(make_surrogate, make_data):
    surrogate, states = make_surrogate(), make_data().u[:2, 0]
    whole = surrogate.predict(states, **QUESTION)
    for form in (states.numpy(), states[..., 0].numpy(), states.double(), states.tolist()):
        np.testing.assert_allclose(surrogate.predict(form, **QUESTION), whole, rtol=1e-5)
    for form in (states[0], states[0, :, 0], states[:1, :, 0]):
        np.testing.assert_allclose(surrogate.predict(form, **QUESTION), whole[:1], rtol=1e-5)


class Elsewhere(torch.Tensor):
    """A tensor that, as on a GPU, is no NumPy array before it is on the CPU."""

    def numpy(self):
        raise TypeError("can't convert device type tensor to numpy. Use Tensor.cpu() first.")

    def cpu(self):
        return self.as_subclass(torch.Tensor)


@pytest.mark.parametrize("place", ["elsewhere", "gradient", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_tensors_of_any_device(make_surrogate, make_data, place):
    def put(values):
        tensor = torch.as_tensor(values).clone()
        if place == "elsewhere":
            return tensor.as_subclass(Elsewhere)
        return tensor.requires_grad_() if place == "gradient" else tensor.to(place)

    surrogate, data = make_surrogate("cns2d"), make_data("cns2d", samples=2)
    state, t, nu, x = data.u[:, 0], torch.tensor([0.0, 0.5]), torch.tensor([0.01, 0.02]), data.grid
    expected = surrogate.predict(state, t, {"eta": nu, "zeta": 0.05}, x)
    for points in (put(x), (put(x[:, 0, 0]), put(x[0, :, 1]))):
        u = surrogate.predict(put(state), put(t), {"eta": put(nu), "zeta": 0.05}, points)
        np.testing.assert_array_equal(u, expected)


def test_labelled_initial_states(make_surrogate, make_data):
    surrogate, data = make_surrogate("cns2d"), make_data("cns2d", samples=2)
    fields = dict(zip(data.problem.channels, data.u[:, 0].numpy().transpose(3, 0, 1, 2), strict=True))
    params = {"eta": 0.02, "zeta": 0.03}
    expected = surrogate.predict(data.u[:, 0], 1.0, params)
    dims, axes = ("sample", "x", "y"), {"x": data.grid[:, 0, 0].numpy(), "y": data.grid[0, :, 1].numpy()}
    dataset = xr.Dataset({name: (dims, fields[name]) for name in ("vy", "vx", "density", "pressure")}, axes)
    # Any order of channels and axes, parameters as coordinates or variables, one time or none.
    forms = [
        dataset.assign_coords(params),
        dataset.assign(params).expand_dims(time=[0.0]),
        dataset.to_dataarray("channel").assign_coords(params).transpose("y", "channel", "sample", "x"),
    ]
    for form in forms:
        np.testing.assert_allclose(surrogate.predict(form, 1.0), expected, rtol=1e-5)


def test_one_state_under_several_parameters(make_surrogate, make_data):
    surrogate, state = make_surrogate(), make_data().u[0, 0]
    sweep = surrogate.predict(state, 1.0, {"nu": [0.01, 0.02, 0.05]})
    assert sweep.sizes["sample"] == 3
    one = surrogate.predict(state, 1.0, {"nu": 0.02})
    np.testing.assert_allclose(sweep[1:2], one, rtol=1e-5)


def test_a_finer_grid_and_scattered_points(make_surrogate):
    fine = make_surrogate().predict(np.ones((1, 32, 1)), **QUESTION)
    np.testing.assert_allclose(fine.x, (np.arange(32) + 0.5) / 32, rtol=1e-6)
    points = torch.rand(10, 2)
    u = make_surrogate("heat").predict(torch.ones(2, 10, 1), 1.0, x=points)
    assert u.dims == ("sample", "t", "point", "channel")
    np.testing.assert_allclose(u.y, points[:, 1])


def test_a_single_trained_value_needs_not_be_given(make_surrogate, make_data):
    surrogate = make_surrogate(spread=(0.01, 0.01))
    state = make_data().u[0, 0]
    np.testing.assert_array_equal(surrogate.predict(state, 1.0), surrogate.predict(state, 1.0, {"nu": 0.01}))


DOUBTS = {
    "parameter": (
        {"params": {"nu": 0.2}},
        r"nu is 0.2; the surrogate was trained on 0.001 to 0.1. Its answer is extrap",
    ),
    "parameters": ({"params": {"nu": [0.01, 0.3]}}, r"nu is 0.01 to 0.3; the surrogate was trained on 0.001 to 0.1"),
    "state": ({"u0": np.full((1, 8, 1), 3.0)}, r"u0 has u between 3 and 3; in training it was between 0.5.* and 1.5"),
    "time": ({"t": [1.0, 3.0]}, r"t goes to 3; the surrogate was trained to 2. The rest is extrapolated"),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_extrapolation_is_said(make_surrogate, doubt):
    change, sentence = DOUBTS[doubt]
    with pytest.warns(UserWarning, match=sentence):
        make_surrogate().predict(**{"u0": np.ones((1, 8, 1)), **QUESTION, **change})


def test_within_what_was_trained_nothing_is_said(make_surrogate, recwarn):
    make_surrogate().predict(np.ones((1, 8, 1)), [0.5, 2.0], {"nu": 0.1})
    make_surrogate().predict(np.ones((1, 8, 1)), [0.5, 2.0], {"nu": 0.001})
    assert not recwarn.list


BURGERS = {
    "channels": ({"u0": np.ones((2, 8, 3))}, r"u0 has shape \(2, 8, 3\); .* burgers expects \[sample, x, 1\] with the"),
    "rank": ({"u0": np.ones((2, 3, 8, 1))}, r"u0 has shape \(2, 3, 8, 1\); this surrogate of burgers expects"),
    "number": ({"u0": 1.0}, r"u0 has shape \(\); this surrogate of burgers expects \[sample, x, 1\]"),
    "text": ({"u0": "ic.nc"}, r"u0 is not an array of real numbers"),
    "nan": ({"u0": np.full((1, 8, 1), np.nan)}, r"u0 has 8 non-finite values among 8; expected finite numbers"),
    "unknown": (
        {"params": {"mu": 1.0}},
        r"There is no parameter 'mu' of burgers. Did you mean 'nu'\? There are nu",
    ),
    "missing": ({"params": None}, r"The parameter nu \(trained on 0.001 to 0.1\) is missing. Pass params=\{'nu': …\}"),
    "unnamed": ({"params": 0.01}, r"params is float; expected values by name, e.g. params=\{'nu': 0.002\}"),
    "counts": (
        {"params": {"nu": [0.01] * 3}},
        r"params\['nu'\] has shape \(3,\); expected one value or 2, one per sample",
    ),
    "negative": (
        {"t": [-1.0, 1.0]},
        r"t is \[-1.0, 1.0\]; expected one or more finite times since u0, none of them neg",
    ),
    "no states": ({"u0": np.ones((0, 8, 1))}, r"u0 has shape \(0, 8, 1\) and nothing in it. Give at least one"),
    "no times": ({"t": []}, r"t is \[\]; expected one or more finite times"),
    "x": ({"x": np.linspace(0, 1, 7)}, r"x has axes of shape \(\(7,\),\); expected lengths \(8,\)"),
    "plane": ({"x": np.ones((8, 2))}, r"x has 2 coordinates per point; burgers has 1 space axes"),
}


@pytest.mark.parametrize("mistake", BURGERS)
def test_what_does_not_fit_is_said(make_surrogate, mistake):
    change, sentence = BURGERS[mistake]
    with pytest.raises(ValueError, match=sentence):
        make_surrogate().predict(**{"u0": np.ones((2, 8, 1)), **QUESTION, **change})


def test_labels_that_do_not_fit(make_surrogate):
    surrogate = make_surrogate("cns2d")
    flat = xr.DataArray(np.ones((2, 8, 4)), dims=("sample", "x", "channel"))
    with pytest.raises(
        ValueError, match=r"u0 has the dimensions \('sample', 'x', 'channel'\); this surrogate of cns2d"
    ):
        surrogate.predict(flat, 1.0)
    named = xr.DataArray(np.ones((8, 8, 2)), {"channel": ["density", "vx"]}, ("x", "y", "channel"))
    sentence = r"u0 has the channels density, vx; this surrogate of cns2d expects density, pressure, vx, vy. Rename"
    with pytest.raises(ValueError, match=sentence):
        surrogate.predict(named, 1.0)
