"""Errors as curves: over time, and over resolutions that a model was not trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from vcnef.plots import style

BAND = (10.0, 90.0)
"""Percentiles between which most trajectories lie."""


@style.styled
def error_over_time(
    curves: Mapping[str, Any], t: Any, *, label: str = "nRMSE", horizon: int | float | None = None, title: str = ""
) -> Figure:
    """A curve for each model: its error `[t]`, or those of many trajectories `[n t]` as their median and a band.

    `horizon` marks the last time seen in training.
    """
    times = style.as_array(t, "t", "t")
    figure, axes = style.panels(1, 1, width=4.4, height=3.0)
    axis = axes[0, 0]
    for name, values, colour, marker in _dressed(curves):
        several = np.ndim(values) == 2
        array = style.as_array(values, name, "n t" if several else "t")
        style.check_axis(array[0] if several else array, f"curve {name!r}", len(times))
        line = np.nanmedian(array, axis=0) if several else array
        # About ten markers, whatever the number of times.
        axis.plot(times, line, color=colour, marker=marker, markevery=max(1, len(times) // 10), label=name)
        if several:
            low, high = np.nanpercentile(array, BAND, axis=0)
            axis.fill_between(times, low, high, color=colour, alpha=0.2, linewidth=0)
    if horizon is not None:
        axis.axvline(horizon, color="0.5", linestyle=":", label="training horizon")
    axis.set(xlabel="t", ylabel=label, title=title)
    _from_zero(axis)
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
    """Error over resolution for each model: name -> (resolutions, errors). `trained` marks that of training."""
    figure, axes = style.panels(1, 1, width=4.0, height=3.0)
    axis = axes[0, 0]
    ticks: set[float] = set()
    for name, (resolutions, errors), colour, marker in _dressed(curves):
        sizes, values = style.as_array(resolutions, name, "n"), style.as_array(errors, name, "n")
        style.check_axis(values, f"curve {name!r}", len(sizes))
        axis.plot(sizes, values, color=colour, marker=marker, label=name)
        ticks |= set(sizes.tolist())
    if trained is not None:
        axis.axvline(trained, color="0.5", linestyle=":", label="training resolution")
    axis.set(xlabel=what, ylabel=label, title=title)
    _doubling(axis, sorted(ticks))
    _from_zero(axis)
    axis.legend()
    return figure


def _dressed(curves: Mapping[str, Any]) -> Iterator[tuple[str, Any, str, str]]:
    """Each curve with a colour and a marker of its own."""
    if not curves:
        raise ValueError("There is no curve to draw: got an empty mapping, expected name -> values. Give at least one.")
    for index, (name, values) in enumerate(curves.items()):
        yield name, values, style.COLOURS[index % len(style.COLOURS)], style.MARKERS[index % len(style.MARKERS)]


def _doubling(axis: Axes, ticks: list[float]) -> None:
    """Equal distances for equal factors, and a tick for each resolution."""
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticklabels([f"{tick:g}" for tick in ticks])


def _from_zero(axis: Axes) -> None:
    """Errors are seen against none at all, with some room above the largest."""
    axis.margins(y=0.0)
    axis.set_ylim(0.0, 1.08 * axis.get_ylim()[1])
