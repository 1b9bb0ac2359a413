"""Which frames and points of data at full resolution a model is judged on: as it was trained, and finer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.grid import as_sides, is_scattered, spell_sides
from vcnef.periodicity import of_points


@dataclass(frozen=True)
class Selection:
    """Every `stride`-th point along each axis, and some frames, of which the first is the initial state.

    `earlier` are those before it that belong to its history, for a model that remembers them.
    """

    stride: int
    frames: tuple[int, ...]
    earlier: tuple[int, ...] = ()

    def cut(self, u: Float[Tensor, "b t *x c"]) -> Float[Tensor, "b frames *y c"]:
        """These frames and points of trajectories at full resolution."""
        thin = (slice(None, None, self.stride),) * (u.ndim - 3)
        return u[(slice(None), list(self.frames), *thin)]

    def begin(self, u: Float[Tensor, "b t *x c"]) -> Float[Tensor, "b *y c"]:
        """The initial states, or histories `b h *x c`, of trajectories at full resolution."""
        frames = replace(self, frames=(*self.earlier, self.frames[0])).cut(u)
        return frames if self.earlier else frames[:, 0]

    def grid(self, data: Any) -> Float[Tensor, "*x D"]:
        return data.grid[(slice(None, None, self.stride),) * (data.grid.ndim - 1)]

    def times(self, data: Any) -> Float[Tensor, " t"]:
        """The query times, counted from the initial state."""
        t = data.t[list(self.frames)].double()
        return (t[1:] - t[0]).to(data.t.dtype)


def known_of_time(surrogate: Any, data: Any, selection: Selection, params: Tensor) -> dict[str, Any]:
    """What an answer from the first frame of a selection needs to know of time, as `Surrogate.answer` takes it."""
    first = float(data.t[selection.frames[0]])
    told = getattr(surrogate.scaling, "explicit_time", None) is not None
    known: dict[str, Any] = {"start": first} if told else {}
    if params.ndim == 3:
        known["params_t"] = data.t.double() - first
    return known


def as_trained(surrogate: Any, data: Any) -> tuple[Selection, list[str]]:
    """The resolution and times that the model was trained at, as far as it says so and the data hold them.

    They are its `provenance["resolution"]` and `["times"]`. Otherwise the data are taken as they are, up to the
    horizon of training, and a note says so.
    """
    stride, about_space = _trained_stride(surrogate.provenance.get("resolution"), data)
    frames, about_time = _trained_frames(surrogate.provenance.get("times"), surrogate.horizon, data.t)
    before = getattr(surrogate, "history", 1) - 1
    if before:
        _check_history(data.t, frames, before, surrogate.provenance["frame_gap"])
    return Selection(stride, frames[before:], frames[:before]), about_space + about_time


def _check_history(t: Tensor, frames: tuple[int, ...], before: int, gap: float) -> None:
    """Whether the data have the frames that a model remembers, and later ones to judge."""
    here = float(t[frames[1]] - t[frames[0]])
    if len(frames) < before + 2 or abs(here / gap - 1) > 1e-3:
        raise ValueError(
            f"The model begins with {before + 1} frames that are {gap:.4g} apart; the data have {len(frames)}, "
            f"{here:.4g} apart. Give data with such frames and later ones."
        )


def finer_in_space(data: Any, base: Selection, points: int) -> Selection:
    """The same frames on a grid of so many points along the first axis, in proportion along the others."""
    if is_scattered(data.grid):
        raise ValueError("The data are scattered points, which have no resolutions. Leave space out.")
    strides = _strides(data)
    left = [ceil(data.resolution[0] / stride) for stride in strides]
    if points not in left:
        possible = sorted({n for n in left if n > 1})
        raise ValueError(
            f"space has {points}, which no stride leaves of the {spell_sides(data.resolution)} points of the data. "
            f"Choose from {_listed(possible)}, and open the data at full resolution."
        )
    return replace(base, stride=strides[left.index(points)])


def finer_in_time(data: Any, base: Selection, frames: int) -> tuple[Selection, list[str]]:
    """The same points and horizon with so many frames, every n-th of the data's, the initial one included.

    One frame beyond the horizon is allowed and noted: the paper's finer set of 1D Navier–Stokes (82 frames) has it.
    Noted too is where the data's own steps make unequal ones.
    """
    if base.earlier:
        raise ValueError(
            f"time has {frames} frames, but the model begins with {1 + len(base.earlier)} frames as in training. Leave "
            "time out."
        )
    horizon = base.frames[-1]
    possible = {horizon // gap + 1: gap for gap in range(1, horizon + 1) if horizon % gap == 0}
    if frames in possible:
        chosen = tuple(range(0, horizon + 1, possible[frames]))
        return Selection(base.stride, chosen), _about_steps(data.t, chosen)
    gap = possible.get(frames - 1)
    if gap is not None and horizon + gap < len(data.t):
        last = float(data.t[horizon + gap] - data.t[0])
        note = f"The last of {frames} times, {last:g}, lies beyond the horizon {float(data.t[horizon] - data.t[0]):g}."
        chosen = tuple(range(0, horizon + gap + 1, gap))
        return Selection(base.stride, chosen), [note, *_about_steps(data.t, chosen)]
    raise ValueError(
        f"time has {frames} frames, which the {horizon + 1} frames of the data up to the horizon cannot give "
        f"at equal steps. Choose from {_listed(sorted(possible))}, and open the data at all their times."
    )


def beyond(data: Any, base: Selection, trained: float, horizons: float | int) -> Selection:
    """The frames of training and, in the same steps, those after them up to so many horizons."""
    t = data.t.double() - float(data.t[0])
    gap = base.frames[-1] - base.frames[-2]
    later = range(base.frames[-1] + gap, len(t), gap)
    chosen = [frame for frame in later if float(t[frame]) <= horizons * trained * (1 + 1e-4)]
    if horizons <= 1 or not chosen or float(t[chosen[-1]]) < (horizons - 0.5) * trained:
        raise ValueError(
            f"horizon is {horizons:g} times the {trained:g} of training, but the data end at {float(t[-1]):g}. Choose "
            f"at most {float(t[-1]) / trained:.3g}, more than 1, or give longer trajectories."
        )
    return replace(base, frames=(*base.frames, *chosen))


def about_later_frames(data: Any, base: Selection, trained: float) -> list[str]:
    """A note where the data go on beyond the horizon of training, which is as far as they are judged."""
    t = data.t.double() - float(data.t[0])
    last, later = base.frames[-1], len(t) - 1 - base.frames[-1]
    if (judged := float(t[last])) > trained * (1 + 1e-4):
        return [
            f"The model is judged at t = {judged:.4g}, beyond the horizon {trained:.4g} of training: the data have no "
            "later frame before it. Check the unit of their times."
        ]
    if not later or float(t[-1]) <= trained * (1 + 1e-4):
        return []
    note = f"{later} of the {len(t)} frames lie beyond the horizon {trained:.4g} of training and are not judged."
    horizons = f"{float(t[-1]) / trained:.4g}"
    if last + base.frames[-1] - base.frames[-2] < len(t) and float(horizons) > 1:
        note += f" horizon={horizons}, or --horizon {horizons}, judges them too."
    return [note]


def _trained_stride(resolution: int | Sequence[int] | None, data: Any) -> tuple[int, list[str]]:
    full = data.resolution
    if resolution is None:
        return 1, [f"The model does not say at which resolution it was trained; judged on {spell_sides(full)} points."]
    sides = as_sides(resolution, len(full))
    for stride in _strides(data):
        if tuple(ceil(n / stride) for n in full) == sides:
            return stride, []
    return 1, [f"Trained on {spell_sides(sides)} points, but judged on the {spell_sides(full)} of the data."]


def _trained_frames(
    times: Sequence[int | float] | None, horizon: float, t: Tensor
) -> tuple[tuple[int, ...], list[str]]:
    elapsed = t.double() - float(t[0])
    within = tuple(range(max(2, int((elapsed <= horizon * (1 + 1e-4)).sum()))))
    if times is None:
        return within, [f"The model does not say at which times it was trained; judged at {len(within)} times."]
    frames = _frames_at(t, times)
    if frames is None:
        return within, [f"Trained on {len(times)} times, but judged on the {len(within)} of the data."]
    return frames, []


def _about_steps(t: Tensor, frames: tuple[int, ...]) -> list[str]:
    """A note where the steps between these frames are not equal to 1 %."""
    steps = t[list(frames)].double().diff()
    if float(steps.max()) <= 1.01 * float(steps.min()):
        return []
    return [
        f"The steps between the {len(frames)} times are not equal, but {steps.min():.4g} to {steps.max():.4g} long."
    ]


def _strides(data: Any) -> list[int]:
    """By which the points can be thinned as `View` does it: along periodic axes by divisors, along others by any.

    Several of those may leave as many points. Divisors come first, then strides that keep both ends, then small ones.
    """
    full = data.resolution
    closed = [n for n, closes in zip(full, of_points(data.problem.periodic, full), strict=True) if closes]

    def rest(stride: int) -> tuple[bool, bool]:
        return any(n % stride for n in full), any((n - 1) % stride for n in full)

    strides = [stride for stride in range(1, max(full) + 1) if not any(n % stride for n in closed)]
    return sorted(strides, key=rest)


def _frames_at(t: Tensor, times: Sequence[int | float]) -> tuple[int, ...] | None:
    """The frames at these times, both counted from their first; None where one is missing."""
    elapsed, wanted = (torch.as_tensor(each, dtype=torch.float64).cpu() for each in (t, times))
    elapsed, wanted = elapsed - elapsed[0], wanted - wanted[0]
    gaps, frames = (elapsed[None] - wanted[:, None]).abs().min(dim=1)
    # Files hold single-precision times.
    fits = len(wanted) > 1 and float(gaps.max()) <= 1e-4 * float(wanted[-1])
    return tuple(frames.tolist()) if fits and (frames.diff() > 0).all() else None


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) if numbers else "none"
