"""How long a window is: the time that a model answers directly, in frames of the data."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.precision import short
from vcnef.grid import is_even, is_scattered

FEWEST_FRAMES = 5
"""After the initial one: fewer are not worth a composition."""
CHANGE = 0.02
"""How far fields change within a chosen window at least, as a part of their spread."""
MOST_WINDOWS = 40
"""To the horizon: errors add up over compositions."""
LOOKED_AT = 2**23
"""Numbers, in two trajectories at least."""


class Window(NamedTuple):
    """So many frames, and the time that they take at most; `why` it was chosen, in words."""

    frames: int
    length: float
    why: str


def choose_window(data: Any, asked: str | float) -> Window | None:
    """The window that is asked for, as a time; "auto" looks at the data, "direct" is none."""
    if asked == "direct":
        return None
    if asked == "auto":
        return suited_window(data)
    frames = frames_within(data.t, asked)
    return Window(frames, length_of(data.t, frames), f"{asked:g} was asked for")


def suited_window(data: Any) -> Window | None:
    """The shortest window in which fields change by 2 % of their spread, and of which 40 at most reach the horizon.

    Longer windows have more to learn, and gave larger errors where both were tried on a CPU. But errors add
    up over compositions, and where fields hardly change between frames there is little to learn. Of scattered points,
    of few frames and of fields at rest, all times are answered directly.
    """
    frames = len(data.t)
    if frames <= FEWEST_FRAMES or is_scattered(data.grid):
        return None
    u = looked_at(data)
    if not u.isfinite().all() or not u.any():
        return None
    least = -(-(frames - 1) // MOST_WINDOWS)
    for count in range(least, frames):
        change = change_within(u, count)
        if change >= CHANGE:
            why = f"fields change by {change:.0%} of their spread in {count} of {frames - 1} frames"
            return Window(count, length_of(data.t, count), why)
    return None


def change_within(u: Float[Tensor, "n t *x c"], frames: int) -> float:
    """Return how far fields change within so many frames; in units of their spread, as a part of that."""
    return float((u[:, frames:] - u[:, :-frames]).square().mean().sqrt())


def frames_within(t: Float[Tensor, " t"], window: float) -> int:
    """The number of frames that such a window holds after its start, as nearly as the data can say."""
    gap = float(t.double().diff().mean())
    frames = round(window / gap)
    if not 1 <= frames < len(t) or abs(frames * gap / window - 1) > 0.01:
        raise ValueError(
            f"window is {window:g}; expected a multiple of {gap:.6g}, the time between frames, below the "
            f"{float(t[-1] - t[0]):g} of a trajectory. Choose another, or 'auto' or 'direct'."
        )
    return frames


def length_of(t: Float[Tensor, " t"], frames: int) -> float:
    """The longest time that so many frames take."""
    if is_even(t):
        return short(frames * float(t[-1] - t[0]) / (len(t) - 1))
    t = t.double()
    return short(float((t[frames:] - t[:-frames]).max()))


def departures(data: Any, frames: int) -> dict[str, float]:
    """How far parameters that change with time are from straight lines between the ends of windows of so many frames,
    by name: root mean squares, as parts of their spread."""
    found = {}
    for name, column in zip(data.problem.varying, data.problem.varying_columns, strict=True):
        values, t = data.params[..., column].double(), data.t.double()
        spread, squares = float(values.std()), [torch.zeros((), dtype=torch.float64)]
        begin, end = slice(None, -frames), slice(frames, None)
        for inside in range(1, frames):
            here = slice(inside, len(t) - frames + inside)
            share = (t[here] - t[begin]) / (t[end] - t[begin])
            straight = values[:, begin] + share * (values[:, end] - values[:, begin])
            squares.append((values[:, here] - straight).square().mean())
        worst = float(torch.stack(squares).max().sqrt())
        found[name] = worst / spread if spread > 0 else 0.0
    return found


def looked_at(data: Any) -> Float[Tensor, "n t *x c"]:
    """Return trajectories from everywhere in the data, each channel in units of its spread."""
    numbers = len(data.t) * prod(data.resolution) * len(data.problem.channels)
    count = min(len(data), max(2, LOOKED_AT // numbers))
    rows = torch.linspace(0, len(data) - 1, count).round().long()
    u = (data.u[rows] if hasattr(data, "u") else data.read(rows)).double()
    axes = tuple(range(u.ndim - 1))
    spread = u.std(dim=axes)
    return u / spread.where(spread > 0, 1.0)
