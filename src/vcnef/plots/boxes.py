"""3D fields: slices through the middle of the box, and means along its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vcnef.plots import cells, style
from vcnef.problem import SPACE


@style.styled
def boxes(
    truth: Any,
    prediction: Any,
    domain: Sequence[Sequence[int | float]] | None = None,
    channel: str = "u",
    *,
    x: Sequence[Any] | None = None,
    title: str = "",
) -> Figure:
    """Rows truth, prediction and error of one channel at one time, `[x y z]` each.

    Three columns are the slices through the middle of z, y and x, three the means ⟨u⟩ along them. Slices have one
    colour scale and means, which are smoother, another; the error of a mean is the mean of the error. Cells are equal
    parts of `domain` (by default sides from 0 to 1), or lie around the points `x`, those along each axis.
    """
    true = style.as_array(truth, "truth", "x y z")
    predicted = style.as_array(prediction, "prediction", "x y z")
    style.check_alike(truth=true, prediction=predicted)
    lines = cells.along_axes(true.shape, domain, x)
    figure, axes = style.panels(3, 6, width=1.9, height=1.75)
    halves = (
        (axes[:, :3], _slice, "{} in the middle", channel),
        (axes[:, 3:], _mean, "mean over {}", f"mean {channel}"),
    )
    for half, cut, name, label in halves:
        # Views from z, y and x, so that the first looks as a 2D field does.
        views = [[cut(each, axis, lines[axis]) for axis in (2, 1, 0)] for each in (true, predicted)]
        _draw(figure, half, views, lines, label)
        for axis, along in zip(half[0], reversed(SPACE), strict=True):
            axis.set_title(name.format(along))
    for axis, row in zip(axes[:, 0], ("Truth", "Prediction", "Error"), strict=True):
        axis.set_ylabel(f"{row}\n{SPACE[1]}")
    if title:
        figure.suptitle(title)
    return figure


def _slice(u: np.ndarray, axis: int, line: cells.Line) -> np.ndarray:
    return u.take(cells.middle(line), axis=axis)


def _mean(u: np.ndarray, axis: int, line: cells.Line) -> np.ndarray:
    """Large cells count for more."""
    return np.average(u, axis=axis, weights=np.diff(line.borders))


def _draw(figure: Figure, axes: np.ndarray, views: list[list[np.ndarray]], lines: list[cells.Line], label: str) -> None:
    """Rows truth, prediction and error of three views, each row with its colours."""
    true, predicted = views
    rows = (true, predicted, [b - a for a, b in zip(true, predicted, strict=True)])
    together = [np.concatenate([view.ravel() for view in each]) for each in views]
    for i, (_, _, told, colours) in enumerate(style.compared(*together, label)):
        for axis, view, along in zip(axes[i], rows[i], (2, 1, 0), strict=True):
            across, up = (side for side in range(3) if side != along)
            picture = cells.picture(axis, view, (lines[across], lines[up]), **colours)
            axis.set(xlabel=SPACE[across] if i == 2 else "", ylabel=SPACE[up])
        figure.colorbar(picture, ax=list(axes[i]), label=told)
