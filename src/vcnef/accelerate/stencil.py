"""Stencils as convolutions on a CPU: three to eight times as fast as the sum of shifted copies."""

from __future__ import annotations

from math import gcd, prod

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from vcnef.models.vcnef_beyond import Stencil, token_grids


def convolve_tokens(stencil: Stencil, z: Float[Tensor, "*b s d"], sides: tuple[int, ...]) -> Float[Tensor, "*b s d"]:
    """Return what `Stencil.forward` gives."""
    if z.dtype != stencil.weight.dtype:
        return stencil(z, sides)
    grids, mixed = token_grids(sides, stencil.patches), []
    rows = z.split([prod(grid.sides) for grid in grids], dim=-2)
    for which, (row, grid) in enumerate(zip(rows, grids, strict=True)):
        offsets, weights = stencil.taps(which, grid)
        field, margins = stencil.widen(row, offsets, grid)
        mixed.append(convolve(field, offsets, weights, margins).flatten(-1 - len(sides), -2))
    return torch.cat(mixed, dim=-2)


def convolve(
    wide: Float[Tensor, "*b d"], offsets: list[tuple[int, ...]], weights: Float[Tensor, "k d"], margins: list[int]
) -> Float[Tensor, "*c d"]:
    """Σ_o w_o ∘ z(x_i + o) as a convolution; `wide` has `margins` more points at the ends of its axes.

    Taps that stand apart make a dilated kernel.
    """
    width, ndim, axes = wide.shape[-1], len(margins), list(zip(*offsets, strict=True))
    steps = [gcd(*along) or 1 for along in axes]
    places, sizes = [], []
    for margin, step, along in zip(margins, steps, axes, strict=True):
        places.append(torch.tensor([(margin + offset) // step for offset in along]))
        sizes.append(2 * margin // step + 1)
    kernel = weights.new_zeros(*sizes, width).index_put(tuple(places), weights).movedim(-1, 0).unsqueeze(1)
    # Features stay last in memory, where the processor wants them. Of one axis it makes two by itself, but slowly.
    field = wide.reshape(-1, *wide.shape[-1 - ndim :]).movedim(-1, 1)
    if ndim == 1:
        field, kernel, steps = field.unsqueeze(2), kernel.unsqueeze(2), [1, *steps]
    convolution = F.conv3d if ndim == 3 else F.conv2d
    out = convolution(field, kernel, dilation=steps, groups=width).movedim(1, -1)
    sides = [side - 2 * margin for side, margin in zip(wide.shape[-1 - ndim : -1], margins, strict=True)]
    return out.reshape(*wide.shape[: -1 - ndim], *sides, width)
