"""What an answer costs: time against memory, and accuracy against time with the classical solver beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vcnef.plots import style

MIB = 2**20
PLAIN = {"textcoords": "offset points", "fontsize": 7.5, "color": "0.3"}
"""Words beside a marker."""


@style.styled
def speed_memory(records: Iterable[Mapping[str, Any]], *, title: str = "") -> Figure:
    """Seconds over peak memory; a colour for each model, a marker for each way of asking, both axes by factors.

    A record has `model`, `way`, `seconds` and `peak_memory` in bytes, and may have `steps` and `spread` (seconds
    between the fastest and the slowest repeat, drawn as a bar): those of `vcnef benchmark speed`. Several numbers of
    steps are a line with its first and last named. Records without a memory, as on a CPU, or without a time have no
    place here.
    """
    cases = _cases(records)
    models = {name: None for name, _ in cases}
    ways = list(dict.fromkeys(way for _, way in cases))
    colours = {name: colour for name, _, colour, _ in style.dressed(models)}
    marks = {way: style.MARKERS[i % len(style.MARKERS)] for i, way in enumerate(ways)}
    figure, axes = style.panels(1, 1, width=4.8, height=3.4)
    axis = axes[0, 0]
    for (name, way), entries in cases.items():
        memory, seconds = ([each[key] for each in entries] for key in ("peak_memory", "seconds"))
        look = {"color": colours[name], "marker": marks[way], "linewidth": 1.0, "markersize": 6}
        spread = [each.get("spread") or 0.0 for each in entries]
        # The time is that of the fastest repeat, so the bar goes up only.
        bars = [np.zeros(len(spread)), spread] if any(spread) else None
        axis.errorbar(np.divide(memory, MIB), seconds, bars, **look, label=f"{name}, {way}")
        if len(entries) > 1:
            for each in (each for each in (entries[0], entries[-1]) if "steps" in each):
                place = (each["peak_memory"] / MIB, each["seconds"])
                axis.annotate(f"{each['steps']} steps", place, xytext=(6, -8), **PLAIN)
    axis.set(xlabel="peak memory in MiB", ylabel="time in s", title=title)
    _by_factors(axis)
    handles = [Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    handles += [Line2D([], [], color="0.4", linestyle="", marker=mark, label=way) for way, mark in marks.items()]
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
    """Error over seconds per trajectory: a marker for each model, name -> (seconds, error); down and left is better.

    `solver` is the classical solver at several fidelities, what -> (seconds, error), drawn as a line: a model is worth
    its training where it lies below that line. A fidelity without error is the reference itself and is left out,
    since both axes go by factors.
    """
    figure, axes = style.panels(1, 1, width=4.6, height=3.4)
    axis = axes[0, 0]
    for name, (seconds, error), colour, marker in style.dressed(_pairs(models, "models")):
        axis.plot(seconds, error, color=colour, marker=marker, linestyle="", markersize=8, label=name, zorder=3)
    known = {what: pair for what, pair in _pairs(solver or {}, "solver").items() if pair[1] > 0}
    if known:
        ordered = sorted(known.items(), key=lambda item: item[1][0])
        seconds, errors = np.transpose([pair for _, pair in ordered])
        axis.plot(seconds, errors, color="0.45", marker=".", linestyle="--", label="classical solver", zorder=2)
        for what, place in ordered:
            axis.annotate(what, place, xytext=(5, 4), **PLAIN)
    axis.set(xlabel="time per trajectory in s", ylabel=label, title=title)
    _by_factors(axis)
    axis.legend()
    return figure


def _cases(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Records with a memory, by model and way, in the order of their steps."""
    found = list(records)
    for each in found:
        if missing := [key for key in ("model", "way", "seconds", "peak_memory") if key not in each]:
            raise ValueError(
                f"A record has {', '.join(each) or 'nothing'}; expected {', '.join(missing)} too. "
                "Give records with model, way, seconds and peak_memory."
            )
    placed = [each for each in found if each["peak_memory"] and each["seconds"]]
    if not placed:
        raise ValueError(
            f"There is no record to draw: got {len(found)}, expected some with seconds and peak_memory. "
            "Measure on a GPU, where memory is counted."
        )
    cases: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in sorted(placed, key=lambda each: each.get("steps", 0)):
        cases.setdefault((each["model"], each["way"]), []).append(each)
    # In the order in which models and ways first come.
    order = dict.fromkeys((each["model"], each["way"]) for each in placed)
    return {case: cases[case] for case in order}


def _pairs(named: Mapping[str, Sequence[int | float]], what: str) -> dict[str, tuple[float, float]]:
    pairs = {}
    for name, pair in named.items():
        values = np.asarray(pair, dtype=np.float64)
        # A model without error would be a fault of the measurement; a solver without one is the reference.
        least = values[:1] if what == "solver" else values
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
