"""Pieces every finite-volume scheme here shares: neighbours on a periodic grid, limited edge states, the midpoint rule.

Fields are tensors `[b *x]`, one per component, so that a fused kernel reads and writes whole arrays.
Axis 1 is the first space axis.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

State = tuple[Tensor, ...]
"""The components of a state, each `[b *x]`."""


def neighbour(q: Tensor, axis: int, offset: int) -> Tensor:
    """q_{i + offset} at cell i, around the period."""
    return torch.roll(q, -offset, axis)


def face_states(q: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return the two limits of q at the faces i + ½: q_i + σ_i / 2 from the left, q_{i+1} − σ_{i+1} / 2 from the right.

    σ is the monotonised-central slope. With a = q_i − q_{i−1} and b = q_{i+1} − q_i:
    σ = sign(a + b) min(2|a|, 2|b|, |a + b| / 2) where ab > 0, else 0.
    Clamping (a + b) / 4 between min(max(a, b), 0) and max(min(a, b), 0) is the same σ / 2 without a branch.
    Edge values lie between neighbouring cell values, so positive cells have positive edges.
    """
    behind = q - neighbour(q, axis, -1)
    ahead = neighbour(q, axis, 1) - q
    lowest = torch.maximum(behind, ahead).clamp(max=0.0)
    highest = torch.minimum(behind, ahead).clamp(min=0.0)
    half_slope = torch.minimum(torch.maximum(0.25 * (behind + ahead), lowest), highest)
    return q + half_slope, neighbour(q - half_slope, axis, 1)


def outflow(flux: Tensor, axis: int) -> Tensor:
    """F_{i+½} − F_{i−½}: what leaves cell i, for a flux given at the faces i + ½."""
    return flux - neighbour(flux, axis, -1)


def midpoint(advance: Callable[[State, State, Tensor], State], state: State, dt: Tensor) -> State:
    """Explicit midpoint rule U* = U − (dt/2) div F(U), U' = U − dt div F(U*).

    `advance(base, at, dt)` gives `base` moved by dt with the fluxes of the state `at`.
    """
    return advance(state, advance(state, state, 0.5 * dt), dt)


def per_sample(values: Tensor, like: Tensor) -> Tensor:
    """`[b]` values as `[b 1 … 1]`, to multiply a field `[b *x]`."""
    return values.reshape(-1, *(1,) * (like.ndim - 1))


def largest(q: Tensor) -> Tensor:
    """Return the largest value of each sample, `[b *x] -> [b]`."""
    return q.flatten(1).amax(1)
