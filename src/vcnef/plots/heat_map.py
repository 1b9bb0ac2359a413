"""The paper's heat map: where in space and when in time a model errs, over a whole test set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from vcnef.fading import FADED
from vcnef.plots import style

SMALLEST_SHOWN = 1e-4
"""Smallest part of the largest colour that has a colour of its own."""
HIGHEST_PERCENTILE = 99.0
"""Percentile of the errors at which colours end; near zeros of the target a relative error knows no bound."""

AVERAGES = {"mean": np.ma.mean, "median": np.ma.median}


def relative_point_error(
    truth: Any, prediction: Any, *, average: str = "median", floor: float | int = FADED
) -> np.ndarray:
    """Return ⟨ |ŷ − y| / |y| ⟩ over samples, the median or the mean: fields `[n t x]` in, `[t x]` out.

    |y| counts as no less than `floor` times the largest root mean square of a frame of its trajectory, as in every
    relative error of this package. The paper's equation for its heat maps is `average="mean", floor=0`: near zeros of
    the target that is large, which is the definition's and not the model's doing. Where the target and the floor are
    zero there is no relative error, and such points are left out.
    """
    if average not in AVERAGES:
        raise ValueError(f"average is {average!r}; expected one of {', '.join(AVERAGES)}. The paper's is the mean.")
    if not 0 <= floor < 1:
        raise ValueError(f"floor is {floor!r}; expected a part of the largest frame, from 0 to below 1.")
    true = style.as_array(truth, "truth", "n t x")
    predicted = style.as_array(prediction, "prediction", "n t x")
    style.check_alike(truth=true, prediction=predicted)
    largest = np.sqrt(np.square(true).mean(axis=2)).max(axis=1)
    size = np.maximum(np.abs(true), floor * largest[:, None, None])
    ratio = np.divide(np.abs(predicted - true), size, out=np.full_like(size, np.nan), where=size != 0)
    # A prediction that is not finite is an error at its place, not a value to leave out.
    errors = np.ma.array(ratio, mask=size == 0)
    return AVERAGES[average](errors, axis=0).filled(np.nan)


@style.styled
def error_heat_map(
    errors: Mapping[str, Any] | Any, t: Any, x: Any, *, label: str = "relative error", title: str = ""
) -> Figure:
    """Draw a picture of an error `[t x]` for each model, on one logarithmic scale; one array is a single picture."""
    named = errors
    if not isinstance(errors, Mapping):
        named = {"": errors}
    if not named:
        raise ValueError("There is no error to draw: got an empty mapping, expected name -> [t x]. Give at least one.")
    maps = {name: style.as_array(values, f"error {name}".strip(), "t x") for name, values in named.items()}
    style.check_alike(**maps)
    times, points = style.as_array(t, "t", "t"), style.as_array(x, "x", "x")
    first = next(iter(maps.values()))
    style.check_axis(times, "t", first.shape[0])
    style.check_axis(points, "x", first.shape[1])
    scale = _scale(list(maps.values()))
    lowest = float(scale.vmin or 0.0)
    figure, axes = style.panels(1, len(maps))
    for axis, (name, values) in zip(axes[0], maps.items(), strict=True):
        shown = np.maximum(values, lowest)
        mesh = axis.pcolormesh(
            style.edges(points), style.edges(times), shown, cmap=style.SIZE_MAP, norm=scale, rasterized=True
        )
        axis.set(title=name, xlabel="x")
        style.bare(axis)
    axes[0, 0].set_ylabel("t")
    figure.colorbar(mesh, ax=list(axes[0]), label=label, extend="max")
    if title:
        figure.suptitle(title)
    return figure


def _scale(maps: list[np.ndarray]) -> LogNorm:
    values = np.concatenate(list(map(np.ravel, maps)))
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = 0.0, 1.0
    if positive.size:
        low, high = float(positive.min()), float(np.percentile(positive, HIGHEST_PERCENTILE))
    low = max(low, SMALLEST_SHOWN * high)
    return LogNorm(vmin=min(low, 0.5 * high), vmax=high)
