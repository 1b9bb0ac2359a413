"""Questions to a surrogate: states, times, points and parameters that are none, or those of another model."""

import datetime

import numpy as np
import pytest
import xarray as xr

T0 = [0.5]


def ask(w, u0=None, t=T0, params=None, x=None, **more):
    return w.model.predict(w.u0 if u0 is None else u0, t, w.given if params is None else params, x, **more).values


def ask_flat(w, u0=None, x=None):
    return w.flat.model.predict(w.flat.u[:3, 0] if u0 is None else u0, T0, w.flat.given, x).values


def line(w):
    return (np.arange(32) + 0.5) / 32


def but(w, **params):
    return w.given | params


STATES = {
    "as they should be": (lambda w: ask(w), "right", ""),
    "samples and points exchanged": (lambda w: ask(w, w.u0.transpose(1, 0, 2)), "refused", "Give layout='x n c'"),
    "without channels": (lambda w: ask(w, w.u0[..., 0]), "refused", "expects .sample, x, 2. with the channels h, q"),
    "channels first": (lambda w: ask(w, w.u0.transpose(0, 2, 1)), "refused", "Give layout='n c x'"),
    "channels first, said": (lambda w: ask(w, w.u0.transpose(0, 2, 1), layout="n c x"), "right", ""),
    "one point": (lambda w: ask(w, w.u0[:, :1]), "warned", "on 1 points; .* trained on 32, many more"),
    "three points": (lambda w: ask(w, w.u0[:, :3]), "warned", "on 3 points; .* trained on 32, many more"),
    "points of 1D [x, n]": (
        lambda w: w.burgers.predict(w.burgers_data.u[:, 0, :, 0].numpy().T[:, :7], T0, {"nu": 0.05}),
        "refused", "Give layout='x n'",
    ),
    "trajectories": (lambda w: w.burgers.predict(w.burgers_data.u, T0, {"nu": 0.05}), "refused", "u0 has shape"),
    "NaN": (lambda w: ask(w, np.where(w.u0 > 2, np.nan, w.u0)), "refused", "48 non-finite values among 192"),
    "infinite": (lambda w: ask(w, np.where(w.u0 > 2, np.inf, w.u0)), "refused", "48 non-finite values among 192"),
    "too large": (lambda w: ask(w, w.u0 * 1e200), "refused", "single precision, in which it is kept, ends at 3.4e.38"),
    "in kilometres": (lambda w: ask(w, w.u0 / 1000), "warned", "check the units of u0"),
    "channels exchanged": (lambda w: ask(w, w.u0[..., ::-1].copy()), "warned", "check the units of u0"),
    "tiny": (lambda w: ask(w, w.u0 * 1e-46), "refused", "h of u0 is up to 3.09e-46; single precision"),
    "one channel tiny": (lambda w: ask(w, w.u0 * [1, 1e-46]), "refused", "The q of u0 is up to 2.99e-47"),
    "one channel zero": (lambda w: ask(w, w.u0 * [1, 0]), "right", ""),
    "whole numbers": (lambda w: ask(w, (w.u0 * 100).astype(int)), "warned", "check the units"),
    "text": (lambda w: ask(w, "u"), "refused", "u0 is not an array of real numbers"),
    "texts": (lambda w: ask(w, np.array([["a"]])), "refused", "u0 is not an array of real numbers"),
    "complex": (lambda w: ask(w, w.u0 + 0j), "refused", "u0 is not an array of real numbers"),
    "objects": (lambda w: ask(w, w.u0.astype(object)), "refused", "u0 is not an array of real numbers"),
    "a dictionary": (lambda w: ask(w, {"h": 1.0}), "refused", "u0 is not an array of real numbers"),
    "masked": (lambda w: ask(w, np.ma.masked_greater(w.u0, 2)), "refused", "48 of its values are masked"),
    "ragged": (lambda w: ask(w, [[1, 2], [3]]), "refused", "u0 is not an array of real numbers"),
    "none": (lambda w: ask(w, w.u0[:0]), "refused", "nothing in it"),
    "a number": (lambda w: ask(w, 1.0), "refused", r"u0 has shape \(\)"),
    "2D, axes exchanged": (
        lambda w: ask_flat(w, w.flat.u[:3, 0].transpose(0, 2, 1, 3)), "refused", "Give layout='n y x c'"
    ),
    "2D, channels first": (
        lambda w: ask_flat(w, w.flat.u[:3, 0].transpose(0, 3, 1, 2)), "refused", "Give layout='n c x y'"
    ),
    "2D, lines as a plane": (lambda w: ask_flat(w, w.flat.u[:3, 0, 0]), "warned", "on 3×16 points; .* 12×16, many"),
}  # fmt: skip

