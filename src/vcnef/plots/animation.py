"""Truth, prediction and error over time as a moving picture: a GIF, or an MP4 where ffmpeg is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter
from matplotlib.figure import Figure

from vcnef.plots import cells, style

DPI = 80
"""Dots per inch: a field is about 230 wide."""
LEVELS = 64
"""Colours of a map: those of both maps fit into the palette of a GIF, which is then small and does not flicker."""
WRITERS = {".gif": PillowWriter, ".mp4": FFMpegWriter}

Show = Callable[[int], None]
"""Puts the frame of that number into a figure."""


@style.styled
def animate(
    truth: Any,
    prediction: Any,
    t: Any,
    path: Path | str,
    domain: Sequence[Sequence[int | float]] | None = None,
    channel: str = "u",
    *,
    x: Any = None,
    frames: int = 64,
    rate: int | float = 12,
    title: str = "",
) -> Path:
    """Write truth, prediction and error of one channel over time to `path`, a .gif or .mp4 file, and return it.

    Fields are `[t x]`, drawn as lines, or `[t x y]`, drawn as pictures. Cells are equal parts of `domain` (by default
    sides from 0 to 1), or lie around the points `x`, those along each axis. At most `frames` of the times are shown,
    evenly spread, `rate` in a second. Scales stand still: fields have that of the truth, the error its own.
    """
    axes = {3: "t x y"}.get(np.ndim(truth), "t x")
    true = style.as_array(truth, "truth", axes)
    predicted = style.as_array(prediction, "prediction", axes)
    style.check_alike(truth=true, prediction=predicted)
    instants = style.as_array(t, "t", "t")
    style.check_axis(instants, "t", len(true))
    lines = cells.along_axes(true.shape[1:], domain, x)
    if frames < 1 or rate <= 0:
        raise ValueError(
            f"frames is {frames} and rate {rate}; expected at least one frame and a rate above zero. Ask for some."
        )
    place = Path(path)
    writer = _writer(place, rate)
    chosen = np.unique(np.linspace(0, len(true) - 1, min(frames, len(true))).round().astype(int))
    figure, show = {2: _lines, 3: _pictures}[true.ndim](true[chosen], predicted[chosen], lines, channel)
    caption = "t = "
    if title:
        caption = f"{title}, t = "
    place.parent.mkdir(parents=True, exist_ok=True)
    with writer.saving(figure, str(place), DPI):
        for frame, time in enumerate(_spell(instants[chosen])):
            show(frame)
            figure.suptitle(f"{caption}{time}")
            writer.grab_frame()
    return place


def _spell(times: np.ndarray) -> list[str]:
    """Write times with equal places, so that the caption stands still: three, or as many as tell them apart."""
    step = np.abs(np.diff(times)).min(initial=1.0)
    places = 3
    if step > 0:
        places = max(places, int(np.ceil(-np.log10(step))) + 1)
    form = f".{places}f"
    if places >= 7:
        form = ".3e"
    return [f"{time:{form}}" for time in times]


def _writer(path: Path, rate: int | float) -> AbstractMovieWriter:
    kind = WRITERS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"path is {path.name}; expected a name that ends in .gif or .mp4. Choose one of them.")
    if not kind.isAvailable():
        raise FileNotFoundError(f"{path.name} needs ffmpeg, which was not found. Install ffmpeg, or write a .gif.")
    return kind(fps=rate)


def _lines(true: np.ndarray, predicted: np.ndarray, lines: list[cells.Line], channel: str) -> tuple[Figure, Show]:
    """Draw truth and prediction on one pair of axes, and their difference on another below."""
    ((x, borders),) = lines
    figure, axes = style.panels(2, 1, width=4.4, height=1.9)
    field, error = axes[:, 0]
    curves = [
        field.plot(x, true[0], color="0.0", linewidth=2.4, alpha=0.55, label="Truth")[0],
        field.plot(x, predicted[0], color=style.COLOURS[1], linestyle="--", label="Prediction")[0],
        error.plot(x, predicted[0] - true[0], color=style.COLOURS[0])[0],
    ]
    rows = style.compared(true, predicted, channel)
    for axis, (_, _, label, colours) in zip((field, error), rows[1:], strict=True):
        room = 0.06 * (colours["vmax"] - colours["vmin"])
        axis.set(xlim=(borders[0], borders[-1]), ylim=(colours["vmin"] - room, colours["vmax"] + room), ylabel=label)
    error.set_xlabel("x")
    error.axhline(0.0, color="0.7", linewidth=0.8)
    # Above the axes: nothing that moves may run into it.
    field.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.0)

    def show(frame: int) -> None:
        for curve, (_, values, _, _) in zip(curves, rows, strict=True):
            curve.set_ydata(values[frame])

    return _settle(figure), show


def _pictures(true: np.ndarray, predicted: np.ndarray, lines: list[cells.Line], channel: str) -> tuple[Figure, Show]:
    """Draw three fields beside each other."""
    figure, axes = style.panels(1, 3, width=2.9, height=2.7)
    rows = style.compared(true, predicted, channel)
    images = []
    for axis, (name, values, label, colours) in zip(axes[0], rows, strict=True):
        few = colours | {"cmap": colormaps[colours["cmap"]].resampled(LEVELS)}
        images.append(cells.picture(axis, values[0], lines, interpolation="nearest", **few))
        axis.set_title(name)
        figure.colorbar(images[-1], ax=axis, label=label, shrink=0.8)

    def show(frame: int) -> None:
        for image, (_, values, _, _) in zip(images, rows, strict=True):
            image.set_array(values[frame].T)

    return _settle(figure), show


def _settle(figure: Figure) -> Figure:
    """Lay the axes out once, with room for the caption: they must not move between frames, and it takes time."""
    figure.suptitle("t = 0.000")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure
