"""One file of trajectories, described but not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.names import name_own, names_equation
from vcnef.data.notes import GENERATED
from vcnef.grid import spell_sides
from vcnef.periodicity import spell_axes
from vcnef.problem import Problem
from vcnef.units import advice, differing


@dataclass(frozen=True, eq=False)
class Source:
    """Everything about the trajectories of one file except the fields, which `read` fetches for chosen rows.

    `read` takes sorted, different row numbers and returns float32 fields `[rows t *x c]`, thinned as the view asks;
    of those it reads the frames and points that a second argument cuts out, all where that is empty.
    `attributes`, `parts`, `subset` and `split_in_order` are those of the `Trajectories` that were saved. `sides_known`
    is whether anybody has said, here or in the file, along which axes the domain closes.
    """

    path: Path
    t: Float[Tensor, " t"]
    grid: Float[Tensor, "*x D"]
    params: Float[Tensor, "n p"] | Float[Tensor, "n t p"]
    problem: Problem
    read: Callable[[np.ndarray, tuple[slice, ...]], np.ndarray]
    attributes: Mapping[str, Any]
    parts: tuple[int, ...]
    subset: str | None
    split_in_order: bool
    sides_known: bool = True

    def __len__(self) -> int:
        return len(self.params)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all fields, [n t *x c]."""
        return (len(self), len(self.t), *self.grid.shape[:-1], len(self.problem.channels))


def check_alike(sources: Sequence[Source]) -> None:
    """Files opened together must be of one problem, on the same grid at the same times, and of the same split."""
    first = sources[0]
    for other in sources[1:]:
        for difference in _differences_of_files(other, first):
            raise ValueError(f"{other.path} and {first.path} cannot be opened together: {difference}.")


def _differences_of_files(other: Source, first: Source) -> Iterator[str]:
    got, expected = other.problem, first.problem
    for what in ("channels", "parameters"):  # in the same order too
        if getattr(got, what) != getattr(expected, what):
            yield f"their {what} are {list(getattr(got, what))} and {list(getattr(expected, what))}"
    # A file that names no problem is called by its own name, which says nothing.
    noted = all(each.problem.name != name_own(each.path.stem) for each in (other, first))
    if noted and got.name != expected.name:
        yield f"they are of {got.name} and {expected.name}"
    yield from differences(other, first)
    if other.subset != first.subset:
        splits = (f"the {each.subset} split" if each.subset else "no split" for each in (other, first))
        yield f"they are {' and '.join(splits)}"


def differences(other: Any, first: Any) -> Iterator[str]:
    """Say in which ways two sets of trajectories, described or read, are not of one kind."""
    got, expected = other.problem, first.problem
    # Other names are those of files.
    if got.name != expected.name and names_equation(got.name) and names_equation(expected.name):
        yield f"they are of the equations {got.name} and {expected.name}"
    made = [each.attributes.get(GENERATED) for each in (other, first)]
    if None not in made and made[0] != made[1]:
        yield f"their equation is of the generations {made[0]} and {made[1]}"
    if got.channels != expected.channels:
        yield f"their channels are {list(got.channels)} and {list(expected.channels)}"
    if sorted(got.parameters) != sorted(expected.parameters):
        yield f"their parameters are {list(got.parameters)} and {list(expected.parameters)}"
    if sorted(got.varying) != sorted(expected.varying):
        shown = [", ".join(each.varying) or "none" for each in (got, expected)]
        yield f"their parameters that change with time are {shown[0]} and {shown[1]}"
    for what, here, there in (("points", other.grid, first.grid), ("times", other.t, first.t)):
        if here.shape != there.shape:
            sides = (spell_sides(each.shape[: each.ndim - (what == "points")]) for each in (here, there))
            yield f"they have {' and '.join(sides)} {what}"
        elif not _close(here, there):
            yield f"their {what} differ, by up to {float((here - there).abs().max()):.3g}"
    for what, here, there in differing(got.units, expected.units):
        fix = advice(here, there).rstrip(".")
        yield f"{what} is in {here} and {there}. {fix}"
    if got.periodic != expected.periodic:
        both = isinstance(got.periodic, bool) and isinstance(expected.periodic, bool)
        sides = " and ".join(spell_axes(each.closes) for each in (got, expected))
        yield "only one of them is periodic" if both else f"they are periodic {sides}"
    if not _close(torch.tensor(got.domain), torch.tensor(expected.domain)):
        yield f"their domains are {got.domain} and {expected.domain}"


def _close(here: Tensor, there: Tensor) -> bool:
    """But for rounding, by the length that the values span: they may be nanoseconds or kilometres."""
    span = float(there.max() - there.min()) if there.numel() else 0.0
    return here.shape == there.shape and torch.allclose(here, there, rtol=1e-6, atol=1e-5 * span)


def runs(rows: np.ndarray, step: int = 1) -> Iterator[tuple[int, int]]:
    """Runs of sorted rows that are read at once, as places (first, one past the last).

    Rows in a run are at most `step` apart: those of a file that is stored in pieces of several rows are read faster
    with what is between them.
    """
    starts = np.flatnonzero(np.diff(rows, prepend=rows[0] - step - 1) > step)
    yield from zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True)
