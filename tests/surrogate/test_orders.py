"""Initial states whose axes are in another order than they are read in."""

import warnings

import numpy as np
import pytest
import xarray as xr

from vcnef.data import from_arrays
from vcnef.surrogate import Surrogate

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
X = (np.arange(32) + 0.5) / 32
STATES = np.sin(2 * np.pi * (X + np.linspace(0, 1, 5)[:, None]))
"""Five states of one field on 32 points."""


@pytest.fixture(scope="module")
def line():
    u = np.repeat(STATES[:, None, :, None], 3, axis=1)
    return Surrogate.build("vcnef", TINY, from_arrays(u, x=X), seed=0)


@pytest.fixture(scope="module")
def plane():
    u = np.random.default_rng(0).random((4, 3, 12, 8, 2))
    return Surrogate.build("vcnef", TINY | {"patches": (4,)}, from_arrays(u), seed=0)


@pytest.mark.parametrize(
    ("u0", "layout"),
    [
        (STATES.T, "x n"),
        (STATES.T[..., None], "x n c"),
        (STATES[:, None], "n c x"),
        (STATES[None], "c n x"),
    ],
)
def test_an_order_that_has_the_points_of_training(line, u0, layout):
    expected = line.predict(STATES[: u0.size // 32], 0.5)
    if layout != "c n x":
        with pytest.raises(ValueError, match=f"layout='{layout}'") as caught:
            line.predict(u0, 0.5)
        assert str(u0.shape) in str(caught.value)
    np.testing.assert_array_equal(line.predict(u0, 0.5, layout=layout), expected)


def test_both_readings_are_named(line):
    sentence = (
        r"u0 has shape \(32, 5\): read as usual, 32 states on 5 points, while the surrogate was trained on 32; as "
        r"'x n' it has these. Give layout='x n' if that is the order of its axes, and otherwise the points, x="
    )
    with pytest.raises(ValueError, match=sentence):
        line.predict(STATES.T, 0.5)
    # Who says where the points are, or what the axes are, means it; the answer is doubtful all the same.
    for told in ({"x": X[:5]}, {"layout": "n x"}):
        with pytest.warns(UserWarning, match="u0 is given on 5 points; the surrogate was trained on 32, many more"):
            line.predict(STATES.T, 0.5, **told)


def test_far_fewer_points_than_in_training_draw_a_warning(line):
    for few in (STATES[:, :7], STATES[:, :1], xr.DataArray(STATES[:, :5], dims=("sample", "x"))):
        with pytest.warns(
            UserWarning, match=r"u0 is given on \d points; the surrogate was trained on 32, many more. If"
        ):
            line.predict(few, 0.5)


@pytest.mark.parametrize("points", [8, 16, 24, 32, 64])
def test_other_resolutions_are_no_mistake(line, points):
    """Also where as many states as points of training are given."""
    states = np.ones((32 if points != 24 else 5, points))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert line.predict(states, 0.5).shape[2] == points


def test_planes(plane):
    u0 = np.random.default_rng(1).random((3, 12, 8, 2))
    expected = plane.predict(u0, 0.5)
    for layout, given in {"n c x y": u0.transpose(0, 3, 1, 2), "x y c n": u0.transpose(1, 2, 3, 0)}.items():
        with pytest.raises(ValueError, match=f"layout='{layout}'"):
            plane.predict(given, 0.5)
        np.testing.assert_array_equal(plane.predict(given, 0.5, layout=layout), expected)
    with pytest.raises(ValueError, match="Give layout='n y x c' if that"):
        plane.predict(u0.swapaxes(1, 2), 0.5)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("n t x", "layout is 'n t x', with times; u0 is at one time. Select it, and leave t out: layout='n x'"),
        ("n c", "layout is 'n c'; expected a letter .* of which x must be there, e.g. layout='n c x'"),
        ("n c x", r"u0 has shape \(5, 32\), 2 axes; the layout 'n c x' names 3"),
    ],
)
def test_layouts_that_are_none(line, layout, message):
    with pytest.raises(ValueError, match=message):
        line.predict(STATES, 0.5, layout=layout)
    with pytest.raises(ValueError, match="a labelled u0 names its axes itself"):
        line.predict(xr.DataArray(STATES, dims=("sample", "x")), 0.5, layout=layout)
