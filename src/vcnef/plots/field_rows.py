"""2D fields at chosen times; a slice of a 3D field is one too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from vcnef.plots import cells, style


@style.styled
def fields(
    truth: Any,
    prediction: Any,
    t: Any,
    domain: Sequence[Sequence[int | float]] | None = None,
    channel: str = "u",
    *,
    x: Sequence[Any] | None = None,
    times: Sequence[int | float] | int | float | None = None,
    title: str = "",
) -> Figure:
    """Draw rows of truth, prediction and error of one channel, `[t x y]` each; a column for each of `times`.

    Cells are equal parts of `domain` (by default sides from 0 to 1), or lie around the points `x`, those along each
    axis. The frames nearest to `times` are shown, by default the first, the middle and the last.
    """
    true = style.as_array(truth, "truth", "t x y")
    predicted = style.as_array(prediction, "prediction", "t x y")
    style.check_alike(truth=true, prediction=predicted)
    instants = style.as_array(t, "t", "t")
    style.check_axis(instants, "t", len(true))
    lines = cells.along_axes(true.shape[1:], domain, x)
    frames = style.nearest_frames(instants, times)
    rows = style.compared(true[frames], predicted[frames], channel)
    figure, axes = style.panels(3, len(frames), width=2.4, height=2.2)
    for row, (name, values, label, colours) in zip(axes, rows, strict=True):
        for axis, field in zip(row, values, strict=True):
            picture = cells.picture(axis, field, lines, **colours)
        row[0].set_ylabel(name)
        figure.colorbar(picture, ax=row, label=label)
    for axis, frame in zip(axes[0], frames, strict=True):
        axis.set_title(f"t = {instants[frame]:.3g}")
    if title:
        figure.suptitle(title)
    return figure
