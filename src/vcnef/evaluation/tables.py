"""An evaluation as text: titled tables with aligned columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite, isnan
from typing import Any

from vcnef.grid import spell_sides
from vcnef.metrics.scores import RAW
from vcnef.spelling import (
    BASELINES,
    DATA_ERROR,
    TITLES,
    spell_error,
    spell_memory,
    spell_seconds,
    spell_solves,
    spell_speed_up,
    spell_values,
)

SHORT = ("nrmse", "brmse", "relative_l2")
"""Metrics in tables with many rows; change is that of the first."""
UNDEFINED = "undefined"


@dataclass(frozen=True)
class Section:
    """A table of words."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sections(evaluation: Any) -> list[Section]:
    """Every table that the evaluation has something to say in."""
    base = evaluation.result
    found = [_metrics(evaluation), _over_time(evaluation)]
    if evaluation.baselines:
        found.append(_baselines(evaluation.baselines))
    if len(evaluation.space) > 1:
        found.append(
            _finer("Super-resolution in space", "points", evaluation.space, base, lambda r: spell_sides(r.resolution))
        )
    if len(evaluation.time) > 1:
        found.append(_finer("Super-resolution in time", "times", evaluation.time, base, lambda r: str(r.frames)))
    if evaluation.beyond is not None:
        found.append(_beyond(evaluation.beyond, evaluation.horizon))
    if len(evaluation.parameters) > 1 or any(group.seen is False for group in evaluation.parameters):
        found.append(_parameters(evaluation))
    if base.cost is not None:
        found.append(_cost([base, *(each for each in evaluation.space if each.resolution != base.resolution)]))
    if evaluation.break_even is not None:
        found.append(_break_even(evaluation.break_even, evaluation.device))
    return found


def _break_even(paid: Any, device: str) -> Section:
    """The solver at the model's error, and when the model has paid off."""
    solver = f"{'at most ' * paid.at_most}{spell_seconds(paid.solver_seconds)}"
    grids = [f"{spell_sides(each.resolution)}: {number(each.nrmse)}" for each in paid.solver[1:]]
    rows = [
        (f"model, per trajectory{_settings(paid.model)}", spell_seconds(paid.seconds)),
        (f"solver at the same error{_settings(paid.solver[-1] if paid.solver else None)}", solver),
        *(("solver's nRMSE on points", each) for each in grids),
        ("speed at the same error", spell_speed_up(paid.speed_up, at_most=paid.at_most)),
        ("cheaper after so many solves", spell_solves(paid.solves, never=paid.solves == inf, at_least=paid.at_most)),
    ]
    if paid.invested is not None:
        rows.append(("invested in training and its data", spell_seconds(paid.invested)))
    return Section(f"Break-even on {device}", ("", "value"), tuple(rows))


def _settings(way: Any) -> str:
    """Those with which something was fastest: ", 16 at once on 1 thread, compiled"."""
    if way is None:
        return ""
    words = f", {way.samples} at once"
    if way.threads is not None:
        words += f" on {way.threads} thread{'s' * (way.threads != 1)}"
    precision = getattr(way, "precision", None)
    return words + (f" in {precision}" if precision else "") + (", compiled" if way.compiled else "")


def _baselines(errors: Mapping[str, float]) -> Section:
    """What a model has to be below."""
    rows = tuple((BASELINES[name], number(error)) for name, error in errors.items())
    return Section("Without a model", ("answer", "nRMSE"), rows)


def _beyond(result: Any, horizon: float) -> Section:
    """The errors in one horizon after the other, and at the end of each."""
    errors, rows = result.scores["over_time"]["nrmse"], []
    numbers = [max(1, ceil(t / horizon - 1e-4)) for t in result.t]
    for number_of in dict.fromkeys(numbers):
        within = [error for error, place in zip(errors, numbers, strict=True) if place == number_of]
        last = max(t for t, place in zip(result.t, numbers, strict=True) if place == number_of)
        rows.append((f"{number_of}, to t = {last:.4g}", number(sum(within) / len(within)), number(within[-1])))
    return Section("Beyond the horizon of training", ("horizon", "nRMSE", "at its end"), tuple(rows))


def lines(tables: Sequence[Section], notes: Iterable[str] = ()) -> list[str]:
    """Plain text: the first column to the left, numbers to the right."""
    text: list[str] = []
    for table in tables:
        columns = list(zip(table.header, *table.rows, strict=True))
        widths = [max(len(cell) for cell in column) for column in columns]
        text.append(table.title)
        for row in (table.header, *table.rows):
            cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            text.append("  " + "  ".join([row[0].ljust(widths[0]), *cells]).rstrip())
        text.append("")
    text += [f"Note: {note}" for note in notes]
    return text if notes else text[:-1]


