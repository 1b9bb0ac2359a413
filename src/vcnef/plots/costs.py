"""What an answer costs: time against memory, and accuracy against time with the classical solver beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from operator import itemgetter
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vcnef.plots import style

MIB = 2**20
PLAIN = {"textcoords": "offset points", "fontsize": 7.5, "color": "0.3"}
"""Words beside a marker."""
NEEDED = ("model", "way", "seconds", "peak_memory")
"""Keys of a record."""


@style.styled
def speed_memory(records: Iterable[Mapping[str, Any]], *, title: str = "") -> Figure:
    """Draw seconds over peak memory: a colour for each model, a marker for each way of asking, both axes by factors.

    A record has `model`, `way`, `seconds` and `peak_memory` in bytes, and may have `steps` and `spread` (seconds
    between the fastest and the slowest repeat, drawn as a bar): those of `vcnef benchmark speed`. Several numbers of
    steps are a line with its first and last named. Records without a memory, as on a CPU, or without a time have no
    place here.
    """
    cases = _cases(records)
    names, ways = (list(dict.fromkeys(column)) for column in zip(*cases, strict=True))
    handles, colours, marks = [], {}, {}
    for name, _, colour, _ in style.dressed(dict.fromkeys(names)):
        colours[name] = colour
        handles.append(Line2D([], [], color=colour, label=name))
    for way, marker in zip(ways, cycle(style.MARKERS), strict=False):
        marks[way] = marker
        handles.append(Line2D([], [], color="0.4", linestyle="", marker=marker, label=way))
    figure, axes = style.panels(1, 1, width=4.8, height=3.4)
    axis = axes[0, 0]
    for (name, way), entries in cases.items():
        memory = [each["peak_memory"] / MIB for each in entries]
        seconds = [each["seconds"] for each in entries]
        spread = [each.get("spread") or 0.0 for each in entries]
        bars = None
        if any(spread):
            # The time is that of the fastest repeat, so the bar goes up only.
            bars = [np.zeros(len(spread)), spread]
        look = {"color": colours[name], "marker": marks[way], "linewidth": 1.0, "markersize": 6}
        axis.errorbar(memory, seconds, bars, **look, label=f"{name}, {way}")
        for end in (0, -1):
            if len(entries) > 1 and "steps" in entries[end]:
                steps, place = entries[end]["steps"], (memory[end], seconds[end])
                axis.annotate(f"{steps} steps", place, xytext=(6, -8), **PLAIN)
    axis.set(xlabel="peak memory in MiB", ylabel="time in s", title=title)
    _by_factors(axis)
    axis.legend(handles=handles, loc="best", fontsize=8)
    return figure


@style.styled
def accuracy_cost(
    models: Mapping[str, Sequence[int | float]],
    solver: Mapping[str, Sequence[int | float]] | None = None,
    *,
    label: str = "nRMSE",
    title: str = "",
) -> Figure:
    """Draw error over seconds per trajectory: a marker for each model, name -> (seconds, error); lower left is better.

    `solver` is the classical solver at several fidelities, what -> (seconds, error), drawn as a line: a model is worth
    its training where it lies below that line. A fidelity without error is the reference itself and is left out,
    since both axes go by factors.
    """
    figure, axes = style.panels(1, 1, width=4.6, height=3.4)
    axis = axes[0, 0]
    for name, (seconds, error), colour, marker in style.dressed(_pairs(models, "models")):
        axis.plot(seconds, error, color=colour, marker=marker, linestyle="", markersize=8, label=name, zorder=3)
    ordered = []
    for what, (seconds, error) in _pairs(solver or {}, "solver").items():
        if error > 0:
            ordered.append((seconds, error, what))
    if ordered:
        ordered.sort(key=itemgetter(0))
        seconds, errors, _ = zip(*ordered, strict=True)
        axis.plot(seconds, errors, color="0.45", marker=".", linestyle="--", label="classical solver", zorder=2)
        for second, error, what in ordered:
            axis.annotate(what, (second, error), xytext=(5, 4), **PLAIN)
    axis.set(xlabel="time per trajectory in s", ylabel=label, title=title)
    _by_factors(axis)
    axis.legend()
    return figure


def _cases(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Return records with a memory by model and way, in the order of their steps."""
    found = list(records)
    placed = []
    for each in found:
        missing = [key for key in NEEDED if key not in each]
        if missing:
            raise ValueError(
                f"A record has {', '.join(each) or 'nothing'}; expected {', '.join(missing)} too. "
                "Give records with model, way, seconds and peak_memory."
            )
        if each["peak_memory"] and each["seconds"]:
            placed.append(each)
    if not placed:
        raise ValueError(
            f"There is no record to draw: got {len(found)}, expected some with seconds and peak_memory. "
            "Measure on a GPU, where memory is counted."
        )
    # In the order in which models and ways first come.
    cases: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in placed:
        cases.setdefault((each["model"], each["way"]), []).append(each)
    for entries in cases.values():
        entries.sort(key=lambda each: each.get("steps", 0))
    return cases


def _pairs(named: Mapping[str, Sequence[int | float]], what: str) -> dict[str, tuple[float, float]]:
    pairs = {}
    for name, pair in named.items():
        values = np.asarray(pair, dtype=np.float64)
        # A model without error would be a fault of the measurement; a solver without one is the reference.
        least = values
        if what == "solver":
            least = values[:1]
        if values.shape != (2,) or not np.isfinite(values).all() or (values < 0).any() or not (least > 0).all():
            raise ValueError(
                f"{name} of {what} is {np.asarray(pair).tolist()}; expected (seconds, error), both above zero. "
                "Leave out what was not measured."
            )
        pairs[name] = (float(values[0]), float(values[1]))
    return pairs


def _by_factors(axis: Axes) -> None:
    axis.set(xscale="log", yscale="log")
    axis.margins(0.15)
    axis.grid(visible=True, which="major", color="0.9", linewidth=0.6)
    axis.set_axisbelow(True)
