"""How points lie: on a uniform grid, on an uneven one, or scattered; and where they are if nobody says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.arrays import are_axes, as_tensor
from vcnef.grid import axes, cell_centres, is_scattered
from vcnef.problem import Problem

UNIFORM, UNEVEN, SCATTERED = "a uniform grid", "an uneven grid", "scattered points"
EVEN = 0.1
"""Of a step, by which points may lie beside those of equal steps or cell centres: coordinates are often of single
precision."""


def arrangement(grid: Float[Tensor, "*x D"]) -> str:
    if is_scattered(grid):
        return SCATTERED
    return UNIFORM if all(_even(line.cpu().double()) for line in axes(grid)) else UNEVEN


def note_ends(grid: Float[Tensor, "*x D"], domain: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """First and last point along each axis of a uniform grid that are no cell centres, as a stride leaves them."""
    if arrangement(grid) != UNIFORM:
        return {}
    points, centres = grid.cpu().double(), cell_centres(domain, grid.shape[:-1], dtype=torch.float64)
    steps = torch.tensor([(high - low) / n for (low, high), n in zip(domain, grid.shape, strict=False)]).double()
    if ((points - centres).abs() <= EVEN * steps).all():
        return {}
    return {"ends": [[float(line[0]), float(line[-1])] for line in axes(points)]}


def usual_points(problem: Problem, provenance: Mapping[str, Any], sides: Sequence[int]) -> Float[Tensor, "*x D"]:
    """The points of training at its resolution, if they are noted; otherwise the cell centres of the domain."""
    ends = provenance.get("ends")
    if ends is None or list(sides) != provenance["resolution"]:
        return cell_centres(problem.domain, sides)
    pairs = zip(ends, sides, strict=True)
    lines = [torch.linspace(first, last, n, dtype=torch.float64) for (first, last), n in pairs]
    return torch.stack(torch.meshgrid(*lines, indexing="ij"), dim=-1).float()


def are_scattered(x: Any, ndim: int) -> bool:
    """Whether coordinates, as `from_arrays` takes them, are those of points that make no grid."""
    if x is None or ndim == 1 or are_axes(x, ndim):
        return False
    return as_tensor(x, "x").ndim == 2


def shape_of(x: Any, ndim: int) -> tuple[int, ...]:
    """The number of points along each axis of such coordinates; one number if they are scattered."""
    if are_axes(x, ndim):
        return tuple(len(line) for line in x)
    points = as_tensor(x, "x")
    return tuple(points.shape if points.ndim == 1 else points.shape[:-1])


def _even(line: Float[Tensor, " n"]) -> bool:
    equal = torch.linspace(0.0, 1.0, len(line), dtype=line.dtype) * (line[-1] - line[0]) + line[0]
    step = (line[-1] - line[0]).abs() / max(len(line) - 1, 1)
    return bool(((line - equal).abs() <= EVEN * step).all())
