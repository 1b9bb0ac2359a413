"""Units are compared wherever two sides note them, and refused where no factor is certain.

Where one is, they are converted: see test_conversion.py.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

import vcnef as library
from vcnef.data import from_arrays
from vcnef.surrogate import Surrogate
from vcnef.units import are_equal, check_units, conversions, factor_between

UNITS = {"t": "s", "x": "m", "h": "m", "a": "m/s"}
X = (np.arange(16) + 0.5) / 16
T = np.linspace(0, 1, 5)


def labelled(samples=6, **other):
    """Waves of two fields in a dataset that notes all of its units."""
    speed = np.linspace(0.5, 1.5, samples)
    wave = np.sin(2 * np.pi * (X - speed[:, None, None] * T[:, None]))
    fields = {"h": (("sample", "t", "x"), wave), "q": (("sample", "t", "x"), 2 * wave)}
    data = xr.Dataset(fields | {"a": ("sample", speed)}, {"t": T, "x": X})
    for name, unit in (UNITS | other).items():
        data[name].attrs["units"] = unit
    return data


@pytest.fixture(scope="module")
def surrogate():
    tiny = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
    return Surrogate.build("vcnef", tiny, from_arrays(labelled()), seed=0)


@pytest.fixture(scope="module")
def folder(surrogate, tmp_path_factory):
    place = tmp_path_factory.mktemp("units")
    surrogate.save(place)
    return place


OTHERS = {"t": "fortnight", "x": "furlong", "h": "degC", "a": "knots"}
"""Units that nobody can convert for certain."""


@pytest.mark.parametrize(
    ("one", "other", "factor"),
    [
        ("km/h", "m/s", 1 / 3.6),
        ("kg m-3", "g/cm^3", 1e-3),
        ("min", "seconds", 60.0),
        ("m²/s", "m2 s-1", 1.0),
        ("m.s-1", "m/s", 1.0),
        ("Hours", "s", None),
        ("degC", "K", None),
        ("m", "s", None),
        ("m//s", "m/s", None),
    ],
)
def test_how_many_of_one_unit_the_other_is(one, other, factor):
    found = factor_between(one, other)
    assert found is None if factor is None else found == pytest.approx(factor)


def test_one_unit_in_several_spellings():
    assert are_equal("m/s", "m s**-1")
    assert are_equal("hours since 2000-01-01", "h")
    assert are_equal("furlong", "furlong")
    assert not are_equal("furlong", "m")


def test_a_side_that_says_nothing_is_believed():
    check_units({}, UNITS, "here", "there")
    check_units({"h": "km"}, {"t": "s"}, "here", "there")
    with pytest.raises(ValueError, match=r"^y is in 'km' in here and in 'm' in there\. Multiply it by 1000 and note"):
        check_units({"y": "km"}, {"x": "m"}, "here", "there")
    with pytest.raises(ValueError, match="Convert its values and note its unit as 'K'"):
        check_units({"T": "degC"}, {"T": "K"}, "here", "there")


def test_only_certain_factors_convert():
    found = conversions({"h": "km", "q": "m", "a": "furlong", "y": "cm"}, {"h": "m", "q": "m", "a": "m", "x": "m"})
    assert {name: each.factor for name, each in found.items()} == {"h": 1000.0, "y": pytest.approx(0.01)}
    assert conversions({"t": "days since 2000-01-01"}, {"t": "s"}) == {}
    assert conversions({"t": "s"}, {"t": "days since 2000-01-01"}) == {}


@pytest.mark.parametrize("name", OTHERS)
def test_data_in_other_units_are_not_judged(surrogate, name):
    data = from_arrays(labelled(**{name: OTHERS[name]}))
    with pytest.raises(ValueError, match=f"^{name} is in '{OTHERS[name]}' in the data and in '{UNITS[name]}' in the"):
        library.evaluate(surrogate, data)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", ["dataset", "array"])
def test_a_labelled_state_in_other_units_is_refused(surrogate, name, kind):
    state = labelled(**{name: OTHERS[name]}).isel(t=0)
    if kind == "array":
        units = [state[each].attrs.get("units", "") for each in "hq"]
        state = state.set_coords("a").to_array("channel").assign_coords(units=("channel", units))
    with pytest.raises(ValueError, match=f"^{name} is in '{OTHERS[name]}' in the question and in '{UNITS[name]}'"):
        surrogate.predict(state, [0.5])


def test_a_labelled_state_in_the_same_units_is_answered(surrogate):
    state = labelled(a="m s-1", t="seconds").isel(t=0)
    assert surrogate.predict(state, [0.5]).sizes["sample"] == 6


def test_times_and_parameters_bring_units_of_their_own(surrogate):
    state, one = labelled().isel(t=0).drop_vars("a"), np.ones(6)
    for asked, params in (
        (xr.DataArray([500.0], attrs={"units": "ms since noon"}), {"a": one}),
        ([0.5], {"a": xr.DataArray(one, attrs={"units": "knots"})}),
    ):
        with pytest.raises(ValueError, match="in the question and in"):
            surrogate.predict(state, asked, params)
    # What replaces a label replaces its unit.
    other = labelled(a="knots").isel(t=0)
    assert surrogate.predict(other, [0.5], {"a": one}).sizes["sample"] == 6


@pytest.mark.parametrize("suffix", [".nc", ".npz", ".hdf5"])
@pytest.mark.parametrize("name", ["t", "h", "a"])
def test_files_in_other_units_are_refused_on_the_command_line(vcnef, folder, tmp_path, suffix, name):
    path = from_arrays(labelled(**{name: OTHERS[name]})).save(tmp_path / f"other{suffix}")
    out = tmp_path / "answer.nc"
    code, _, said = vcnef("predict", folder, "--input", path, "--times", "0,0.5", "--out", out, "--device", "cpu")
    assert code == 2
    assert f"{name} is in '{OTHERS[name]}' in the file" in said
    assert not out.exists()


def test_files_in_the_same_units_are_answered_on_the_command_line(vcnef, folder, tmp_path):
    path = from_arrays(labelled()).save(tmp_path / "same.nc")
    out = tmp_path / "answer.nc"
    assert vcnef("predict", folder, "--input", path, "--times", "0,0.5", "--out", out, "--device", "cpu")[0] == 0
    assert xr.open_dataset(out, engine="h5netcdf").h.attrs["units"] == "m"


def test_files_of_other_units_are_not_opened_together(tmp_path):
    paths = [from_arrays(labelled(h=unit)).save(tmp_path / f"{unit}.nc") for unit in ("m", "km")]
    with pytest.raises(ValueError, match=r"h is in km and m\. Multiply it by 1000 and note its unit as 'm'\.$"):
        library.open(paths)
    paths[1] = from_arrays(labelled(h="metres")).save(tmp_path / "metres.nc")
    assert len(library.open(paths)) == 12


def test_a_validation_set_in_other_units_is_refused():
    data, other = from_arrays(labelled()), from_arrays(labelled(h="km"))
    with pytest.raises(ValueError, match=r"The valid set does not fit .* h is in km and m"):
        library.fit(data, valid=other, out="never", quiet=True)


def test_what_is_given_beside_labels_replaces_their_units():
    assert from_arrays(labelled(), t=T * 2, params={"a": np.ones(6)}).problem.units == {"x": "m", "h": "m"}
    told = from_arrays(labelled(), t=xr.DataArray(T, attrs={"units": "ms"}))
    assert told.problem.units == UNITS | {"t": "ms"}


def test_a_solver_that_knows_units_compares_them():
    known = library.pde.equation("burgers")
    known = replace(known)
    object.__setattr__(known, "problem", replace(known.problem, units={"u": "m/s", "nu": "m2/s"}))
    state = xr.DataArray(np.ones((2, 8)), dims=("sample", "x"), name="u", attrs={"units": "knots"})
    with pytest.raises(ValueError, match="u is in 'knots' in u0 and in 'm/s' in the equation 'burgers'"):
        library.solve(known, state, t=[0.0, 0.1])
    state.attrs["units"] = "m s-1"
    assert library.solve(known, state, t=[0.0, 0.1]).shape == (2, 2, 8, 1)
    nu = xr.DataArray(0.1, attrs={"units": "St"})
    with pytest.raises(ValueError, match=r"nu is in 'St' .* Convert its values"):
        library.solve(known, torch.ones(2, 8, 1), t=[0.0, 0.1], params={"nu": nu})
