"""3D fields: slices through the middle of the box, and means along its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vcnef.plots import cells, style
from vcnef.problem import SPACE

VIEWS = (2, 1, 0)
"""The axes that the three columns of a half look along."""
OTHER_AXES = {0: (1, 2), 1: (0, 2), 2: (0, 1)}
"""Those that run to the right and upwards, seen along an axis."""


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
    """Draw rows of truth, prediction and error of one channel at one time, `[x y z]` each.

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
        # From z, y and x, so that the first view looks as a 2D field does.
        true_views = [cut(true, axis, lines[axis]) for axis in VIEWS]
        predicted_views = [cut(predicted, axis, lines[axis]) for axis in VIEWS]
        _draw(figure, half, true_views, predicted_views, lines, label)
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
    """Average along an axis, where large cells count for more."""
    return np.average(u, axis=axis, weights=np.diff(line.borders))


def _draw(
    figure: Figure,
    axes: np.ndarray,
    true: list[np.ndarray],
    predicted: list[np.ndarray],
    lines: list[cells.Line],
    label: str,
) -> None:
    """Draw rows of truth, prediction and error of three views, each row with its colours."""
    errors = list(map(np.subtract, predicted, true))
    all_true, all_predicted = (np.concatenate(list(map(np.ravel, views))) for views in (true, predicted))
    told = style.compared(all_true, all_predicted, label)
    for row, views, (_, _, words, colours) in zip(axes, (true, predicted, errors), told, strict=True):
        for axis, view, along in zip(row, views, VIEWS, strict=True):
            across, up = OTHER_AXES[along]
            picture = cells.picture(axis, view, (lines[across], lines[up]), **colours)
            axis.set_ylabel(SPACE[up])
        figure.colorbar(picture, ax=list(row), label=words)
    for axis, along in zip(axes[2], VIEWS, strict=True):
        axis.set_xlabel(SPACE[OTHER_AXES[along][0]])
