"""Tokens of points: their encoder, coordinates and decoder, from the same weights as in `models/vcnef.py`.

Features of coordinates are kept as a sum of two parts, c[t, s] = time[t] + space[s].
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.arithmetic import Arithmetic
from vcnef.accelerate.numbers import full_precision
from vcnef.models.vcnef import LinearCoordinates, PointDecoder, PointEncoder
from vcnef.nn.layers import join_inputs

MAX_COLUMNS = 4
"""Up to this many input features, a sum of scaled columns compiles better than a product."""


def sum_of_columns(x: Float[Tensor, "*b i"], weight: Tensor, bias: Tensor | None = None) -> Float[Tensor, "*b o"]:
    """x W + b for few input features: as a sum, compilers make it one with what comes before and after.

    The GPU's libraries are slow at products of so few columns, and slower at their gradients.
    """
    if x.shape[-1] > MAX_COLUMNS:
        return F.linear(x, weight, bias)
    columns = [x[..., i, None] * weight[:, i] for i in range(x.shape[-1])]
    return sum(columns if bias is None else [*columns, bias])


Linear = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""x W + b: `F.linear`, or `sum_of_columns`."""


def encode_points(
    encoder: PointEncoder,
    linear: Linear,
    u0: Float[Tensor, "b *x c"],
    grid: Float[Tensor, "_ *x D"],
    params: Tensor | None,
) -> Float[Tensor, "b s d"]:
    with full_precision(u0):
        inputs = join_inputs(u0, grid, params).flatten(1, -2)
        return linear(inputs, encoder.linear.weight, encoder.linear.bias)


def encode_space(
    coordinates: LinearCoordinates, linear: Linear, grid: Float[Tensor, "b *x D"]
) -> Float[Tensor, "b s d"]:
    with full_precision(grid):
        return linear(grid.flatten(1, -2), coordinates.linear.weight[:, 1:], coordinates.linear.bias)


def encode_time(coordinates: LinearCoordinates, linear: Linear, t: Float[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
    with full_precision(t):
        return linear(coordinates.pace * t.unsqueeze(-1), coordinates.linear.weight[:, :1], None)


def decode_points(
    decoder: PointDecoder, z: Float[Tensor, "b t s d"], sides: tuple[int, ...], arithmetic: Arithmetic
) -> Float[Tensor, "b t *x c"]:
    first, activation, last = decoder.mlp
    hidden = arithmetic.linear(arithmetic.add_norm(z, None, None, decoder.norm), first, activation)
    with full_precision(z):
        return last(hidden.to(last.weight.dtype)).unflatten(2, sides)
