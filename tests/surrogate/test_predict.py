"""Predictions: many forms of the question, one labelled answer, and a plain word when something does not fit."""

import numpy as np
import pytest
import torch
import xarray as xr

from vcnef.data import from_arrays
from vcnef.data import open as open_data
from vcnef.grid import cell_centres
from vcnef.surrogate import Surrogate
from vcnef.surrogate.export import choose_points

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


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_labels_are_those_that_were_given(make_surrogate, kind):
    t, x = np.linspace(0, 2, 11).astype(kind), ((np.arange(12) + 0.5) / 12).astype(kind)
    truth = xr.DataArray(np.ones((11, 12)), {"t": t, "x": x}, ("t", "x"))
    surrogate = make_surrogate()
    answers = [
        surrogate.predict(truth.isel(t=0), t=truth.t, params={"nu": 0.01}),
        surrogate.predict(truth.values[0], t=torch.from_numpy(t), params={"nu": 0.01}, x=(torch.from_numpy(x),)),
    ]
    for answer in answers:
        # Where labels differ in a digit, xarray leaves the point out without a word.
        assert (answer - truth).sizes == answer.sizes
        assert answer.t.dtype == answer.x.dtype == kind
        assert answer.dtype == np.float32
        assert answer.sel(t=0.2).shape == (1, 12, 1)


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


@pytest.mark.filterwarnings("ignore:predict cuts the gradient")
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


@pytest.mark.filterwarnings("ignore:eta is")
def test_parameters_join_those_of_a_labelled_state(make_surrogate, make_data):
    """Even one that training holds a single value of: that is no reason to leave out what a state says."""
    surrogate, data = make_surrogate("cns2d", spread=(0.01, 0.01)), make_data("cns2d", samples=2)
    state = xr.DataArray(data.u[:, 0], dims=("sample", "x", "y", "channel"), coords={"eta": 0.02, "zeta": 0.03})
    with pytest.warns(UserWarning, match="zeta is 0.03 to 0.03; the surrogate was trained on 0.01 to 0.01"):
        answer = surrogate.predict(state, 1.0, {"eta": [0.04, 0.05]})
    np.testing.assert_array_equal(answer.eta, np.float32([0.04, 0.05]))
    np.testing.assert_array_equal(answer.zeta, np.float32([0.03, 0.03]))


