"""Numbers as a reader wants them, each with its exact value beside it, and which of several runs is best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, TypeGuard

from vcnef.report.page_blocks import Cell
from vcnef.report.run_record import RunRecord, dig
from vcnef.spelling import spell_error

NONE = "–"
LARGER_IS_BETTER = {"correlation"}

Spell = Callable[[int | float], str]
Facts = Mapping[str, tuple[str, ...]]
"""What evaluations must share to be compared, in the plural, and where their records say it."""

ASKED: Facts = {"points": ("result", "resolution"), "query times": ("result", "t")}
TEST: Facts = {
    "problems": ("problem",), "files": ("data",), "splits": ("split",), "numbers of trajectories": ("samples",),
    **ASKED,
}  # fmt: skip
"""Of errors."""
TIMING: Facts = {
    "devices": ("result", "cost", "device"), "numbers of trajectories at once": ("result", "cost", "samples"),
    **ASKED,
}  # fmt: skip
"""Of times per trajectory."""


def count(value: int | float) -> str:
    return f"{value:,.0f}"


def short(value: int | float) -> str:
    return f"{value:.3g}"


def change(value: int | float | None) -> str:
    if value is None or not isfinite(value):
        return NONE
    return f"{100 * value:+.1f} %".replace("-0.0", "+0.0")


def score(scores: Any, part: str, name: str, at: int | None = None) -> int | float | str | None:
    """Return a metric of "overall", or an entry of "per_channel" or "over_time"; where it is null, a word why.

    Null is what is not finite. Where the RMSE is, all targets are zero or constant, and the metric is undefined.
    """
    value = _pick(dig(scores, part, name), at)
    if value is not None or name not in (dig(scores, part) or {}):
        return value
    size = _pick(dig(scores, part, "rmse"), at)
    if finite(size):
        return "undefined"
    return "not finite"


def _pick(values: Any, at: int | None) -> Any:
    if at is None or values is None:
        return values
    return values[at]


def shown(value: Any, spell: Spell = spell_error, behind: str = "") -> Cell:
    """Return a number as text, with the exact one for those who copy it; words as they are."""
    if not isinstance(value, int | float):
        return Cell(value or NONE, behind=behind)
    if not isfinite(value):
        return Cell("not finite", behind=behind)
    return Cell(spell(value), exact=repr(value), behind=behind)


def finite(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and isfinite(value)


def row_of(
    values: Sequence[Any], spell: Spell = spell_error, *, best: Callable[..., int | float] | None = min
) -> list[Cell]:
    """Return a cell for each run; where several have a number, the best is marked."""
    numbers = list(filter(finite, values))
    cells = [shown(value, spell) for value in values]
    if best is None or len(numbers) < 2:
        return cells
    winner = best(numbers)
    return [replace(cell, best=value == winner) for value, cell in zip(values, cells, strict=True)]


def differing(runs: Sequence[RunRecord], facts: Facts) -> list[str]:
    """Return the facts in which the evaluations of the runs are not the same."""
    judged = [run for run in runs if run.metrics]
    names = []
    for name, keys in facts.items():
        if any(run.found(*keys) != judged[0].found(*keys) for run in judged):
            names.append(name)
    return names


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
