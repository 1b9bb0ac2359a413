"""Figures by their structure: axes, labels, and the data in their artists."""

import io
import sys

import matplotlib
import numpy as np
import pytest
import torch

from vcnef import plots
from vcnef.plots import style

T = np.linspace(0.1, 1.0, 10)
X = (np.arange(16) + 0.5) / 16
TRUTH = np.sin(2 * np.pi * (X[None] - T[:, None])) + 2


def draw(figure):
    """Draw for real, as saving does."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=40)
    assert stream.tell() > 1000
    return figure


def pictures(figure):
    """The axes that are not colour bars."""
    return [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]


def test_space_time():
    figure = draw(plots.space_time(TRUTH, TRUTH + 0.1, T, X, "density", title="One"))
    axes = pictures(figure)
    assert [axis.get_title() for axis in axes] == ["Truth", "Prediction", "Error"]
    assert (axes[0].get_xlabel(), axes[0].get_ylabel()) == ("x", "t")
    meshes = [axis.collections[0] for axis in axes]
    np.testing.assert_allclose(meshes[0].get_array().reshape(10, 16), TRUTH)
    np.testing.assert_allclose(meshes[2].get_array().reshape(10, 16), 0.1)
    assert meshes[0].get_clim() == meshes[1].get_clim() == (TRUTH.min(), TRUTH.max())
    low, high = meshes[2].get_clim()
    assert low == -high
    bars = [axis.get_ylabel() for axis in figure.axes if axis not in axes]
    assert bars == ["density", "density", "error of density"]
    np.testing.assert_allclose(axes[0].get_xlim(), (0, 1))
    assert figure.get_suptitle() == "One"


def test_space_time_of_tensors_and_of_what_is_not_finite():
    broken = torch.tensor(TRUTH)
    broken[3:] = torch.nan
    figure = draw(plots.space_time(torch.tensor(TRUTH), broken.bfloat16(), torch.tensor(T), torch.tensor(X)))
    assert pictures(figure)[1].collections[0].get_clim() == (TRUTH.min(), TRUTH.max())


def test_a_prediction_of_a_field_at_rest_is_seen():
    rest = np.full_like(TRUTH, 2.0)
    meshes = [axis.collections[0] for axis in pictures(plots.space_time(rest, TRUTH, T, X))]
    assert meshes[0].get_clim() == meshes[1].get_clim() == (TRUTH.min(), TRUTH.max())


def test_a_channel_may_have_dollars(tmp_path):
    flat, box = (TRUTH.reshape(10, 4, 4), TRUTH[:8].reshape(8, 4, 4))
    drawn = [
        plots.space_time(TRUTH, TRUTH, T, X, "$p_$"),
        plots.fields(flat, flat, T, channel="$p_$"),
        plots.boxes(box, box, channel="$p_$"),
        plots.spectra(TRUTH[None], TRUTH[None], T, channel="$p_$"),
    ]
    for figure in drawn:
        labels = [axis.get_ylabel() for axis in draw(figure).axes]
        assert any(r"\$p_\$" in label for label in labels)
    for number, field in enumerate((TRUTH, flat)):
        assert plots.animate(field[:2], field[:2], T[:2], tmp_path / f"{number}.gif", channel="$p_$").exists()


def test_error_over_time():
    curves = {"vcnef": 0.1 * T, "fno": np.stack([0.1 * T, 0.2 * T, 0.3 * T])}
    axis = draw(plots.error_over_time(curves, T, horizon=0.8)).axes[0]
    lines = axis.get_lines()
    np.testing.assert_allclose(lines[0].get_ydata(), 0.1 * T)
    np.testing.assert_allclose(lines[1].get_ydata(), 0.2 * T)
    assert lines[0].get_color() != lines[1].get_color()
    assert lines[0].get_marker() != lines[1].get_marker()
    assert len(axis.collections) == 1
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["vcnef", "fno", "training horizon"]
    assert (axis.get_xlabel(), axis.get_ylabel(), axis.get_ylim()[0]) == ("t", "nRMSE", 0)


def test_trajectories_that_are_not_finite_are_worse_than_all_others():
    errors = np.outer(np.arange(1, 12), np.ones(10))
    errors[0, 2:] = np.nan
    errors[:6, 8:] = np.inf
    axis = draw(plots.error_over_time({"vcnef": errors}, T)).axes[0]
    np.testing.assert_allclose(axis.get_lines()[0].get_ydata(), [6, 6, 7, 7, 7, 7, 7, 7, np.nan, np.nan])
    low, high = axis.collections[0].get_paths()[0].get_extents().get_points()[:, 1]
    assert (low, high) == (2, 11)


def test_a_band_that_is_known_already():
    axis = draw(plots.error_over_time({"vcnef": plots.Band(0.5 * T, T, 3 * T)}, T)).axes[0]
    np.testing.assert_allclose(axis.get_lines()[0].get_ydata(), T)
    low, high = axis.collections[0].get_paths()[0].get_extents().get_points()[:, 1]
    np.testing.assert_allclose((low, high), (0.5 * T[0], 3 * T[-1]))


def test_super_resolution():
    curves = {"vcnef": ((256, 512, 1024), (0.08, 0.083, 0.084)), "fno": ((256, 512), (0.1, 0.25))}
    axis = draw(plots.super_resolution(curves, trained=256)).axes[0]
    assert axis.get_lines()[0].get_xdata().tolist() == [256, 512, 1024]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["256", "512", "1024"]
    assert axis.get_xscale() == "log"
    assert axis.get_legend().get_texts()[-1].get_text() == "training resolution"


def test_fields():
    truth = np.random.default_rng(0).random((10, 8, 6))
    figure = draw(plots.fields(truth, truth * 1.1, T, ((0, 2), (0, 1)), "vx", times=(0.1, 0.52)))
    axes = pictures(figure)
    assert len(axes) == 6
    assert [axis.get_title() for axis in axes[:2]] == ["t = 0.1", "t = 0.5"]
    assert [axis.get_ylabel() for axis in axes[::2]] == ["Truth", "Prediction", "Error"]
    np.testing.assert_allclose(axes[1].images[0].get_array(), truth[4].T)
    np.testing.assert_allclose(axes[5].images[0].get_array(), 0.1 * truth[4].T)
    assert axes[0].images[0].get_extent() == [0, 2, 0, 1]
    assert len(pictures(plots.fields(truth, truth, T))) == 9
    assert pictures(plots.fields(truth, truth, T, times=0.5))[0].get_title() == "t = 0.5"


def test_fields_on_uneven_points():
    truth, x = np.random.default_rng(0).random((10, 8, 6)), np.arange(8.0) ** 2
    mesh = pictures(draw(plots.fields(truth, truth, T, x=(x, np.arange(6.0)))))[0].collections[0]
    np.testing.assert_allclose(mesh.get_array().T, truth[0])
    np.testing.assert_allclose(mesh.get_coordinates()[0, 1:-1, 0], (x[1:] + x[:-1]) / 2)
    with pytest.raises(ValueError, match=r"domain has 3 sides; expected 2\. Give \(low, high\) for each space axis"):
        plots.fields(truth, truth, T, ((0, 1),) * 3)


def test_the_papers_heat_map():
    truth = np.stack([TRUTH, 2 * TRUTH])
    paper = {"average": "mean", "floor": 0}
    error = plots.relative_point_error(truth, truth * np.array([1.1, 1.3])[:, None, None], **paper)
    np.testing.assert_allclose(error, 0.2)
    truth[:, 0, 0] = 0.0
    truth[0, 1, 1] = 0.0
    error = plots.relative_point_error(truth, truth * np.array([1.1, 1.3])[:, None, None], **paper)
    assert np.isnan(error[0, 0])
    assert error[1, 1] == pytest.approx(0.3)
    # Over the floor nothing is left out where any frame has a size.
    assert np.isfinite(plots.relative_point_error(truth, truth)).all()
    # One sample near zero rules a mean, not a median.
    three = np.stack([TRUTH, TRUTH, 1e-20 * TRUTH])
    error = plots.relative_point_error(three, three + 0.1 * TRUTH, floor=0)
    np.testing.assert_allclose(error, 0.1)
    assert (plots.relative_point_error(three, three + 0.1 * TRUTH, **paper) > 1e18).all()
    figure = draw(plots.error_heat_map({"vcnef": error, "fno": 2 * error}, T, X))
    axes = pictures(figure)
    assert [axis.get_title() for axis in axes] == ["vcnef", "fno"]
    assert axes[0].collections[0].norm is axes[1].collections[0].norm
    assert len(pictures(draw(plots.error_heat_map(np.zeros((10, 16)), T, X)))) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: plots.space_time(TRUTH[None], TRUTH, T, X),
            r"truth has shape \(1, 10, 16\); expected the axes \[t x\]",
        ),
        (
            lambda: plots.space_time(TRUTH, TRUTH[1:], T, X),
            r"truth \(10, 16\) and prediction \(9, 16\); expected the s",
        ),
        (lambda: plots.space_time(TRUTH, TRUTH, T[1:], X), "t has 9 values; expected 10"),
        (lambda: plots.error_over_time({}, T), "There is no curve to draw"),
        (lambda: plots.error_over_time({"a": T[1:]}, T), "curve 'a' has 9 values; expected 10"),
        (lambda: plots.error_over_time({"a": plots.Band(T, T, T[1:])}, T), "curve 'a' has 9 values; expected 10"),
        (lambda: plots.error_heat_map({}, T, X), "There is no error to draw"),
        (
            lambda: plots.relative_point_error(TRUTH[None], TRUTH[None], average="mode"),
            "average is 'mode'; expected one of mean, median. The paper's is the mean",
        ),
        (
            lambda: plots.fields(np.ones((10, 4, 4)), np.ones((10, 4, 4)), T, times=[3.0]),
            r"times are \[3.0\]; expected",
        ),
        (lambda: plots.space_time(TRUTH, TRUTH, np.roll(T, 3), X), "Times or points go to and fro, .* Sort them"),
        (
            lambda: plots.space_time(TRUTH[:0], TRUTH[:0], T[:0], X),
            r"truth has shape \(0, \d+\); expected at least one",
        ),
        (lambda: plots.fields(np.ones((0, 4, 4)), np.ones((0, 4, 4)), []), r"truth has shape \(0, 4, 4\); expected at"),
    ],
)
def test_wrong_shapes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_no_global_state_is_touched():
    before = dict(matplotlib.rcParams)
    plots.error_over_time({"vcnef": T}, T)
    assert dict(matplotlib.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_edges_lie_between_points():
    np.testing.assert_allclose(style.edges([0.5, 1.5, 2.5]), [0, 1, 2, 3])
    np.testing.assert_allclose(style.edges([2.0]), [1.5, 2.5])
    np.testing.assert_allclose(style.edges([2.5, 1.5, 0.5]), [3, 2, 1, 0])


def test_points_near_zero_are_judged_over_the_floor_of_their_trajectory():
    truth = np.ones((1, 3, 4))
    truth[0, 1:] = [[1.0, 1e-9, 0.0, 0.5], [1e-9, 1e-9, 1e-9, 1e-9]]
    error = plots.relative_point_error(truth, truth + 0.001)
    np.testing.assert_allclose(error[1], [0.001, 1.0, 1.0, 0.002])
    np.testing.assert_allclose(error[2], 1.0)
    with pytest.raises(ValueError, match="floor is 1; expected a part of the largest frame"):
        plots.relative_point_error(truth, truth, floor=1)
