"""Patches of regular grids: continuing fields to whole patches, the points that stand for each patch, and finer grids
as several that lie interleaved."""

from __future__ import annotations

from math import lcm

import torch
from jaxtyping import Float
from torch import Tensor


def whole_sides(sides: tuple[int, ...], patches: tuple[int, ...]) -> tuple[int, ...]:
    """The next sides, none smaller, that patches of every size cover exactly."""
    size = lcm(*patches)
    return tuple((side + size - 1) // size * size for side in sides)


def continue_field(field: Float[Tensor, "b *x c"], sides: tuple[int, ...], periodic: bool) -> Float[Tensor, "b *y c"]:
    """The field continued past its far edges to `sides`: from its other end if periodic, else by its last values."""
    for axis, side in enumerate(sides, start=1):
        length = field.shape[axis]
        if side > length:
            index = torch.arange(side, device=field.device)
            field = field.index_select(axis, index % length if periodic else index.clamp(max=length - 1))
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


def interleaved(sides: tuple[int, ...], coarse: tuple[int, ...] | None) -> tuple[int, ...]:
    """How many grids of `coarse` sides make up this one along each axis; one where they do not."""
    if coarse is None or any(side % few for side, few in zip(sides, coarse, strict=True)):
        return (1,) * len(sides)
    return tuple(side // few for side, few in zip(sides, coarse, strict=True))


def apart(field: Float[Tensor, "b *x c"], counts: tuple[int, ...]) -> Float[Tensor, "_ *y c"]:
    """The interleaved grids of a field as samples, so many along each axis."""
    axes = range(len(counts))
    for axis in axes:
        field = field.unflatten(1 + 2 * axis, (-1, counts[axis]))
    grids_first = field.permute(0, *(2 + 2 * axis for axis in axes), *(1 + 2 * axis for axis in axes), -1)
    return grids_first.flatten(0, len(counts))


def together(fields: Float[Tensor, "_ t *y c"], counts: tuple[int, ...]) -> Float[Tensor, "b t *x c"]:
    """The inverse of `apart`, of trajectories."""
    axes, time = range(len(counts)), 1 + len(counts)
    grids_last = [each for axis in axes for each in (time + 1 + axis, 1 + axis)]
    field = fields.unflatten(0, (-1, *counts)).permute(0, time, *grids_last, -1)
    for axis in axes:
        field = field.flatten(2 + axis, 3 + axis)
    return field
