"""The classical solver on coarser grids: the error and the time that a model competes with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, nan, prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.rows import spread
from vcnef.evaluation.cost import (
    LONGEST_SOLVE,
    classical_solver,
    equation_of,
    expected_seconds,
    follows_solver,
    together,
)
from vcnef.evaluation.fastest import can_compile, on_threads, thread_counts
from vcnef.evaluation.selections import Selection
from vcnef.metrics.errors import floored_nrmse_table
from vcnef.pde.reference import by_lines
from vcnef.timing import time_once

PARTS = (2, 4, 8)
"""Of the points of the data along an axis, one in so many."""
FEWEST_POINTS = 8
"""Along an axis; below, a solver's stencil hardly fits."""
MOST_JUDGED = 32
"""Trajectories that the error is averaged over."""


@dataclass(frozen=True)
class Fidelity:
    """The solver on one grid: seconds per trajectory, and its error where the model is judged too.

    It starts from every second, fourth or eighth point of the data, and what it gives is interpolated linearly between
    these; where the model is judged on some of them only, nothing is interpolated.
    """

    resolution: tuple[int, ...]
    seconds: float
    nrmse: float
    samples: int
    compiled: bool = False
    threads: int | None = None


def measure_fidelities(
    data: Any, selection: Selection, device: torch.device | str, parts: Sequence[int] = PARTS
) -> list[Fidelity]:
    """The solver of the data's equation on grids of 1/2, 1/4 and 1/8 of their points, finest first.

    Errors are those against the data, at the points and times of `selection`. Grids that do not divide the data's,
    are too coarse or take too long are left out; all are where the equation is not known or not theirs, and between
    walls, where nothing is interpolated.
    """
    place = torch.device(device)
    if not all(data.problem.closes) or not follows_solver(data, place)[0]:
        return []
    fitting = [part for part in parts if all(n % part == 0 and n // part >= FEWEST_POINTS for n in data.resolution)]
    measured = (_measure(data, selection, part, place) for part in fitting)
    return [each for each in measured if each is not None]


def coarsen(u: Float[Tensor, "b *x c"], part: int) -> Float[Tensor, "b *y c"]:
    """One point in `part` along each axis, as views of data have them."""
    return u[(slice(None), *(slice(None, None, part),) * (u.ndim - 2))]


def refine(u: Float[Tensor, "b t *x c"], part: int) -> Float[Tensor, "b t *y c"]:
    """Linear between the points, on a periodic grid `part` times as fine; the inverse of `coarsen` at the points."""
    return by_lines(u.flatten(0, 1), part).unflatten(0, u.shape[:2])


def solver_at_its_best(
    data: Any, selection: Selection, device: torch.device, parts: Sequence[int], nrmse: float
) -> list[Fidelity]:
    """The solver as fast as it is known to be: all trajectories at once, compiled, on as many threads as pay.

    From the coarsest grid on to the first one whose error is below `nrmse`, and the data's own, which is only timed:
    its error is taken to be zero. Finest first.
    """
    fitting = [part for part in parts if all(n % part == 0 and n // part >= FEWEST_POINTS for n in data.resolution)]
    compiled = can_compile(equation_of(data), device)
    found: list[Fidelity] = []
    for part in sorted(fitting, reverse=True):
        best = None
        for threads in thread_counts(device):
            with on_threads(threads):
                each = _measure(data, selection, part, device, compiled=compiled, at_once=MOST_JUDGED)
            if each is not None and (best is None or each.seconds < best.seconds):
                best = replace(each, threads=threads)
        if best is not None:
            found.insert(0, best)
        if best is None or best.nrmse < nrmse:
            break
    own = _seconds_on_own_grid(data, selection, device, compiled)
    return [own, *found]


def _seconds_on_own_grid(data: Any, selection: Selection, device: torch.device, compiled: bool) -> Fidelity:
    """What data of this kind take to make, from the first part of some of them."""
    t = selection.times(data).to(device)
    rows = spread(len(data), min(len(data), MOST_JUDGED))
    u0 = data.read(rows).to(device)[:, selection.frames[0]]
    found = []
    for threads in thread_counts(device):
        with on_threads(threads):
            seconds = expected_seconds(partial(classical_solver(data, rows, compiled=compiled), u0), t, device)
        found.append(Fidelity(tuple(data.resolution), seconds / len(rows), 0.0, len(rows), compiled, threads))
    return min(found, key=lambda each: each.seconds)


def _measure(
    data: Any,
    selection: Selection,
    part: int,
    device: torch.device,
    *,
    compiled: bool | None = None,
    at_once: int | None = None,
) -> Fidelity | None:
    """By default as many trajectories at once as where the model is timed; None where it takes too long or blows up."""
    t = selection.times(data).to(device)
    every = Selection(selection.stride, tuple(range(len(t))))
    judged = spread(len(data), min(len(data), MOST_JUDGED))
    at_once = at_once or together(len(data), prod(selection.grid(data).shape[:-1]), device)
    seconds, errors = 0.0, []
    for rows in judged.split(at_once):
        u = data.read(rows).to(device)
        run = partial(classical_solver(data, rows, compiled=compiled), coarsen(u[:, selection.frames[0]], part))
        if not errors and expected_seconds(run, t, device) * len(judged) / len(rows) > LONGEST_SOLVE:
            return None
        found: list[Tensor] = []
        seconds += time_once(lambda run=run, found=found: found.append(run(t)), device)
        truth = selection.cut(u)
        error = floored_nrmse_table(every.cut(refine(found[0], part)), truth[:, 1:], truth[:, 0])
        errors.append(error.sums())
    total, count = torch.stack(errors).sum(dim=0).tolist()
    mean = total / count if count else nan
    resolution = tuple(n // part for n in data.resolution)
    found = Fidelity(resolution, seconds / len(judged), mean, len(judged), bool(compiled))
    return found if isfinite(mean) else None
