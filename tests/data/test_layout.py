"""Axes in any order: named by a layout, and refused where lengths say that they are in another one."""

import warnings

import numpy as np
import pytest
import torch
import xarray as xr

from vcnef.data import from_arrays
from vcnef.data import open as open_data

U = np.random.default_rng(0).random((4, 5, 8, 6, 2))
"""[n t x y c]"""
T, X, Y = np.arange(5.0), np.arange(8.0), np.arange(6.0)


def in_order(letters):
    """The same numbers with their axes in another order."""
    return U.transpose(["ntxyc".index(letter) for letter in letters])


@pytest.mark.parametrize("layout", ["n t c x y", "N T C X Y", "ntcxy", "y, x, c, t, n", "t n y c x"])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, np.ndarray.tolist])
def test_a_layout_names_the_axes(layout, kind):
    letters = layout.lower().replace(",", "").replace(" ", "")
    given = kind(in_order(letters))
    data = from_arrays(given, t=T, x=(X, Y), layout=layout)
    assert torch.equal(data.u, torch.from_numpy(U).float())
    assert data.u.is_contiguous()
    assert data.problem.channels == ("u1", "u2")


@pytest.mark.parametrize(("layout", "shape"), [("n t x y", (4, 5, 8, 6, 1)), ("t c x y", (1, 5, 4, 8, 6))])
def test_one_channel_or_one_sample_needs_no_axis(layout, shape):
    sizes = dict(zip(layout.split(), (size for size in shape if size > 1), strict=True))
    data = from_arrays(np.ones(list(sizes.values())), layout=layout)
    expected = [sizes.get(letter, 1) for letter in "ntxyc"]
    assert list(data.u.shape) == expected


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("n t q x", "layout is 'n t q x'; expected a letter for each axis, once: n for samples, t for times, c for"),
        ("n t x x", "expected a letter for each axis, once"),
        ("n t c", "of which t and x must be there, e.g. layout='n t c x'"),
        ("n t c y", "expected a letter for each axis"),
        ("n t x", r"u has shape \(4, 5, 8, 6, 2\), 5 axes; the layout 'n t x' names 3. Give a letter for each axis"),
    ],
)
def test_layouts_that_are_none(layout, message):
    with pytest.raises(ValueError, match=message):
        from_arrays(U, layout=layout)


def test_labelled_arrays_have_names_of_their_own():
    labelled = xr.DataArray(U, dims=("sample", "t", "x", "y", "channel"))
    with pytest.raises(ValueError, match="layout is 'n t x y c', but a labelled array names its axes itself"):
        from_arrays(labelled, layout="n t x y c")
    narrow = xr.DataArray(np.ones((3, 5, 8, 1)), dims=("sample", "t", "x", "y"))
    with pytest.raises(ValueError, match=r"a single point along y; .* leave it out with np.squeeze\(u, 3\)"):
        from_arrays(narrow)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((40, 11, 1, 64), r"as 'n t x c' has a single point along x; expected two .* say layout='n t c x'"),
        ((40, 11, 1, 64, 64), r"as 'n t x y c' has a single point along x; .* say layout='n t c x y'"),
        ((40, 11, 1, 64, 1), r"a single point along x; .* leave it out with np.squeeze\(u, 2\)"),
        ((40, 11, 2, 64), "a last axis of 64, that of channels; .* layout='n t c x' or layout='n t x y'; otherwise"),
        ((40, 11, 2, 64, 64), "that of channels; .* layout='n t c x y' or layout='n t x y z'; otherwise"),
        ((4, 3, 2, 16, 16, 16), "that of channels; .* say so with layout='n t c x y z'; otherwise"),
        ((40, 11, 64), r"expected \[samples, times, .* Name its axes, e.g. layout='n t x', or add a missing one"),
    ],
)
def test_shapes_that_can_only_be_a_mistake(shape, message):
    with pytest.raises(ValueError, match=message):
        from_arrays(np.zeros(shape))


