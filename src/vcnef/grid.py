"""Grids of points: cell centres of a box, their spacing and their axes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import SupportsIndex

import torch
from jaxtyping import Float
from torch import Tensor


def as_sides(resolution: SupportsIndex | Sequence[int], ndim: int) -> tuple[int, ...]:
    """The number of points along each axis; a single one, NumPy's too, is that of all."""
    several = not isinstance(resolution, SupportsIndex)
    try:
        return tuple(map(index, resolution)) if several else (index(resolution),) * ndim
    except TypeError:
        raise ValueError(
            f"Resolution {resolution!r:.40} is no count of points; give 64, or one for each axis."
        ) from None


def spell_sides(sides: Sequence[int]) -> str:
    """64×64."""
    return "×".join(map(str, sides))


def cell_centres(
    domain: Sequence[Sequence[int | float]],
    resolution: SupportsIndex | Sequence[int],
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Float[Tensor, "*x D"]:
    """Centres of uniform cells, x_i = low + (i + ½) (high − low) / n along each axis; end points are never included.

    A single number is the resolution of every axis.
    """
    sides = as_sides(resolution, len(domain))
    if len(sides) != len(domain) or any(n < 1 for n in sides):
        raise ValueError(f"Resolution {sides} does not fit {len(domain)} axes; give one positive count per axis.")
    # Computed in double and rounded once, so that every resolution has correctly rounded centres.
    axes = [
        low + (torch.arange(n, dtype=torch.float64) + 0.5) * ((high - low) / n)
        for (low, high), n in zip(domain, sides, strict=True)
    ]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).to(device=device, dtype=dtype)


def is_scattered(grid: Float[Tensor, "*x D"]) -> bool:
    """Whether its points are a list and have no axes; along a line nobody can tell, nor need they."""
    return grid.ndim != grid.shape[-1] + 1


def axes(grid: Float[Tensor, "*x D"]) -> tuple[Float[Tensor, " n"], ...]:
    """The coordinates along each axis of a tensor-product grid."""
    ndim = grid.shape[-1]
    if is_scattered(grid):
        raise ValueError(
            f"A grid of shape {tuple(grid.shape)} is not a tensor-product grid of {ndim} axes. "
            f"Expected {ndim} space axes and a last axis of {ndim} coordinates; scattered points have no axes."
        )
    lines = []
    for axis in range(ndim):
        along: list[int | slice] = [0] * ndim
        along[axis] = slice(None)
        lines.append(grid[(*along, axis)])
    return tuple(lines)


def is_even(line: Float[Tensor, " n"]) -> bool:
    """Whether its steps are equal, but for a thousandth of them and the rounding of the values."""
    gaps = line.double().diff()
    # Both ends of a gap are rounded, by up to half of this.
    rounding = torch.finfo(line.dtype).eps * float(line.abs().max())
    return torch.allclose(gaps, gaps.mean().expand_as(gaps), rtol=1e-3, atol=rounding)


def spacing(grid: Float[Tensor, "*x D"]) -> tuple[float, ...]:
    """Distance between neighbouring points along each axis of a uniform grid."""
    steps = []
    for line in axes(grid):
        gaps = line.double().diff()
        if len(gaps) == 0:
            raise ValueError("A grid with one point along an axis has no spacing; give at least two points per axis.")
        if not is_even(line):
            raise ValueError(
                f"The grid is not uniform: gaps between {gaps.min():.6g} and {gaps.max():.6g} along one axis. "
                "Resample it to equal spacing first."
            )
        steps.append(float(gaps.mean()))
    return tuple(steps)
