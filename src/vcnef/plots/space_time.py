"""A 1D trajectory as pictures over space and time."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from vcnef.plots import style


@style.styled
def space_time(truth: Any, prediction: Any, t: Any, x: Any, channel: str = "u", *, title: str = "") -> Figure:
    """Draw truth, prediction and error of one channel, `[t x]` each; truth and prediction share their colours."""
    true = style.as_array(truth, "truth", "t x")
    predicted = style.as_array(prediction, "prediction", "t x")
    style.check_alike(truth=true, prediction=predicted)
    times, points = style.as_array(t, "t", "t"), style.as_array(x, "x", "x")
    style.check_axis(times, "t", true.shape[0])
    style.check_axis(points, "x", true.shape[1])
    figure, axes = style.panels(1, 3)
    for axis, (name, values, label, colours) in zip(axes[0], style.compared(true, predicted, channel), strict=True):
        mesh = axis.pcolormesh(
            style.edges(points), style.edges(times), values, rasterized=True, shading="flat", **colours
        )
        axis.set(title=name, xlabel="x")
        style.bare(axis)
        figure.colorbar(mesh, ax=axis, label=label)
    axes[0, 0].set_ylabel("t")
    if title:
        figure.suptitle(title)
    return figure