def number(value: float | None) -> str:
    if value is None or not isfinite(value):
        return "not finite" if value is not None else "–"
    return spell_error(value)


def score(scores: Mapping[str, Any], part: str, name: str, at: int | None = None) -> str:
    """A metric of "overall", or one entry of "per_channel" and "over_time".

    Where all targets are zero, or constant, some are undefined: those that are none though the RMSE is finite.
    """
    value, size = (_pick(scores[part].get(each), at) for each in (name, "rmse"))
    undefined = value is not None and isnan(value) and size is not None and isfinite(size)
    return UNDEFINED if undefined else number(value)


def _pick(values: Any, at: int | None) -> float | None:
    return values if at is None or values is None else values[at]


def seconds(value: float | None) -> str:
    return "–" if value is None else spell_seconds(value)


def _metrics(evaluation: Any) -> Section:
    result, several = evaluation.result, len(evaluation.channels) > 1
    rows = []
    for name, value in result.scores["overall"].items():
        if name == RAW and value == result.value("nrmse"):
            continue  # nothing has faded
        channels = range(len(evaluation.channels)) if several else ()
        cells = (score(result.scores, "per_channel", name, channel) for channel in channels)
        rows.append((TITLES.get(name, name), score(result.scores, "overall", name), *cells))
    if evaluation.data_nrmse is not None:
        empty = ("",) * len(evaluation.channels) if several else ()
        rows.append((DATA_ERROR, number(evaluation.data_nrmse), *empty))
    title = (
        f"{evaluation.model} on {evaluation.problem}, {evaluation.split} split: {evaluation.samples} trajectories, "
        f"{spell_sides(result.resolution)} points, {result.frames} times"
    )
    return Section(title, ("metric", "all", *evaluation.channels) if several else ("metric", "value"), tuple(rows))


def _over_time(evaluation: Any) -> Section:
    """The first, the last, and three times between."""
    times, scores = evaluation.result.t, evaluation.result.scores
    chosen = sorted({round(k * (len(times) - 1) / 4) for k in range(5)})
    header = ("t", *(f"{times[k]:.4g}" for k in chosen))
    cells = (score(scores, "over_time", "nrmse", k) for k in chosen)
    return Section("Error over time", header, (("nRMSE", *cells),))


def _finer(title: str, what: str, results: Sequence[Any], base: Any, label: Any) -> Section:
    rows, short = [], _short(base)
    for result in results:
        change = result.change.get("nrmse")
        same = result.resolution == base.resolution and result.frames == base.frames
        changed = "–" if change is None or not isfinite(change) else f"{100 * change:+.1f} %"
        shown = {(True, True): "trained", (True, False): "reference"}.get((same, result.trained), changed)
        rows.append((label(result), *(score(result.scores, "overall", name) for name in short), shown))
    return Section(title, (what, *(TITLES[name] for name in short), "change"), tuple(rows))


def _short(result: Any) -> list[str]:
    return [name for name in SHORT if name in result.scores["overall"]]


def _parameters(evaluation: Any) -> Section:
    rows, short = [], _short(evaluation.result)
    for group in evaluation.parameters:
        kind = {True: "seen", False: "unseen"}.get(group.seen, "unknown")
        numbers = (score(group.scores, "overall", name) for name in short)
        rows.append((spell_values(group.values), kind, str(group.scores["samples"]), *numbers))
    titles = ("value", "training", "trajectories", *(TITLES[name] for name in short))
    return Section("Parameter values", titles, tuple(rows))


def _cost(results: Sequence[Any]) -> Section:
    rows = []
    for result in results:
        cost = result.cost
        memory = "–" if cost.peak_memory is None else spell_memory(cost.peak_memory)
        faster = "–" if cost.speed_up is None else f"{cost.speed_up:.3g}×"
        solver = (seconds(cost.solver_seconds), number(cost.solver_nrmse))
        # Of large fields fewer are computed together.
        rows.append((spell_sides(result.resolution), str(cost.samples), seconds(cost.seconds), *solver, faster, memory))
    title = f"Time per trajectory on {results[0].cost.device}"
    return Section(title, ("points", "at once", "model", "solver", "solver nRMSE", "speed-up", "memory"), tuple(rows))
