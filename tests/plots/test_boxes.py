"""Slices and means of 3D fields."""

import io

import numpy as np
import pytest
import torch

from vcnef import plots

TRUTH = np.random.default_rng(0).random((4, 6, 8))
DOMAIN = ((0, 1), (0, 2), (0, 3))


def test_slices_means_and_errors():
    figure = plots.boxes(TRUTH, TRUTH + 0.1, DOMAIN, "density", title="Worst")
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    axes = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
    assert len(axes) == 18
    assert [axis.get_title() for axis in axes[:6]] == [
        "z in the middle", "y in the middle", "x in the middle", "mean over z", "mean over y", "mean over x",
    ]  # fmt: skip
    shown = [axis.images[0].get_array().T for axis in axes]
    views = [TRUTH[:, :, 4], TRUTH[:, 3], TRUTH[2], *(TRUTH.mean(axis) for axis in (2, 1, 0))]
    for i, view in enumerate(views):
        np.testing.assert_allclose(shown[i], view)
        np.testing.assert_allclose(shown[6 + i], view + 0.1)
        np.testing.assert_allclose(shown[12 + i], 0.1)
    assert [axis.images[0].get_extent() for axis in axes[:3]] == [[0, 1, 0, 2], [0, 1, 0, 3], [0, 2, 0, 3]]
    assert [axis.get_ylabel() for axis in axes[::6]] == ["Truth\ny", "Prediction\ny", "Error\ny"]
    assert [(axis.get_xlabel(), axis.get_ylabel()) for axis in axes[13:15]] == [("x", "z"), ("y", "z")]
    limits = [axis.images[0].get_clim() for axis in axes]
    assert len(set(limits[:3] + limits[6:9])) == 1
    assert len(set(limits[3:6] + limits[9:12])) == 1
    assert limits[0] != limits[3]
    assert limits[12][0] == -limits[12][1]
    bars = [axis.get_ylabel() for axis in figure.axes if axis.get_label() == "<colorbar>"]
    assert bars == ["density", "density", "error of density", "mean density", "mean density", "error of mean density"]
    assert figure.get_suptitle() == "Worst"


def test_slices_and_means_of_uneven_cells():
    x = [np.arange(4.0), torch.arange(6.0), np.arange(8.0) ** 2]
    axes = plots.boxes(TRUTH, TRUTH, x=x).axes[:18]
    meshes = {number: axes[number].collections[0] for number in (1, 2)}
    np.testing.assert_allclose(axes[0].images[0].get_array().T, TRUTH[:, :, 5], err_msg="z = 25 of -0.5 to 55.5")
    assert axes[0].images[0].get_extent() == [-0.5, 3.5, -0.5, 5.5]
    for number, view in ((1, TRUTH[:, 3]), (2, TRUTH[2])):
        np.testing.assert_allclose(meshes[number].get_array().T, view)
        np.testing.assert_allclose(meshes[number].get_coordinates()[:2, 0, 1], [-0.5, 0.5])
        np.testing.assert_allclose(meshes[number].get_coordinates()[-2:, 0, 1], [42.5, 55.5])
        assert axes[number].get_aspect() == 1
    widths = np.array([1, 2, 4, 6, 8, 10, 12, 13])
    np.testing.assert_allclose(axes[3].images[0].get_array().T, TRUTH @ widths / 56)
    back = plots.boxes(TRUTH, TRUTH, x=[*x[:2], -x[2]]).axes
    for number in (0, 3):
        np.testing.assert_allclose(back[number].images[0].get_array(), axes[number].images[0].get_array())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.boxes(TRUTH[0], TRUTH), r"truth has shape \(6, 8\); expected the axes \[x y z\]"),
        (lambda: plots.boxes(TRUTH, TRUTH[1:]), r"truth \(4, 6, 8\) and prediction \(3, 6, 8\); expected the same"),
        (lambda: plots.boxes(TRUTH, TRUTH, ((0, 1), (0, 1))), "domain has 2 sides; expected 3"),
        (lambda: plots.boxes(TRUTH, TRUTH, x=(range(4), range(6))), "x has 2 axes; expected 3"),
        (lambda: plots.boxes(TRUTH, TRUTH, x=(range(4), range(7), range(8))), "y has 7 values; expected 6"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