TIMES = {
    "negative": (lambda w: ask(w, t=[-0.5]), "refused", "none of them negative"),
    "NaN": (lambda w: ask(w, t=[np.nan]), "refused", "none of them negative"),
    "none": (lambda w: ask(w, t=[]), "refused", "expected one or more finite times"),
    "nothing": (lambda w: ask(w, t=None), "refused", "t is not an array of real numbers"),
    "text": (lambda w: ask(w, t="0.5"), "refused", "t is not an array of real numbers"),
    "complex": (lambda w: ask(w, t=[0.5j]), "refused", "t is not an array of real numbers"),
    "dates": (lambda w: ask(w, t=np.array(["2020-01-01"], "M8[s]")), "refused", "its type is datetime64"),
    "durations": (lambda w: ask(w, t=np.array([500], "m8[ms]")), "refused", "its type is timedelta64"),
    "other durations": (lambda w: ask(w, t=[datetime.timedelta(seconds=1)]), "refused", "its type is object"),
    "a table": (lambda w: ask(w, t=[[0.5]]), "refused", "expected one or more finite times"),
    "tiny": (lambda w: ask(w, t=[1e-300]), "refused", "t is up to 1e-300; single precision"),
    "not in order": (lambda w: ask(w, t=[0.5, 0.1]), "right", ""),
    "in another unit": (lambda w: ask(w, t=[50.0]), "warned", "t goes to 50; the surrogate was trained to 1"),
    "endless": (lambda w: ask(w, t=[1e30]), "refused", "1e[+]30 windows of 1; expected at most 100000. Check the unit"),
    "endless, in adaptive windows": (lambda w: ask(w, t=[1e9], tolerance=0.1), "refused", "expected at most 100000"),
    "endless, in steps": (
        lambda w: w.stepper.predict(w.burgers_data.u[:2, 0], [1e9], {"nu": 0.05}), "refused", "steps of 0.2; expected"
    ),
    "endless, for double precision": (lambda w: ask(w, t=[1e300]), "refused", "t is up to 1e.300; single"),
    "labelled in milliseconds": (
        lambda w: ask(w, t=xr.DataArray([500.0], dims="t", attrs={"units": "ms"})), "warned", "t is in 'ms' and was"
    ),
    "labelled by their coordinate": (
        lambda w: ask(w, t=xr.DataArray([500.0], {"t": ("t", [500.0], {"Units": "ms"})}, "t")), "warned", "'ms'"
    ),
    "a start": (lambda w: ask(w, start=0.3), "refused", "this surrogate knows no absolute time"),
    "times of parameters": (lambda w: ask(w, params_t=[0, 1]), "refused", "no parameter of custom changed with time"),
    "a tolerance of 0": (lambda w: ask(w, tolerance=0), "refused", "tolerance is 0; expected a number above 0"),
    "a tolerance of NaN": (lambda w: ask(w, tolerance=np.nan), "refused", "tolerance is nan; expected a number"),
    "a tolerance in words": (lambda w: ask(w, tolerance="fine"), "refused", "tolerance is 'fine'; expected a number"),
    "no memory": (lambda w: ask(w, memory_limit=0), "refused", "memory_limit is 0; expected a size"),
    "memory in words": (lambda w: ask(w, memory_limit="2 potatoes"), "refused", "memory_limit is '2 potatoes'"),
    "an unknown precision": (lambda w: ask(w, precision="fp7"), "refused", "precision is 'fp7'; expected one of"),
}  # fmt: skip