@pytest.mark.parametrize(
    ("letters", "given", "layout"),
    [
        ("n t c x", {"x": X}, "n t c x"),
        ("n x t c", {"x": X, "t": T}, "n x t c"),
        ("n x t c", {"t": T, "x": X[:, None]}, "n x t c"),
        ("x t n", {"x": X, "t": T}, "x t n"),
        ("n c t x y", {"x": (X, Y), "t": T}, "n c t x y"),
        ("n t y x c", {"x": (X, Y)}, "n t y x c"),
        ("n t c x y", {"channels": ["a", "b", "c"]}, "n t c x y"),
    ],
)
def test_lengths_that_fit_another_order_are_refused_with_the_layout_to_give(letters, given, layout):
    sizes = {"n": 20, "t": 5, "x": 8, "y": 6, "c": 3}
    u = np.zeros([sizes[letter] for letter in letters.split()])
    with pytest.raises(ValueError, match=rf"does not fit .*\. Give layout='{layout}', if that is the order") as caught:
        from_arrays(u, **given)
    assert str(u.shape) in str(caught.value)
    assert from_arrays(u, layout=layout, **given).u.shape[:2] == (20, 5)


def test_points_that_say_that_the_channel_has_no_axis_settle_it():
    assert from_arrays(np.zeros((4, 5, 8)), x=X).u.shape == (4, 5, 8, 1)
    assert from_arrays(np.zeros((4, 5, 8, 6)), x=(X, Y)).u.shape == (4, 5, 8, 6, 1)
    points = np.random.default_rng(0).random((8, 2))
    assert from_arrays(np.zeros((4, 5, 8)), x=points).problem.ndim == 2
    with pytest.raises(ValueError, match="Give layout='t n x y'"):
        from_arrays(np.zeros((5, 4, 8, 6)), t=T, x=(X, Y))


@pytest.mark.parametrize("shape", [(5, 6, 8, 8), (5, 6, 8, 7), (5, 6, 4, 4, 4)])
def test_unnamed_channels_that_look_like_points_draw_a_warning(shape):
    u = np.random.default_rng(0).random(shape)
    with pytest.warns(UserWarning, match=rf"whose last axis is taken for {shape[-1]} channels. Name them, or give"):
        from_arrays(u)
    axes = "xyz"[: len(shape) - 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_arrays(u, channels=[f"c{i}" for i in range(shape[-1])])
        from_arrays(u, layout=f"n t {' '.join(axes)} c")
        from_arrays(u, x=tuple(np.arange(float(n)) for n in shape[2:-1]))
        from_arrays(u[..., :3])


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize("stream", [True, False])
def test_files_in_another_order(tmp_path, suffix, stream):
    path = tmp_path / f"mine{suffix}"
    given = in_order("ycntx")
    np.save(path, given) if suffix == ".npy" else np.savez(path, u=given, t=T, x=X, y=Y, nu=np.arange(4.0))
    data = open_data(path, layout="y c n t x", stream=stream, space_stride=2, time_stride=2)
    expected = U[:, ::2, ::2, ::2].astype("f4")
    np.testing.assert_array_equal(data.read(torch.tensor([3, 1])), expected[[3, 1]])
    np.testing.assert_array_equal((data.load() if stream else data).u, expected)


def test_files_of_which_the_order_is_doubtful(tmp_path):
    np.save(tmp_path / "first.npy", np.zeros((4, 5, 1, 8)))
    with pytest.raises(ValueError, match=r"first.npy .* a single point along x; .* say layout='n t c x'"):
        open_data(tmp_path / "first.npy")
    np.savez(tmp_path / "swapped.npz", u=np.zeros((4, 8, 5, 1)), t=T, x=X)
    with pytest.raises(
        ValueError, match=r"swapped.npz .* does not fit 5 times, 8 points along x. Give layout='n x t c'"
    ):
        open_data(tmp_path / "swapped.npz")
    np.savez(tmp_path / "bare.npz", u=np.zeros((4, 5, 8)), t=T, x=X)
    assert open_data(tmp_path / "bare.npz").u.shape == (4, 5, 8, 1)
    np.save(tmp_path / "plane.npy", np.random.default_rng(0).random((4, 5, 8, 8)))
    with pytest.warns(UserWarning, match="taken for 8 channels"):
        open_data(tmp_path / "plane.npy")


@pytest.mark.parametrize("suffix", [".nc", ".hdf5", ".npz"])
def test_files_that_name_their_axes_take_no_layout(make_data, tmp_path, suffix):
    path = make_data().save(tmp_path / f"mine{suffix}")
    with pytest.raises(ValueError, match=rf"mine{suffix} .*names its axes itself.* Leave layout out"):
        open_data(path, layout="n t x c")
    with pytest.raises(ValueError, match="layout is 'n t'; expected"):
        open_data(path, layout="n t")
