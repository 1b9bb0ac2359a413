"""Units whose factor is certain are converted at every door: the answer is that to values in the model's units."""

import warnings
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
import xarray as xr

import vcnef as library
from vcnef.data import from_arrays
from vcnef.data import open as open_data
from vcnef.data.other_units import convert_trajectories
from vcnef.data.sets import make_sets
from vcnef.evaluation.held_out import choose_judged
from vcnef.surrogate import Surrogate

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
UNITS = {"t": "s", "x": "m", "h": "m", "q": "m2/s", "a": "m/s"}
OTHERS = {"t": ("ms", 1e-3), "x": ("km", 1e3), "h": ("km", 1e3), "q": ("cm2/s", 1e-4), "a": ("km/h", 1 / 3.6)}
"""Another unit of each, and what its values are multiplied by."""
EVERY = [*OTHERS, "all"]
X, T = (np.arange(16) + 0.5) / 16, np.linspace(0, 1, 5)
TIMES = [0.25, 0.5]


def waves(samples=6):
    """Two fields in a dataset in the units of the model."""
    speed = np.linspace(0.5, 1.5, samples)
    wave = np.sin(2 * np.pi * (X - speed[:, None, None] * T[:, None]))
    fields = {"h": (("sample", "t", "x"), 3 + wave), "q": (("sample", "t", "x"), 2 * wave)}
    data = xr.Dataset(fields | {"a": ("sample", speed)}, {"t": T, "x": X})
    for name, unit in UNITS.items():
        data[name].attrs["units"] = unit
    return data


def elsewhere(data, name):
    """The same with one of its names in another unit, or with all of them."""
    changed = {}
    for each in OTHERS if name == "all" else [name]:
        unit, factor = OTHERS[each]
        changed[each] = (data[each].dims, data[each].values / factor, {"units": unit})
    return data.assign({key: changed.pop(key) for key in ("h", "q", "a") if key in changed}).assign_coords(changed)


def one_array(state):
    """A dataset as an array over channels that notes their units beside them."""
    units = [state[name].attrs["units"] for name in "hq"]
    return state.set_coords("a").to_array("channel").assign_coords(units=("channel", units))


@pytest.fixture(scope="module")
def surrogate():
    return Surrogate.build("vcnef", TINY, from_arrays(waves()), seed=0)


@pytest.fixture(scope="module")
def right(surrogate):
    """The answer to the same states in the model's own units."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return surrogate.predict(waves().isel(t=0), TIMES)


def converted(call, name):
    """What a call answers, if it says once of each name that it was multiplied, and nothing else of units."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = call()
    texts = [str(each.message) for each in said]
    for each in OTHERS if name == "all" else [name]:
        unit, factor = OTHERS[each]
        about = [text for text in texts if f"{each} " in text and f"is in {unit!r}" in text]
        expected = f"is in {unit!r} and was multiplied by {factor:.12g}: "
        assert len(about) == 1, texts
        assert expected in about[0]
        assert about[0].endswith(f"has it in {UNITS[each]!r}.")
    assert not [text for text in texts if "trained on" in text or "domain" in text], texts
    return found


def assert_same(found, right):
    np.testing.assert_allclose(found.values, right.values, rtol=1e-6, atol=1e-6)
    for name in ("t", "x", "a"):
        np.testing.assert_allclose(found[name].values, right[name].values, rtol=1e-6)
        assert found[name].attrs["units"] == UNITS[name]
    assert found["units"].values.tolist() == ["m", "m2/s"]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("kind", ["dataset", "with remarks", "array", "one variable", "list of units", "other names"])