PARAMETERS = {
    "an unknown one": (lambda w: ask(w, params=but(w, c=1)), "refused", "There is no parameter 'c' of custom"),
    "of another case": (lambda w: ask(w, params={"A": 1, "b": 1}), "refused", "There is no parameter 'A' of custom"),
    "by number": (lambda w: ask(w, params={0: 1, "b": 1}), "refused", "There is no parameter 0 of custom"),
    "exchanged": (lambda w: ask(w, params={"a": 0.1, "b": 1.2}), "warned", "a is 0.1 to 0.1; the surrogate was"),
    "missing": (lambda w: ask(w, params={"a": 1}), "refused", "The parameter b .* is missing"),
    "a list": (lambda w: ask(w, params=[1, 2]), "refused", "expected values by name"),
    "a table": (lambda w: ask(w, params=np.ones((3, 2))), "refused", "expected values by name"),
    "too many": (lambda w: ask(w, params=but(w, a=np.ones(4))), "refused", r"params\['a'\] has shape \(4,\)"),
    "in two dimensions": (lambda w: ask(w, params=but(w, a=np.ones((2, 2)))), "refused", r"has shape \(2, 2\)"),
    "NaN": (lambda w: ask(w, params=but(w, a=np.nan)), "refused", r"params\['a'\] has NaN or infinity"),
    "text": (lambda w: ask(w, params=but(w, a="1")), "refused", r"params\['a'\] is not an array of real numbers"),
    "nothing": (lambda w: ask(w, params=but(w, a=None)), "refused", r"params\['a'\] is not an array of real numbers"),
    "complex": (lambda w: ask(w, params=but(w, a=1j)), "refused", r"params\['a'\] is not an array of real numbers"),
    "tiny": (lambda w: ask(w, params=but(w, a=1e-300)), "refused", r"params\['a'\] is up to 1e-300"),
    "in km/h": (
        lambda w: ask(w, params=but(w, a=xr.DataArray(w.given["a"], dims="sample", attrs={"unit": "km/h"}))),
        "warned", "the parameter a is in 'km/h' and was multiplied by 0.27",
    ),
    "in knots": (
        lambda w: ask(w, params=but(w, a=xr.DataArray(w.given["a"], dims="sample", attrs={"unit": "knots"}))),
        "refused", "a is in 'knots' in the question and in 'm/s' .*Convert its values",
    ),
}  # fmt: skip

PLACES = {
    "the wrong way round": (lambda w: ask(w, x=line(w)[::-1]), "refused", "that is not increasing"),
    "NaN": (lambda w: ask(w, x=np.where(line(w) > 0.5, np.nan, line(w))), "refused", "that is not increasing"),
    "twice": (lambda w: ask(w, x=np.repeat(line(w)[::2], 2)), "refused", "that is not increasing"),
    "one too few": (lambda w: ask(w, x=line(w)[:-1]), "refused", r"x has axes of shape \(\(31,\),\)"),
    "along two axes": (lambda w: ask(w, x=(line(w), line(w))), "refused", "x has 2 axes, but u those of"),
    "text": (lambda w: ask(w, x="x"), "refused", "x is not an array of real numbers"),
    "a dictionary": (lambda w: ask(w, x={"x": line(w)}), "refused", "x is not an array of real numbers"),
    "in kilometres": (lambda w: ask(w, x=line(w) / 1000), "warned", "the surrogate was trained on 0 to 1"),
    "elsewhere": (lambda w: ask(w, x=line(w) + 100), "warned", "the surrogate was trained on 0 to 1"),
    "2D, axes exchanged": (lambda w: ask_flat(w, x=(w.flat.y, w.flat.x)), "refused", "expected lengths"),
    "2D, in the order of pictures": (
        lambda w: ask_flat(w, x=np.stack(np.meshgrid(w.flat.x, w.flat.y), -1)), "refused", "expected lengths"
    ),
    "a layout with times": (lambda w: ask(w, layout="n t x"), "refused", "with times; u0 is at one time"),
    "a layout without points": (lambda w: ask(w, layout="n c"), "refused", "of which x must be there"),
    "a layout with one axis twice": (lambda w: ask(w, layout="n x x"), "refused", "a letter for each axis, once"),
    "a layout that does not fit": (lambda w: ask(w, layout="x n c"), "refused", "one value or 32, one per sample"),
}  # fmt: skip
CASES = {
    f"{group}: {name}": case
    for group, cases in {"states": STATES, "times": TIMES, "parameters": PARAMETERS, "places": PLACES}.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_questions(world, ends, name):
    call, how, said = CASES[name]
    ends(lambda: call(world), how, said)
