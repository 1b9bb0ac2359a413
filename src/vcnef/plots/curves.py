"""Errors as curves: over time, and over resolutions that a model was not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from vcnef.plots import style

BAND = (10.0, 90.0)
"""Percentiles between which most trajectories lie."""
ENDLESS = 1e300
"""Stands for an error that is not finite, which is larger than all others."""


class Band(NamedTuple):
    """A curve `[t]` and between which values most trajectories lie."""

    low: Any
    middle: Any
    high: Any


@style.styled
def error_over_time(
    curves: Mapping[str, Any], t: Any, *, label: str = "nRMSE", horizon: int | float | None = None, title: str = ""
) -> Figure:
    """Draw a curve for each model: its error `[t]`, a `Band`, or the errors of many trajectories `[n t]` as such.

    The band of many goes from the 10th to the 90th percentile around the median. A trajectory that is not finite
    counts as worse than all others; where median or band would be so, there is none. `horizon` marks the last time
    seen in training.
    """
    times = style.as_array(t, "t", "t")
    figure, axes = style.panels(1, 1, width=4.4, height=3.0)
    axis = axes[0, 0]
    for name, values, colour, marker in style.dressed(curves):
        low, line, high = _band(values, name, len(times))
        # About ten markers, whatever the number of times.
        axis.plot(times, line, color=colour, marker=marker, markevery=max(1, len(times) // 10), label=name)
        if low is not None:
            axis.fill_between(times, low, high, color=colour, alpha=0.2, linewidth=0)
    if horizon is not None:
        axis.axvline(horizon, color="0.5", linestyle=":", label="training horizon")
    axis.set(xlabel="t", ylabel=label, title=title)
    style.from_zero(axis)
    axis.legend()
    return figure


@style.styled
def super_resolution(
    curves: Mapping[str, tuple[Sequence[int], Sequence[int | float]]],
    *,
    trained: int | None = None,
    what: str = "points along an axis",
    label: str = "nRMSE",
    title: str = "",
) -> Figure:
    """Draw error over resolution for each model: name -> (resolutions, errors). `trained` marks that of training."""
    figure, axes = style.panels(1, 1, width=4.0, height=3.0)
    axis = axes[0, 0]
    ticks: set[float] = set()
    for name, (resolutions, errors), colour, marker in style.dressed(curves):
        sizes, values = style.as_array(resolutions, name, "n"), style.as_array(errors, name, "n")
        style.check_axis(values, f"curve {name!r}", len(sizes))
        axis.plot(sizes, values, color=colour, marker=marker, label=name)
        ticks |= set(sizes.tolist())
    if trained is not None:
        axis.axvline(trained, color="0.5", linestyle=":", label="training resolution")
    axis.set(xlabel=what, ylabel=label, title=title)
    _doubling(axis, sorted(ticks))
    style.from_zero(axis)
    axis.legend()
    return figure


def _band(values: Any, name: str, times: int) -> Band:
    """Return the curve with what is around it, if anything."""
    if isinstance(values, Band):
        parts = Band(
            style.as_array(values.low, name, "t"),
            style.as_array(values.middle, name, "t"),
            style.as_array(values.high, name, "t"),
        )
    elif np.ndim(values) == 2:
        parts = Band(*_percentiles(style.as_array(values, name, "n t"), (BAND[0], 50.0, BAND[1])))
    else:
        parts = Band(None, style.as_array(values, name, "t"), None)
    for each in parts:
        if each is not None:
            style.check_axis(each, f"curve {name!r}", times)
    return parts


def _percentiles(errors: np.ndarray, which: Sequence[float]) -> np.ndarray:
    """Return percentiles over trajectories, NaN where they lie among those that are not finite."""
    found = np.percentile(np.where(np.isfinite(errors), errors, ENDLESS), which, axis=0)
    return np.where(found < np.sqrt(ENDLESS), found, np.nan)


def _doubling(axis: Axes, ticks: list[float]) -> None:
    """Scale an axis by factors of two, with a tick for each resolution."""
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticklabels([f"{tick:g}" for tick in ticks])