def test_labelled_states(surrogate, right, name, kind):
    state = elsewhere(waves(), name).isel(t=0)
    if kind == "with remarks":
        state["remark"] = "sample", list("abcdef")
    elif kind != "dataset":
        state = one_array(state)
    if kind == "one variable":
        state = state.transpose("sample", "x", "channel").to_dataset(name="state")
    if kind == "list of units":
        state = state.assign_attrs(Unit=state["units"].values.tolist()).drop_vars("units")
    if kind == "other names":
        state = state.isel(channel=[1, 0]).rename(sample="batch").transpose("x", "channel", "batch")
    assert_same(converted(lambda: surrogate.predict(state, TIMES), name), right)


def test_the_domain_that_states_note_is_in_the_units_of_their_points(surrogate, right):
    state = elsewhere(waves(), "x").isel(t=0).assign_attrs(problem="custom", periodic=1, domain=[0.0, 1e-3])
    assert_same(converted(lambda: surrogate.predict(state, TIMES), "x"), right)


def test_plain_times_beside_a_clock_in_another_unit_are_those_of_the_model(surrogate):
    state = elsewhere(waves(), "t").isel(t=0)
    with pytest.warns(UserWarning, match="t notes no unit and is taken to be in 's', unlike the time of u0"):
        surrogate.predict(state, TIMES)


def labelled(values, unit):
    return xr.DataArray(values, attrs={"units": unit})


def test_times_points_and_parameters_beside_states(surrogate, right):
    u0 = np.stack([waves()[name].values[:, 0] for name in "hq"], axis=-1)
    a = waves()["a"].values
    given = (
        ("t", labelled(1e3 * np.array(TIMES), "ms"), {"a": a}, X),
        ("a", TIMES, {"a": labelled(3.6 * a, "km/h")}, X),
        ("x", TIMES, {"a": a}, labelled(X / 1e3, "km")),
        ("x", TIMES, {"a": a}, [labelled(X / 1e3, "km")]),
    )
    for name, t, params, x in given:
        assert_same(converted(lambda t=t, params=params, x=x: surrogate.predict(u0, t, params, x), name), right)


def test_records_and_their_times():
    times, g = np.array([0.0, 0.4, 1.0]), np.array([0.1, 0.5, 0.2])
    data = from_arrays(waves()["h"].values[..., None], t=T, x=X, params={"g": np.tile(T, (6, 1))})
    data = replace(data, problem=replace(data.problem, units={"t": "s", "g": "m"}))
    model = Surrogate.build("vcnef", TINY, data, seed=0, window=0.5)
    u0 = waves()["h"].values[:, 0, :, None]
    right = model.predict(u0, TIMES, {"g": g}, params_t=times)
    record = xr.DataArray(g / 1e3, {"t": ("t", 1e3 * times, {"units": "ms"})}, attrs={"units": "km"})
    with pytest.warns(UserWarning, match="t of the parameter g is in 'ms' and was multiplied by 0.001"):
        found = model.predict(u0, TIMES, {"g": record})
    np.testing.assert_allclose(found.values, right.values, atol=1e-6)
    with pytest.warns(UserWarning, match="params_t is in 'ms' and was multiplied by 0.001"):
        found = model.predict(u0, TIMES, {"g": g}, params_t=labelled(1e3 * times, "ms"))
    np.testing.assert_allclose(found.values, right.values, atol=1e-6)


