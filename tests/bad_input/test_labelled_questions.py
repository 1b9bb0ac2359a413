"""Labelled states (xarray): channels, dimensions, coordinates, units and notes that are those of another model."""

import numpy as np
import pytest
import xarray as xr

T0 = [0.5]
X = (np.arange(32) + 0.5) / 32


def ask(w, u0, t=T0, params=None):
    return w.model.predict(u0, t, params).values


def array(w, dims=("sample", "x", "channel"), channels=("h", "q"), values=None, **coords):
    """The states with their parameters."""
    beside = {"channel": list(channels)} if channels else {}
    beside |= {name: ("sample", value) for name, value in w.given.items()}
    return xr.DataArray(w.u0 if values is None else values, beside | coords, dims)


def states(w, **attributes):
    """The same as a dataset with units."""
    return w.data.to_xarray().isel(sample=slice(3), t=0, drop=True).assign_attrs(attributes)


def noting(data, name, value, key="units"):
    changed = data.copy(deep=True)
    changed[name].attrs = {key: value}
    return changed


def same(w, found):
    """Whether the answer is the right one."""
    return None if np.array_equal(found, w.right) else np.array(np.nan)


def at(w, time):
    return array(w, x=X, t=time)


CHANNELS = {
    "by their names": (lambda w: same(w, ask(w, array(w, x=X))), "right", ""),
    "in another order": (
        lambda w: same(w, ask(w, array(w, channels=("q", "h"), values=w.u0[..., ::-1], x=X))), "right", ""
    ),
    "of other names": (lambda w: ask(w, array(w, channels=("p", "v"))), "refused", "u0 has the channels p, v"),
    "in capitals": (lambda w: ask(w, array(w, channels=("H", "Q"))), "refused", "u0 has the channels H, Q"),
    "as numbers": (lambda w: ask(w, array(w, channels=(0, 1))), "refused", "u0 has the channels 0, 1"),
    "twice": (lambda w: ask(w, array(w, channels=("h", "h"))), "refused", "u0 has the channels h, h"),
    "one too many": (lambda w: ask(w, states(w).assign(r=states(w).h)), "refused", "u0 has the channels h, q, r"),
    "one too few": (lambda w: ask(w, states(w)[["h", "a", "b"]]), "refused", "u0 has the channels h;"),
    "a layout beside": (lambda w: w.model.predict(array(w), T0, layout="n x c"), "refused", "Leave layout out"),
}  # fmt: skip
DIMENSIONS = {
    "in another order": (lambda w: same(w, ask(w, array(w, x=X).transpose("channel", "x", "sample"))), "right", ""),
    "y for x": (lambda w: ask(w, array(w, ("sample", "y", "channel"))), "refused", "u0 has the dimensions"),
    "longitudes": (lambda w: ask(w, array(w, ("sample", "lon", "channel"))), "refused", "u0 has the dimensions"),
    "x descending": (lambda w: ask(w, array(w, x=X[::-1].copy())), "refused", "that is not increasing"),
    "x in centimetres": (lambda w: ask(w, array(w, x=100 * X)), "warned", "the surrogate was trained on 0 to 1"),
    "three frames": (
        lambda w: ask(w, w.data.to_xarray().isel(sample=slice(3), t=slice(3))), "refused", "Select one time"
    ),
    "y without its coordinate": (
        lambda w: w.flat.model.predict(
            xr.DataArray(w.flat.u[:3, 0], {"x": w.flat.x}, ("sample", "x", "y", "channel")), T0, w.flat.given
        ),
        "refused", "has coordinates for x, but none for y",
    ),
}  # fmt: skip
UNITS = {
    f"{name} in {unit}": (
        lambda w, n=name, u=unit: ask(w, noting(states(w), n, u)), "warned", f"{name} is in '{unit}' and was multiplied"
    )
    for name, unit in {"h": "km", "q": "km2/s", "a": "km/h", "x": "cm"}.items()
} | {
    "spelled otherwise": (lambda w: same(w, ask(w, noting(states(w), "q", "m**2 s-1"))), "right", ""),
    "nobody knows": (lambda w: ask(w, noting(states(w), "h", "furlong")), "refused", "h is in 'furlong'"),
    "a number": (lambda w: ask(w, noting(states(w), "h", 3)), "refused", "h is in '3'"),
    "a list": (lambda w: ask(w, noting(states(w), "h", ["km", "km"])), "refused", "h is in 'km, km'"),
    "bytes": (lambda w: ask(w, noting(states(w), "h", b"km")), "warned", "h is in 'km' and was mult"),
    "as unit": (lambda w: ask(w, noting(states(w), "h", "km", "unit")), "warned", "h is in 'km' and was"),
    "as Units": (lambda w: ask(w, noting(states(w), "h", "km", "Units")), "warned", "h is in 'km' and was"),
    "of all channels": (lambda w: ask(w, array(w).assign_attrs(units="km")), "refused", "q is in 'km'"),
    "of each channel": (
        lambda w: ask(w, array(w).assign_coords(units=("channel", ["km", "m2/s"]))), "warned", "h is in 'km' and"
    ),
    "of too few channels": (
        lambda w: ask(w, array(w).assign_attrs(units=["m", "m", "m"])), "refused", "the units are m, m, m, for the 2"
    ),
    "replaced with what is told": (
        lambda w: same(w, ask(w, noting(states(w), "a", "km/h"), params=w.given)), "right", ""
    ),
}  # fmt: skip
NOTES = {
    "their own": (lambda w: same(w, ask(w, states(w, problem="custom", periodic=1, domain=[0.0, 1.0]))), "right", ""),
    "other sides": (lambda w: ask(w, states(w, periodic=0)), "warned", "The periodicity of these states is along no"),
    "sides in words": (lambda w: ask(w, states(w, periodic="no")), "refused", "The note 'periodic' is 'no'"),
    "another domain": (lambda w: ask(w, states(w, domain=[0.0, 2.0])), "warned", r"these states is \(0, 2\), that of"),
    "a domain in words": (lambda w: same(w, ask(w, states(w, domain="global"))), "right", ""),
    "another equation": (
        lambda w: w.burgers.predict(
            xr.DataArray(
                w.burgers_data.u[:3, 0].numpy(), {"x": X}, ("sample", "x", "channel"),
                attrs={"problem": "advection", "domain": [0.0, 1.0]},
            ), T0, {"nu": 0.05},
        ),
        "warned", "The equation of these states is advection, that of training was burgers",
    ),
    "another parameter": (
        lambda w: ask(w, array(w).assign_coords(nu=("sample", [1.0, 2.0, 3.0]))), "warned", "not know the parameter"
    ),
    "a parameter over x": (
        lambda w: ask(w, array(w).drop_vars("a").assign_coords(a=("x", X))), "refused", r"has shape \(32,\); expected"
    ),
    "a time that may be the clock": (lambda w: ask(w, at(w, 0.4), [0.6, 1.0]), "warned", "labelled t = 0.4, and t"),
    "a time of the past": (lambda w: same(w, ask(w, at(w, 0.6), [0.5])), "right", ""),
    "a chain of answers": (
        lambda w: ask(w, w.model.predict(w.u0, [0.5, 1.0], w.given).isel(t=-1), [0.5, 1.0]), "right", ""
    ),
}  # fmt: skip
GROUPS = {"channels": CHANNELS, "dimensions": DIMENSIONS, "units": UNITS, "notes": NOTES}
CASES = {f"{group}: {name}": case for group, cases in GROUPS.items() for name, case in cases.items()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:u0 has:UserWarning")
def test_labelled_questions(world, ends, name):
    call, how, said = CASES[name]
    ends(lambda: call(world), how, said)
