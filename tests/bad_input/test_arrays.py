"""Arrays that are no trajectories, or whose times, points, names and parameters are not theirs."""

import numpy as np
import pytest
import torch
import xarray as xr

from vcnef.data import from_arrays

SAMPLES, FRAMES = 12, 6
X, T = (np.arange(32) + 0.5) / 32, np.linspace(0, 1, FRAMES)


def take(w, u=None, change=None, **given):
    """The data of the world as arrays, some of them others."""
    fields = w.data.u.numpy().astype("f8") if u is None else u
    fields = fields if change is None else change(fields)
    params = {name: w.data.params[:, i].numpy() for i, name in enumerate("ab")}
    held = {"t": T, "x": X, "params": params, "channels": ["h", "q"]} | given
    return from_arrays(fields, **{name: value for name, value in held.items() if value is not None}).u.numpy()


def labelled(w, change):
    return from_arrays(change(w.data.to_xarray())).u.numpy()


FIELDS = {
    "as they should be": (lambda w: take(w), "right", ""),
    "channels before points": (lambda w: take(w, change=lambda u: u.transpose(0, 1, 3, 2)), "refused", "'n t c x'"),
    "points before times": (lambda w: take(w, change=lambda u: u.transpose(0, 2, 1, 3)), "refused", "layout='n x t c'"),
    "times before samples": (lambda w: take(w, change=lambda u: u.transpose(1, 0, 2, 3)), "refused", "'t n x c'"),
    "a plane without channels": (
        lambda w: from_arrays(np.ones((5, 6, 8, 8))).u.numpy(), "warned", "is taken for 8 channels. Name them"
    ),
    "a larger one": (lambda w: from_arrays(np.ones((5, 6, 9, 20))), "refused", "has a last axis of 20, that"),
    "times and points of equal number": (
        lambda w: from_arrays(
            np.sin(2 * np.pi * X[:, None] - 0.1 * np.arange(32))[None, ..., None].repeat(5, 0), t=X, x=X
        ).u.numpy(),
        "warned", "does not seem to close on itself",
    ),
    "tiny": (lambda w: take(w, change=lambda u: 1e-46 * u), "refused", "u is up to 3.5e-46; single precision"),
    "one channel tiny": (lambda w: take(w, change=lambda u: [1, 1e-46] * u), "refused", "Channel 'q' is up to 3e-47"),
    "tiny beyond double precision": (
        lambda w: take(w, change=lambda u: u.astype("longdouble") * np.longdouble("1e-4000")), "refused", "single prec"
    ),
    "tiny tensors": (lambda w: take(w, 1e-46 * torch.ones(12, 6, 32, 2).double()), "refused", "up to 1e-46; single"),
    "beyond all numbers": (lambda w: take(w, change=lambda u: 1e200 * u), "refused", "ends at 3.4e.38"),
    "far from zero": (lambda w: take(w, change=lambda u: 1e-9 * u + 1e6), "refused", "rounds away more than a"),
    "NaN": (lambda w: take(w, change=lambda u: np.where(u > 3, np.nan, u)), "refused", "u has NaN or infinity in"),
    "bytes": (lambda w: take(w, change=lambda u: u.astype("S3")), "refused", "u is not an array of real numbers"),
    "a dictionary": (lambda w: from_arrays({"u": np.ones((3, 4, 8, 1))}), "refused", "u is a dict of 'u'"),
    "half precision": (lambda w: take(w, change=lambda u: u.astype("f2")), "right", ""),
}  # fmt: skip
BESIDE = {
    "times of none": ({"t": T * 1e-300}, "too close for single precision"),
    "times far from zero": ({"t": 1e9 + 1e-3 * T}, "too close for single precision so far from 0"),
    "times in words": ({"t": ["a"] * 6}, "t is not an array of real numbers"),
    "dates": ({"t": np.datetime64("2000-01-01") + np.arange(6)}, "t is not an array of real numbers"),
    "a time twice": ({"t": [0, 0, 1, 2, 3, 4]}, "t is not increasing and finite"),
    "a time of NaN": ({"t": [0, np.nan, 1, 2, 3, 4]}, "t is not increasing and finite"),
    "a time too few": ({"t": T[:-1]}, r"t has shape \(5,\)"),
    "times in a table": ({"t": T[None]}, r"t has shape \(1, 6\)"),
    "points in words": ({"x": list("abc")}, "x is not an array of real numbers"),
    "a point too few": ({"x": X[:-1]}, r"x has axes of shape \(\(31,\),\)"),
    "points backwards": ({"x": X[::-1]}, "that is not increasing"),
    "points far from zero": ({"x": 1e9 + X}, "too close for single precision so far from 0"),
    "a parameter in words": ({"params": {"a": "x"}}, r"params\['a'\] is not an array"),
    "a parameter of NaN": ({"params": {"a": np.nan}}, r"params\['a'\] has NaN or infinity"),
    "a parameter of some samples": ({"params": {"a": np.ones(5)}}, r"params\['a'\] has shape \(5,\)"),
    "a parameter over times and samples": ({"params": {"a": np.ones((6, 12))}}, r"params\['a'\] has shape \(6, 12\)"),
    "a parameter beyond all numbers": ({"params": {"a": 1e300}}, r"params\['a'\] is up to 1e.300; .*ends at"),
    "a parameter like a point": ({"params": {"x": 1.0}}, "which is the name of a coordinate"),
    "a parameter like a channel": ({"params": {"h": 1.0}}, "names a channel or parameter twice"),
    "a parameter without a name": ({"params": {"": 1.0}}, "has the parameter ''; expected a name"),
    "parameters in a list": ({"params": [1]}, "params is list; expected values by name"),
    "channels in a text": ({"channels": "hq"}, "channels are 'hq'; expected 2 names"),
    "a channel twice": ({"channels": ["h", "h"]}, "names a channel or parameter twice"),
    "a channel too many": ({"channels": ["h", "q", "r"]}, "channels are .* expected 2 names"),
    "a channel of nothing": ({"channels": ["h", None]}, "channels are .* expected 2 names"),
    "a channel like a time": ({"channels": ["t", "q"]}, "which is the name of a coordinate"),
    "channels without names": ({"channels": ["", ""]}, "has the channel ''; expected a name|twice"),
    "a name that is a number": ({"name": 3}, "The name of a problem is 3; expected a text"),
    "sides in words": ({"periodic": "yes"}, "periodic is 'yes'; expected True or False"),
    "sides of two axes": ({"periodic": (True, False)}, "for 2 axes; expected one value for each of x"),
    "a layout of other letters": ({"layout": "ntqx"}, "layout is 'ntqx'; expected a letter for each axis"),
    "a layout that does not fit": ({"layout": "n t c x"}, "expected 32 names"),
}
THREE = {"units": list("abc")}
LABELLED = {
    "a variable over x": (lambda d: d.assign(r=("x", X)), "has r over .x. beside its fields"),
    "latitudes": (lambda d: d.rename(x="lat"), "has no variable over t and x or point"),
    "hours for times": (lambda d: d.drop_vars("t").assign_coords(hours=("t", T)), "but hours in its place"),
    "sides in words": (lambda d: d.assign_attrs(periodic="no"), "The note 'periodic' is 'no'"),
    "a note that is none": (lambda d: d.assign_attrs(vcnef="{"), "the note 'vcnef' is '{', which is no JSON"),
    "a note of others": (lambda d: d.assign_attrs(vcnef='{"parts": [1]}'), "counts 1 trajectories, but there are 12"),
    "NaN": (lambda d: d.where(d.h < 3), "u has NaN or infinity in"),
    "parameters in words": (lambda d: d.drop_vars("a").assign(a=("sample", list("abcdefghijkl"))), "beside its fields"),
    "time backwards": (lambda d: d.isel(t=slice(None, None, -1)), "t is not increasing and finite"),
    "units of others": (
        lambda d: xr.DataArray(np.ones((3, 6, 32, 2)), {"t": T, "x": X}, ("sample", "t", "x", "channel"), attrs=THREE),
        "the units are a, b, c, for the 2 channels",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_fields(world, ends, name):
    call, how, said = FIELDS[name]
    ends(lambda: call(world), how, said)


@pytest.mark.parametrize("name", BESIDE)
def test_arrays_beside(world, ends, name):
    given, said = BESIDE[name]
    ends(lambda: take(world, **given), "refused", said)


@pytest.mark.parametrize("name", LABELLED)
def test_labelled_data(world, ends, name):
    change, said = LABELLED[name]
    ends(lambda: labelled(world, change), "refused", said)


def test_the_name_of_another_equation(world, ends):
    ends(
        lambda: take(world, name="burgers"), "warned", "'burgers', which is an equation in 1D with the channels u; they"
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([0.5], "expected the numbers of trajectories"),
        ([99], "rows are from 99 to 99"),
        ("all", "expected the numbers"),
    ],
)
def test_rows_that_there_are_not(world, ends, rows, said):
    ends(lambda: world.data.select(rows), "refused", said)


def test_files_that_are_no_paths(world, ends):
    ends(lambda: world.data.save(None), "refused", "The file to write is None; expected a path")