def test_a_unit_of_x_holds_for_y():
    x, y, c = (np.arange(12) + 0.5) / 12, 2 * (np.arange(16) + 0.5) / 16, np.linspace(0.5, 1.5, 4)
    u = np.sin(2 * np.pi * (x[:, None] + y / 2) + c[:, None, None, None] * T[:, None, None])[..., None]
    data = from_arrays(u, t=T, x=(x, y), params={"c": c})
    data = replace(data, problem=replace(data.problem, units={"x": "m"}))
    model = Surrogate.build("vcnef", TINY | {"patches": ()}, data, seed=0)
    right = model.predict(u[:, 0], TIMES, {"c": c}, (x, y))
    state = xr.DataArray(u[:, 0, ..., 0], {"x": x / 1e3, "y": y / 1e3}, ("sample", "x", "y"))
    state["x"].attrs["units"] = "km"
    with pytest.warns(UserWarning, match="u0's y is in 'km' and was multiplied by 1000"):
        found = model.predict(state, TIMES, {"c": c})
    np.testing.assert_allclose(found.values, right.values, atol=1e-6)
    # Beside each other, one that notes nothing is not known to be in the unit of the other.
    with pytest.raises(ValueError, match="x is in 'km' in the question"):
        model.predict(u[:, 0], TIMES, {"c": c}, (labelled(x / 1e3, "km"), y))
    kilometres = replace(data, grid=data.grid / 1e3)
    kilometres = replace(
        kilometres, problem=replace(data.problem, units={"x": "km"}, domain=((0.0, 1e-3), (0.0, 2e-3)))
    )
    found, _ = convert_trajectories(kilometres, {"x": "m"})
    assert found.problem.domain == ((0.0, 1.0), (0.0, 2.0))
    torch.testing.assert_close(found.grid, data.grid)


@pytest.fixture(scope="module")
def folder(surrogate, tmp_path_factory):
    place = tmp_path_factory.mktemp("units")
    surrogate.save(place)
    return place


def hdf5_of_arrays(data, path):
    """States as plain datasets, each of which notes its unit."""
    with h5py.File(path, "w") as file:
        file["u0"] = np.stack([data[name].values[:, 0] for name in "hq"], axis=-1)
        file["u0"].attrs["units"] = [data[name].attrs["units"] for name in "hq"]
        file.attrs["channels"] = ["h", "q"]
        for name in ("x", "a"):
            file[name] = data[name].values
            file[name].attrs["units"] = data[name].attrs["units"]
    return path


@pytest.mark.parametrize("kind", ["trajectories.nc", "trajectories.npz", "trajectories.hdf5", "states.hdf5"])
@pytest.mark.parametrize("name", EVERY)
def test_files_on_the_command_line(vcnef, folder, right, tmp_path, kind, name):
    data = elsewhere(waves(), name)
    path = tmp_path / kind
    if kind == "states.hdf5":
        if name in ("t", "all"):
            return
        hdf5_of_arrays(data, path)
    else:
        from_arrays(data).save(path)
    out = tmp_path / "answer.npz"
    code, _, said = vcnef("predict", folder, "--input", path, "--times", "0.25,0.5", "--out", out, "--device", "cpu")
    assert code == 0, said
    for each in OTHERS if name == "all" else [name]:
        unit, factor = OTHERS[each]
        assert said.count(f"is in {unit!r} and was multiplied by {factor:.12g}: the model of custom has it") == (
            [OTHERS[one][0] for one in (OTHERS if name == "all" else [name])].count(unit)
        ), said
    assert "trained on" not in said
    np.testing.assert_allclose(open_data(out).u[:, -1].numpy(), right.values[:, -1], rtol=1e-6, atol=1e-6)


def test_what_is_told_on_the_command_line_replaces_the_unit_of_a_file(vcnef, folder, tmp_path):
    path = from_arrays(elsewhere(waves(), "a")).save(tmp_path / "other.nc")
    out = tmp_path / "answer.nc"
    asked = ("--times", "0.5", "--out", out, "--device", "cpu", "--param", "a=1.0")
    code, _, said = vcnef("predict", folder, "--input", path, *asked)
    assert code == 0
    assert "multiplied" not in said


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("stream", [False, True])
def test_data_to_be_judged(surrogate, tmp_path, name, stream):
    expected = library.evaluate(surrogate, from_arrays(waves()), split="all", solver=False)
    path = from_arrays(elsewhere(waves(), name)).save(tmp_path / "other.hdf5")
    found = library.evaluate(surrogate, open_data(path, stream=stream), split="all", solver=False)
    for metric, value in expected.result.scores["overall"].items():
        assert found.result.scores["overall"][metric] == pytest.approx(value, rel=2e-5), metric
    np.testing.assert_allclose(found.nrmse, expected.nrmse, rtol=1e-5)
    np.testing.assert_allclose(found.params["a"], expected.params["a"], rtol=1e-6)
    for each in OTHERS if name == "all" else [name]:
        unit, factor = OTHERS[each]
        note = f"{each} of the data is in {unit!r} and was multiplied by {factor:.12g}: the model has it in "
        assert any(said.startswith(note) for said in found.notes)
    assert not [said for said in found.notes if "trained on 0" in said or "domain" in said]


