"""Patches of regular grids: continuing fields and coordinates to whole patches, and the points that stand for each."""

from __future__ import annotations

from math import lcm

import torch
from jaxtyping import Float
from torch import Tensor


def whole_sides(sides: tuple[int, ...], patches: tuple[int, ...]) -> tuple[int, ...]:
    """The next sides, none smaller, that patches of every size cover exactly."""
    size = lcm(*patches)
    return tuple((side + size - 1) // size * size for side in sides)


def continue_field(
    field: Float[Tensor, "b *x c"], sides: tuple[int, ...], closes: tuple[bool, ...]
) -> Float[Tensor, "b *y c"]:
    """The field continued past its far edges to `sides`: from its other end along axes that close, else by its last
    values."""
    for axis, side in enumerate(sides, start=1):
        length = field.shape[axis]
        if side > length:
            index = torch.arange(side, device=field.device)
            field = field.index_select(axis, index % length if closes[axis - 1] else index.clamp(max=length - 1))
    return field


def continue_grid(grid: Float[Tensor, "b *x D"], sides: tuple[int, ...]) -> Float[Tensor, "b *y D"]:
    """The grid continued past its far edges to `sides` with the spacing of its last two points."""
    for axis, side in enumerate(sides, start=1):
        length = grid.shape[axis]
        if side > length:
            last = grid.narrow(axis, length - 1, 1)
            step = last - grid.narrow(axis, max(length - 2, 0), 1)
            count = torch.arange(1, side - length + 1, device=grid.device, dtype=grid.dtype)
            beyond = last + step * count.view(-1, *[1] * (grid.ndim - 1 - axis))
            grid = torch.cat((grid, beyond), dim=axis)
    return grid


def patch_points(grid: Float[Tensor, "b *x D"], size: int, count: int) -> Float[Tensor, "b s g D"]:
    """The points that stand for each patch: its centre (`count` = 1), or its first and last corner (`count` = 2)."""
    first = last = grid
    for axis in range(1, grid.ndim - 1):
        first = first.unflatten(axis, (-1, size)).select(axis + 1, 0)
        last = last.unflatten(axis, (-1, size)).select(axis + 1, size - 1)
    corners = [corner.flatten(1, -2) for corner in (first, last)]
    return torch.stack(corners if count == 2 else [(corners[0] + corners[1]) / 2], dim=-2)