@pytest.mark.parametrize("name", ["burgers", "cns2d"])
def test_a_saved_answer_is_the_next_state(make_surrogate, make_data, tmp_path, name):
    surrogate, data = make_surrogate(name), make_data(name, samples=2)
    params = dict.fromkeys(data.problem.parameters, 0.02)
    answer = surrogate.predict(data.u[:, 0], [0.5, 1.0], params)
    expected = surrogate.predict(answer.isel(t=-1), 0.5)
    answer.to_netcdf(tmp_path / "answer.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "answer.nc", engine="h5netcdf") as saved:
        again = surrogate.predict(saved.isel(t=-1), 0.5)
        np.testing.assert_array_equal(again, expected)
        np.testing.assert_array_equal(again[data.problem.parameters[0]], np.float32([0.02, 0.02]))
    assert open_data(tmp_path / "answer.nc").problem.channels == data.problem.channels


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
    with pytest.warns(
        UserWarning, match="u0 is given on scattered points; the surrogate was trained on a uniform grid"
    ):
        u = make_surrogate("heat").predict(torch.ones(2, 10, 1), 1.0, x=points)
    assert u.dims == ("sample", "t", "point", "channel")
    np.testing.assert_allclose(u.y, points[:, 1])
    data = from_arrays(u)
    assert torch.equal(data.grid, points)
    np.testing.assert_array_equal(data.u, u)
    with pytest.raises(ValueError, match=r"expected sample, t, channel and some of x, y, z, or point with x, y, z"):
        from_arrays(u.drop_vars(["x", "y"]))
    assert torch.equal(from_arrays(u.drop_vars(["x", "y"]), x=points).grid, points)


def test_one_state_with_its_points(make_surrogate, make_data):
    surrogate, data = make_surrogate("heat"), make_data("heat")
    state, lines = data.u[0, 0], (data.grid[:, 0, 0], data.grid[0, :, 1])
    expected = surrogate.predict(state, 1.0)
    for points in (lines, [line.tolist() for line in lines], data.grid, data.grid.numpy()):
        for form in (state, state[..., 0], state[None]):
            np.testing.assert_allclose(surrogate.predict(form, 1.0, x=points), expected, rtol=1e-5)


POINTS = torch.rand(50, 2, generator=torch.Generator().manual_seed(3))


def trained_on(x, *shape):
    """An untrained surrogate of a scalar field at these points."""
    u = torch.rand(4, 3, *shape, 1, generator=torch.Generator().manual_seed(4))
    options = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": ()}
    return Surrogate.build("vcnef", options, from_arrays(u, x=x), seed=0), u[:, 0]


def test_scattered_states_come_with_their_points(recwarn):
    surrogate, states = trained_on(POINTS, 50)
    whole = surrogate.predict(states, 1.0, x=POINTS)
    assert whole.sizes == {"sample": 4, "t": 1, "point": 50, "channel": 1}
    np.testing.assert_allclose(surrogate.predict(states[..., 0], 1.0, x=POINTS.tolist()), whole, rtol=1e-5)
    for form in (states[0], states[0, :, 0]):
        np.testing.assert_allclose(surrogate.predict(form, 1.0, x=POINTS), whole[:1], rtol=1e-5)
    assert not recwarn.list
    sentence = r"custom was trained on scattered points, so the shape of u0 does not say .* Pass their coordinates as x"
    with pytest.raises(ValueError, match=sentence):
        surrogate.predict(states, 1.0)
    with pytest.raises(ValueError, match=r"u0 has shape \(2, 4, 50, 1\); .* expects \[sample, point, 1\]"):
        surrogate.predict(torch.ones(2, 4, 50, 1), 1.0, x=POINTS)


def test_the_last_frame_on_scattered_points_is_the_next_state(recwarn):
    surrogate, states = trained_on(POINTS, 50)
    answer = surrogate.predict(states, [0.5, 1.0], x=POINTS)
    expected = surrogate.predict(answer.isel(t=-1).values, 0.5, x=POINTS)
    last = answer.isel(t=-1)
    for form in (last, last.transpose("channel", "point", "sample"), last.to_dataset(dim="channel")):
        again = surrogate.predict(form, 0.5)
        assert again.dims == ("sample", "t", "point", "channel")
        np.testing.assert_allclose(again, expected, rtol=1e-5)
    assert not recwarn.list
    with pytest.raises(ValueError, match=r"does not say where its points are. Pass their coordinates as x"):
        surrogate.predict(last.drop_vars(["x", "y"]), 0.5)


def test_an_uneven_grid_is_given(tmp_path, recwarn):
    x = -torch.cos(torch.pi * (torch.arange(16) + 0.5) / 16)
    surrogate, states = trained_on(x, 16)
    surrogate.save(tmp_path)
    surrogate = Surrogate.load(tmp_path)
    surrogate.predict(states, 1.0, x=x)
    assert not recwarn.list
    with pytest.raises(ValueError, match="custom was trained on an uneven grid, so the shape of u0 does not say where"):
        surrogate.predict(states, 1.0)
    with pytest.warns(UserWarning, match="u0 is given on a uniform grid; the surrogate was trained on an uneven grid"):
        surrogate.predict(states, 1.0, x=torch.linspace(-1, 1, 16))


STRIDES = {"periodic": ((32,), True), "ends": ((27,), False), "plane": ((16, 24), True)}


@pytest.mark.parametrize("kind", STRIDES)
def test_without_coordinates_points_are_those_of_training(tmp_path, recwarn, kind):
    """A stride keeps the first of its points; 27 of them in steps of 8 do not even fill the domain."""
    sides, periodic = STRIDES[kind]
    fields = np.random.default_rng(0).random((6, 3, *sides, 1))
    data = from_arrays(fields, x=[500 + 2.0 * np.arange(n) for n in sides], periodic=periodic).view(space_stride=8)
    Surrogate.build("vcnef", {"width": 16, "heads": 2, "patches": ()}, data).save(tmp_path)
    surrogate = Surrogate.load(tmp_path)
    answer = surrogate.predict(data.u[:, 0], [0.5])
    assert np.array_equal(answer.x, data.grid[..., 0].unique())
    assert np.array_equal(answer, surrogate.predict(data.u[:, 0], [0.5], x=data.grid))
    assert torch.equal(choose_points(surrogate, None, None), data.grid)
    assert not recwarn.list
    finer = surrogate.predict(np.ones((1, *(2 * n for n in data.resolution), 1)), [0.5])
    assert np.array_equal(finer.x, cell_centres(data.problem.domain, 2 * data.resolution[0])[..., 0].unique())


def test_cell_centres_need_no_note(make_surrogate):
    assert "ends" not in make_surrogate().provenance
    far, _ = trained_on(1000 + torch.linspace(0.0, 0.5, 128), 128)
    assert "ends" not in far.provenance


def test_coordinates_of_single_precision_are_uniform(recwarn):
    surrogate, states = trained_on(1000 + torch.linspace(0.0, 0.5, 128), 128)
    surrogate.predict(states, 1.0)
    assert not recwarn.list


def test_a_model_that_does_not_know_its_grid(make_surrogate, recwarn):
    surrogate = make_surrogate()
    del surrogate.provenance["grid"]
    surrogate.predict(np.ones((1, 8, 1)), **QUESTION, x=np.linspace(0, 1, 8) ** 1.2)
    assert not recwarn.list


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
    "units of x": (
        {"x": np.linspace(5, 15, 8)},
        r"x goes from 5 to 15; the surrogate was trained on 0 to 1. Its answer is extrapolated; give u0 on that domain",
    ),
    "half the domain": ({"x": np.linspace(0.03, 0.47, 8)}, r"x goes from 0.03 to 0.47; the surrogate was trained on 0"),
    "time": ({"t": [1.0, 3.0]}, r"t goes to 3; the surrogate was trained to 2. The rest is composed of windows of 2"),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_extrapolation_is_said(make_surrogate, doubt):
    change, sentence = DOUBTS[doubt]
    with pytest.warns(UserWarning, match=sentence):
        make_surrogate().predict(**{"u0": np.ones((1, 8, 1)), **QUESTION, **change})


@pytest.mark.parametrize(("log", "said"), [((), 0), (("u",), 1)])
def test_room_beside_fields_is_measured_as_the_network_sees_them(make_surrogate, recwarn, log, said):
    surrogate = make_surrogate(log=log)
    surrogate.provenance["field_ranges"] = {"u": [0.01, 10.0]}
    surrogate.predict(np.full((1, 8, 1), 0.001), **QUESTION)
    assert [str(each.message).startswith("u0 has u between 0.001 and 0.001") for each in recwarn] == [True] * said


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_field_without_a_logarithm_is_refused(make_surrogate, value):
    message = rf"The u of u0 goes down to {value:g}, but the model knows u by its logarithm\. Give positive values"
    with pytest.raises(ValueError, match=message):
        make_surrogate(log=("u",)).predict(np.full((1, 8, 1), value), **QUESTION)


def test_the_lower_end_of_decades_is_an_end(make_surrogate):
    surrogate = make_surrogate(spread=(1e-8, 0.1))
    with pytest.warns(UserWarning, match="nu is 1e-09; the surrogate was trained on 1e-08 to 0.1"):
        surrogate.predict(np.ones((1, 8, 1)), 1.0, {"nu": 1e-9})


@pytest.mark.parametrize(
    ("model", "options", "right", "wrong"),
    [
        ("vcnef", {"width": 16, "heads": 2, "patches": (4,)}, (8, 16, 24), (4, 12)),
        ("vcnef", {"width": 16, "heads": 2, "patches": ()}, (4, 8, 12), ()),
        ("vcnef", {"width": 16, "heads": 2, "patches": (4,), "variant": "release"}, (8,), (12, 16)),
        ("unet", {"width": 4, "multipliers": (1, 1)}, (8,), (12, 16)),
        ("fno", {"width": 4, "modes": 2, "padding": 2}, (8,), (12, 16)),
        ("fno", {"width": 4, "modes": 2}, (8, 12, 16), ()),
        ("mp_pde", {"width": 32, "depth": 1}, (8,), (12, 16)),
        ("galerkin", {"width": 8, "depth": 1, "spectral_width": 4, "coarse": False}, (4, 8, 12), ()),
        ("galerkin", {"width": 8, "depth": 1, "spectral_width": 4, "coarse": True}, (8,), (12, 16)),
    ],
)
def test_grids_that_a_model_is_not_for_are_said(make_surrogate, recwarn, model, options, right, wrong):
    surrogate = make_surrogate(model=model, options=options)
    for points in right:
        surrogate.predict(np.ones((1, points, 1)), **QUESTION)
    assert not recwarn.list
    for points in wrong:
        with pytest.warns(
            UserWarning, match=f"u0 is given on {points} points; the surrogate was trained on 8, and its"
        ):
            surrogate.predict(np.ones((1, points, 1)), **QUESTION)


def gas(density, pressure):
    return torch.tensor([density, pressure, 0.5, 0.5]).expand(1, 8, 8, 4)


def test_extrapolation_in_the_own_time_of_a_state_is_said(make_surrogate, recwarn):
    surrogate, small = make_surrogate("cns2d", own_time=True), {"eta": 0.01, "zeta": 0.01}
    surrogate.predict(gas(1.0, 1.0), 2.0, small)
    surrogate.predict(gas(0.5, 1.5), 1.0, small)
    assert not recwarn.list
    with pytest.warns(
        UserWarning, match=r"t goes to 2; the surrogate was trained to 1\.1\d* for a state as fast as u0"
    ):
        surrogate.predict(gas(0.5, 1.5), 2.0, small)
    sentence = r"^eta is 0.1, in the own time of its u0 0.1732; the surrogate was trained on 0.00\d* to 0.\d* of that"
    with pytest.warns(UserWarning, match=sentence):
        surrogate.predict(gas(1.5, 0.5), 1.0, {"eta": 0.1, "zeta": 0.01})
    with pytest.warns(UserWarning, match="^eta is 0.2; the surrogate was trained on 0.001 to 0.1") as said:
        surrogate.predict(gas(1.5, 0.5), 1.0, {"eta": 0.2, "zeta": 0.01})
    assert len(said) == 1


def test_within_what_was_trained_nothing_is_said(make_surrogate, recwarn):
    make_surrogate().predict(np.ones((1, 8, 1)), [0.5, 2.0], {"nu": 0.1})
    make_surrogate().predict(np.ones((1, 8, 1)), [0.5, 2.0], {"nu": 0.001})
    for points in (np.linspace(0, 1, 8), (np.arange(64) + 0.1) / 64, (np.arange(8) + 0.5)[:, None] / 8):
        make_surrogate().predict(np.ones((1, len(points), 1)), [0.5, 2.0], {"nu": 0.001}, points)
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
    "unnamed": ({"params": 0.01}, r"params is float; expected values by name, e.g. params=\{'nu': nu\}"),
    "counts": (
        {"params": {"nu": [0.01] * 3}},
        r"params\['nu'\] has shape \(3,\); expected one value or 2, one per sample",
    ),
    "logarithm": (
        {"params": {"nu": [0.01, 0.0]}},
        r"nu is 0, but the model knows nu by its logarithm, as it is trained on 0.001 to 0.1. Give positive values, or",
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


@pytest.mark.filterwarnings("error")
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
    with pytest.raises(ValueError, match=r"u0 has the channels density; this surrogate of heat expects u. Rename"):
        make_surrogate("heat").predict(named.sel(channel="density"), 1.0)
    half = xr.DataArray(np.ones((8, 8, 4)), {"y": np.arange(8.0)}, ("x", "y", "channel"))
    with pytest.raises(
        ValueError, match=r"coordinates for y, but none for x. Add them with array.assign_coords\(x=...\)"
    ):
        surrogate.predict(half, 1.0)
    nothing = xr.Dataset({"depth": (("lat", "lon"), np.ones((8, 8)))})
    sentence = r"u0 is a dataset without a variable over x, y, z or point; it has depth over \('lat', 'lon'\). Rename"
    with pytest.raises(ValueError, match=sentence):
        surrogate.predict(nothing, 1.0)
    beside = named.to_dataset(name="gas").assign(depth=(("x", "y"), np.ones((8, 8))))
    with pytest.raises(ValueError, match=r"several channels in gas and other fields beside. Select one variable"):
        surrogate.predict(beside, 1.0)
