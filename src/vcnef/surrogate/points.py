"""How points lie: on a uniform grid, on an uneven one, or scattered."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.arrays import as_tensor
from vcnef.grid import axes, is_scattered

UNIFORM, UNEVEN, SCATTERED = "a uniform grid", "an uneven grid", "scattered points"
EVEN = 0.1
"""Of a step, by which points may lie beside those of equal steps: coordinates are often of single precision."""


def arrangement(grid: Float[Tensor, "*x D"]) -> str:
    if is_scattered(grid):
        return SCATTERED
    return UNIFORM if all(_even(line.cpu().double()) for line in axes(grid)) else UNEVEN


def are_scattered(x: Any, ndim: int) -> bool:
    """Whether coordinates, as `from_arrays` takes them, are those of points that make no grid."""
    if x is None or ndim == 1:
        return False
    if isinstance(x, list | tuple) and len(x) == ndim and all(np.ndim(line) == 1 for line in x):
        return False
    return as_tensor(x, "x").ndim == 2


def _even(line: Float[Tensor, " n"]) -> bool:
    equal = torch.linspace(0.0, 1.0, len(line), dtype=line.dtype) * (line[-1] - line[0]) + line[0]
    step = (line[-1] - line[0]).abs() / max(len(line) - 1, 1)
    return bool(((line - equal).abs() <= EVEN * step).all())
