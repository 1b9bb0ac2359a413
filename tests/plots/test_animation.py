"""Moving pictures: number, size and content of their frames."""

import matplotlib
import numpy as np
import pytest
from PIL import Image

from vcnef import plots
from vcnef.plots import animation, cells

T = np.linspace(0.0, 1.0, 7)
X = (np.arange(16) + 0.5) / 16
LINES = np.sin(2 * np.pi * (X - T[:, None]))
FIELDS = np.sin(2 * np.pi * (X[:, None] + X[:12] - T[:, None, None]))


@pytest.mark.parametrize("u", [LINES, FIELDS], ids=["1d", "2d"])
def test_a_gif_has_a_frame_for_each_time(u, tmp_path):
    path = plots.animate(u, 0.9 * u, T, tmp_path / "new" / "wave.gif", rate=10)
    assert path == tmp_path / "new" / "wave.gif"
    with Image.open(path) as picture:
        assert picture.n_frames == 7
        assert picture.info["duration"] == 100
        frames = []
        for number in (0, 3):
            picture.seek(number)
            frames.append(np.asarray(picture.convert("RGB"), dtype=float))
    assert (frames[0] != frames[1]).any()
    assert path.stat().st_size < 300_000


def test_long_trajectories_are_thinned(tmp_path):
    u = np.repeat(LINES, 20, axis=0) + np.linspace(0, 1, 140)[:, None]
    path = plots.animate(u, u, np.linspace(0, 1, 140), str(tmp_path / "long.gif"), frames=5)
    with Image.open(path) as picture:
        assert picture.n_frames == 5


@pytest.mark.parametrize(
    ("t", "words"),
    [
        ([0.0, 0.5, 1.25], ["0.000", "0.500", "1.250"]),
        ([0.0, 0.0005, 0.001], ["0.00000", "0.00050", "0.00100"]),
        ([0.0, 1e-7, 2e-7], ["0.000e+00", "1.000e-07", "2.000e-07"]),
        ([2.0], ["2.000"]),
        ([1.0, 1.0], ["1.000", "1.000"]),
    ],
)
def test_captions_tell_times_apart(t, words):
    assert animation._spell(np.array(t)) == words


def test_lines_and_their_scales():
    figure, show = animation._lines(LINES, 1.5 * LINES, cells.along_axes((16,), ((0.0, 2.0),)), "density")
    field, error = figure.axes
    show(2)
    np.testing.assert_allclose(field.get_lines()[0].get_ydata(), LINES[2])
    np.testing.assert_allclose(field.get_lines()[1].get_ydata(), 1.5 * LINES[2])
    np.testing.assert_allclose(error.get_lines()[0].get_ydata(), 0.5 * LINES[2])
    np.testing.assert_allclose(field.get_lines()[0].get_xdata(), 2 * X)
    assert [text.get_text() for text in field.get_legend().get_texts()] == ["Truth", "Prediction"]
    assert (field.get_ylabel(), error.get_ylabel(), error.get_xlabel()) == ("density", "error of density", "x")
    np.testing.assert_allclose(field.get_ylim(), [LINES.min() - 0.12, LINES.max() + 0.12], atol=0.01)
    assert error.get_ylim()[0] == -error.get_ylim()[1]
    before = field.get_position().bounds
    field.set_ylabel("a\nlong\nlabel")
    figure.draw_without_rendering()
    assert field.get_position().bounds == before, "axes must not move between frames"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 1.0, -101325.0])
def test_a_field_at_rest_has_a_scale(value):
    rest = np.full_like(LINES, value)
    figure, _ = animation._lines(rest, rest, cells.along_axes((16,), ((0.0, 2.0),)), "pressure")
    low, high = figure.axes[0].get_ylim()
    assert low < value < high


def test_fields_and_their_colours():
    lines = cells.along_axes(FIELDS.shape[1:], ((0.0, 2.0), (0.0, 1.0)))
    figure, show = animation._pictures(FIELDS, FIELDS + 0.1, lines, "u")
    axes = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
    show(4)
    assert [axis.get_title() for axis in axes] == ["Truth", "Prediction", "Error"]
    for axis, values in zip(axes, (FIELDS[4], FIELDS[4] + 0.1, 0.1), strict=True):
        np.testing.assert_allclose(axis.images[0].get_array().T, np.broadcast_to(values, FIELDS[4].shape))
        assert axis.images[0].get_extent() == [0, 2, 0, 1]
    assert axes[0].images[0].get_clim() == axes[1].images[0].get_clim() == (FIELDS.min(), FIELDS.max())


def test_uneven_points(tmp_path):
    figure, show = animation._lines(LINES, LINES, cells.along_axes((16,), None, X**2), "u")
    np.testing.assert_allclose(figure.axes[0].get_lines()[0].get_xdata(), X**2)
    figure, show = animation._pictures(FIELDS, FIELDS, cells.along_axes((16, 12), None, (X**2, X[:12])), "u")
    show(4)
    mesh = figure.axes[0].collections[0]
    np.testing.assert_allclose(mesh.get_array().T, FIELDS[4])
    np.testing.assert_allclose(mesh.get_coordinates()[0, 1:-1, 0], (X[1:] ** 2 + X[:-1] ** 2) / 2)
    assert plots.animate(FIELDS[:2], FIELDS[:2], T[:2], tmp_path / "uneven.gif", x=(X**2, X[:12])).is_file()


def test_a_prediction_that_is_not_finite(tmp_path):
    broken = LINES.copy()
    broken[3:] = np.nan
    assert plots.animate(LINES, broken, T, tmp_path / "broken.gif").is_file()


def test_an_mp4_goes_through_ffmpeg(tmp_path):
    program = tmp_path / "ffmpeg"
    # Stands for the real one: the file is what it was sent.
    program.write_text('#!/bin/sh\nfor last; do :; done\ncat > "$last"\n')
    program.chmod(0o755)
    with matplotlib.rc_context({"animation.ffmpeg_path": str(program)}):
        path = plots.animate(LINES, LINES, T, tmp_path / "wave.mp4")
    size = path.stat().st_size
    assert size > 0
    assert size % (7 * 4) == 0


def test_an_mp4_without_ffmpeg(tmp_path):
    with (
        matplotlib.rc_context({"animation.ffmpeg_path": str(tmp_path / "gone")}),
        pytest.raises(FileNotFoundError, match=r"wave.mp4 needs ffmpeg, .* Install ffmpeg, or write a .gif."),
    ):
        plots.animate(LINES, LINES, T, tmp_path / "wave.mp4")
    assert not (tmp_path / "wave.mp4").exists()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.animate(LINES[0], LINES, T, "a.gif"), r"truth has shape \(16,\); expected the axes \[t x\]"),
        (lambda: plots.animate(LINES, LINES[1:], T, "a.gif"), r"truth \(7, 16\) and prediction \(6, 16\); expected"),
        (lambda: plots.animate(LINES, LINES, T[1:], "a.gif"), "t has 6 values; expected 7"),
        (lambda: plots.animate(LINES, LINES, T, "a.avi"), "path is a.avi; expected a name that ends in .gif or .mp4"),
        (lambda: plots.animate(FIELDS, FIELDS, T, "a.gif", ((0, 1),)), "domain has 1 sides; expected 2"),
        (lambda: plots.animate(LINES, LINES, T, "a.gif", frames=0), "frames is 0 and rate 12; expected at least one"),
        (lambda: plots.animate(LINES, LINES, T, "a.gif", rate=0), "frames is 64 and rate 0; expected at least one"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
