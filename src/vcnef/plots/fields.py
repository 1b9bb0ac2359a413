"""2D fields at chosen times; a slice of a 3D field is one too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from vcnef.plots import style


@style.styled
def fields(
    truth: Any,
    prediction: Any,
    t: Any,
    domain: Sequence[Sequence[int | float]] = ((0.0, 1.0), (0.0, 1.0)),
    channel: str = "u",
    *,
    times: Sequence[int | float] | None = None,
    title: str = "",
) -> Figure:
    """Rows truth, prediction and error of one channel, `[t x y]` each; a column for each of `times`.

    The frames nearest to `times` are shown, by default the first, the middle and the last.
    """
    true = style.as_array(truth, "truth", "t x y")
    predicted = style.as_array(prediction, "prediction", "t x y")
    style.check_alike(truth=true, prediction=predicted)
    instants = style.as_array(t, "t", "t")
    style.check_axis(instants, "t", len(true))
    frames = style.nearest_frames(instants, times)
    rows = style.compared(true[frames], predicted[frames], channel)
    figure, axes = style.panels(3, len(frames), width=2.4, height=2.2)
    extent = (*domain[0], *domain[1])
    for line, (name, values, label, colours) in zip(axes, rows, strict=True):
        for axis, field in zip(line, values, strict=True):
            # The first axis of a field is x, which runs to the right; pictures have rows first.
            picture = axis.imshow(field.T, origin="lower", extent=extent, **colours)
            axis.set(xticks=[], yticks=[])
            style.bare(axis)
        line[0].set_ylabel(name)
        figure.colorbar(picture, ax=line, label=label)
    for axis, frame in zip(axes[0], frames, strict=True):
        axis.set_title(f"t = {instants[frame]:.3g}")
    if title:
        figure.suptitle(title)
    return figure
