"""What data say of a domain that is taken to close on itself: their last points and their first ones as neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.rows import bytes_of_one, spread
from vcnef.grid import axes, is_even, is_scattered
from vcnef.periodicity import SPACE, settle
from vcnef.problem import Problem

NUMBERS = 2**21
"""About so many values are looked at, of trajectories and frames from first to last."""
ROWS_BYTES = 256 * 2**20
"""Most bytes that are read for it; fields of which a few trajectories are more are not judged."""
MOST_SAMPLES, MOST_FRAMES = 64, 16
FEWEST_SAMPLES, FEWEST_FRAMES, FEWEST_POINTS = 3, 2, 12
"""Fewer trajectories, or points along an axis, are no evidence."""
STANDS_OUT = 2.5
"""How many times the largest of all inside the mean across the seam has to be. Periodic data, rough ones too, seldom
come to 2; between walls 3 to 30 are usual."""
AGREEING = 0.4
"""Share of the trajectories, at least, in which nothing inside is as large: a shock is somewhere else in each."""
FLAT = 1e-3
"""States that vary by less than this share of all data are left out: they show how numbers were rounded."""


def warn_of_seams(data: Any, *, said: bool = False) -> None:
    """Warn along which axes data that are taken as periodic seem to end, or to have their first points twice.

    Where somebody has `said` that the domain closes, the first is not asked.
    """
    problem, grid = data.problem, data.grid
    if not any(problem.closes) or is_scattered(grid) or (u := _look_at(data)) is None:
        return
    ending, twice = {}, []
    for axis, line in enumerate(axes(grid)):
        if not problem.closes[axis]:
            continue
        repeats = meets_itself(u, axis + 2)
        # Ends that are held at the same value repeat themselves, too; but then it is not smooth across them.
        once = u.narrow(axis + 2, 0, u.shape[axis + 2] - repeats)
        if not said and is_even(line) and (found := breaks(once, axis + 2)):
            ending[axis] = found
        elif repeats:
            twice.append(axis)
    for axis in twice:
        warnings.warn(_in_words_twice(axis, problem), UserWarning, stacklevel=3)
    if ending:
        warnings.warn(_in_words(ending, problem), UserWarning, stacklevel=3)


def _look_at(data: Any) -> Float[Tensor, "b t *x c"] | None:
    """Return some frames of some trajectories, or nothing where reading those would take long."""
    most = ROWS_BYTES // bytes_of_one(data)
    if most < min(len(data), FEWEST_SAMPLES):
        return None
    numbers = prod(data.resolution) * len(data.problem.channels)
    fitting = max(FEWEST_FRAMES, NUMBERS // (FEWEST_SAMPLES * numbers))
    frames = spread(len(data.t), min(len(data.t), MOST_FRAMES, fitting))
    fitting = max(FEWEST_SAMPLES, NUMBERS // (len(frames) * numbers))
    samples = min(len(data), most, MOST_SAMPLES, fitting)
    return data.read(spread(len(data), samples))[:, frames]


def meets_itself(u: Float[Tensor, "b t *x c"], axis: int) -> bool:
    """Return whether the last points seem to be the first ones again.

    Fields that are flat there, as far from a wave, say nothing.
    """
    scale = float(u.max() - u.min())
    first, second, last = (u.select(axis, place) for place in (0, min(1, u.shape[axis] - 1), -1))
    changes = float((second - first).abs().max())
    return changes > 1e-3 * scale and float((last - first).abs().max()) < 1e-6 * scale


def breaks(u: Float[Tensor, "b t *x c"], axis: int) -> tuple[str, float] | None:
    """Return what stands out where the last points meet the first along an axis, and how many times, if anything does.

    Two means over states and channels are compared with those at every place inside: of the difference between
    neighbours (ends at different values), and of the change of slope from one side to the other (ends that are held at
    one value, where fields go through without a jump). Each state counts by how rough it is itself.
    """
    if len(u) < FEWEST_SAMPLES or u.shape[axis] < FEWEST_POINTS:
        return None
    along = u.movedim(axis, -1)
    differences = along.roll(-1, -1) - along
    # From the difference before a gap to the one after it. The last gap is the seam; those beside it touch it too.
    turns = differences.roll(-1, -1) - differences.roll(1, -1)
    worth = _worth(along)
    for what, sizes, inside in (("values jump", differences, slice(0, -1)), ("slopes turn", turns, slice(1, -2))):
        for times, agreeing in _outstanding(sizes.abs(), worth, inside):
            if times >= STANDS_OUT and agreeing >= AGREEING:
                return what, times
    return None


def _worth(along: Float[Tensor, "b t *y c n"]) -> Float[Tensor, "b t c"]:
    """Return 1 for states that vary along the last axis, 0 for flat ones."""
    lines = tuple(range(2, along.ndim - 2))
    spans = along.amax(dim=-1) - along.amin(dim=-1)
    spans = spans.amax(dim=lines) if lines else spans
    everything = (0, 1, *lines, along.ndim - 1)
    whole = along.amax(dim=everything) - along.amin(dim=everything)
    return ((spans > FLAT * whole) & (spans > 0)).to(along.dtype)


def _outstanding(
    sizes: Float[Tensor, "b t *y c n"], worth: Float[Tensor, "b t c"], inside: slice
) -> Iterator[tuple[float, float]]:
    """Return for each channel how many times the mean of the last gap is the largest inside, and the share of the
    trajectories of which that is true."""
    profiles = sizes.mean(dim=tuple(range(2, sizes.ndim - 2))) if sizes.ndim > 4 else sizes
    scale = profiles[..., inside].mean(dim=-1)
    tiny = torch.finfo(scale.dtype).tiny
    profiles = (profiles * (worth / scale.clamp(min=tiny))[..., None]).sum(dim=1)
    for channel, counts in enumerate(worth.sum(dim=1).unbind(dim=-1)):
        usable = counts > 0
        if int(usable.sum()) < FEWEST_SAMPLES:
            continue
        each = profiles[usable, channel] / counts[usable, None]
        mean = each.mean(dim=0)
        times = float(mean[-1] / mean[inside].max().clamp(min=tiny))
        yield times, float((each[:, -1] > each[:, inside].amax(dim=-1)).float().mean())


def _in_words_twice(axis: int, problem: Problem) -> str:
    return (
        f"The first and the last points along {SPACE[axis]} hold the same values in all of u. Where a domain closes "
        f"on itself a point is there once: leave the last ones out, of u and of x, or give {_spell(problem, [axis])}."
    )


def _in_words(ending: Mapping[int, tuple[str, float]], problem: Problem) -> str:
    found = [f"{what} {min(times, 999):.0f} times as far along {SPACE[axis]}" for axis, (what, times) in ending.items()]
    names = ",".join(SPACE[axis] for axis in ending)
    option = "--no-periodic" if problem.ndim == 1 else f"--walls {names}"
    return (
        f"From the last points to the first ones {' and '.join(found)} as anywhere inside, so the domain does not seem "
        f"to close on itself there. Give {_spell(problem, ending)} ({option} on the command line), or periodic=True "
        "(--periodic) if it does close."
    )


def _spell(problem: Problem, ending: Iterable[int]) -> str:
    """Return what to give for a domain that ends along these axes."""
    ends = set(ending)
    closes = [closes and axis not in ends for axis, closes in enumerate(problem.closes)]
    return f"periodic={settle(closes, problem.ndim)}"