@pytest.mark.parametrize("stream", [False, True])
def test_trajectories_are_those_in_the_units_of_the_model(tmp_path, stream):
    expected = from_arrays(waves())
    path = from_arrays(elsewhere(waves(), "all")).save(tmp_path / "other.hdf5")
    found, names = convert_trajectories(open_data(path, stream=stream), expected.problem.units)
    assert names.keys() == OTHERS.keys()
    assert found.problem.units == UNITS
    rows = torch.tensor([1, 4])
    torch.testing.assert_close(found.read(rows), expected.read(rows), rtol=1e-6, atol=1e-6)
    for name in ("t", "grid", "params"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-7)
    assert found.problem.ranges["a"] == pytest.approx((0.5, 1.5))
    assert found.problem.domain[0] == pytest.approx(expected.problem.domain[0])


def test_data_of_training_in_other_units_are_judged_on_their_test_split():
    data = from_arrays(waves(samples=40))
    model = Surrogate.build("vcnef", TINY, data, seed=0)
    model.provenance |= make_sets(data, 0.1).provenance()
    other = from_arrays(elsewhere(waves(samples=40), "h"))
    judged = choose_judged(model, other)
    assert judged.split == "test"
    assert "in other units than those of training, and lack the last digits" in judged.notes[0]
    torch.testing.assert_close(judged.data.u, choose_judged(model, data).data.u, rtol=1e-6, atol=1e-6)
    # Other parameters do not change the fields, by which trajectories are known.
    assert "lack" not in "".join(choose_judged(model, from_arrays(elsewhere(waves(samples=40), "a"))).notes)


def test_values_that_the_factor_makes_too_large_are_refused(surrogate):
    data = from_arrays(waves())
    large = replace(data, u=data.u * 1e37, problem=replace(data.problem, units={"h": "km"}))
    with pytest.raises(ValueError, match=r"h is up to .*; single precision, in which it is kept, ends at"):
        choose_judged(surrogate, large, "all")


def test_states_in_words_are_not_multiplied(surrogate):
    state = elsewhere(waves(), "h").isel(t=0)
    state["h"] = state["h"].dims, state["h"].values.astype(str), {"units": "km"}
    with pytest.raises(ValueError, match="h is in 'km' in the question"):
        surrogate.predict(state, TIMES)


def test_states_of_a_solver():
    known = replace(library.pde.equation("burgers"))
    object.__setattr__(known, "problem", replace(known.problem, units={"u": "m/s", "nu": "m2/s", "x": "m", "t": "s"}))
    x, u = (np.arange(16) + 0.5) / 16, 0.5 * np.sin(2 * np.pi * (np.arange(16) + 0.5) / 16)
    right = library.solve(known, torch.tensor(u)[None, :, None], t=[0.0, 0.1], params={"nu": 0.01})
    state = xr.DataArray(3.6 * u[None], {"x": 100 * x}, ("sample", "x"), name="u", attrs={"units": "km/h"})
    state["x"].attrs["units"] = "cm"
    nu, t = labelled(100.0, "cm2/s"), labelled(np.array([0.0, 100.0]), "ms")
    with pytest.warns(
        UserWarning, match=r"u0's u is in 'km/h' and was .*: the equation 'burgers' has it in 'm/s'\."
    ) as w:
        found = library.solve(known, state, t=t, params={"nu": nu})
    assert len(w) == 4
    torch.testing.assert_close(found, right, rtol=1e-6, atol=1e-6)
