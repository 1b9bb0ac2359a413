"""Patch encoders and decoders as products over tokens, from the weights of the convolutions that they are stated with.

Without overlap, each convolution is one product over its cells, and its pixels are put in place at the end. Libraries
are slow at the gradients of such convolutions in single precision.
"""

from __future__ import annotations

from math import prod

import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.accelerate.arithmetic import Arithmetic
from vcnef.accelerate.numbers import full_precision
from vcnef.models.vcnef import FourierCoordinates, PatchDecoder, PatchEncoder
from vcnef.nn.layers import FeedForward, join_inputs, sinusoidal
from vcnef.nn.patching import continue_field, continue_grid, patch_points, whole_sides


def encode_patches(
    encoder: PatchEncoder, u0: Float[Tensor, "b *x c"], grid: Float[Tensor, "_ *x D"], params: Tensor | None
) -> Float[Tensor, "b s d"]:
    sides = whole_sides(tuple(u0.shape[1:-1]), encoder.patches)
    inputs = join_inputs(continue_field(u0, sides, encoder.closes), continue_grid(grid, sides), params)
    tokens = []
    with full_precision(u0):
        for size, (shrink, activation, join) in zip(encoder.patches, encoder.scales, strict=True):
            cells = activation(F.linear(_cells(inputs, size), shrink.weight.flatten(1), shrink.bias))
            tokens.append(F.linear(cells.flatten(-2), join.weight.movedim(1, -1).flatten(1), join.bias))
    return torch.cat(tokens, dim=1)


def _cells(inputs: Float[Tensor, "b *x i"], size: int) -> Float[Tensor, "b s cells points_i"]:
    """Return patches in a row, the cells of each, and all inputs of a cell's points as the first convolution takes
    them."""
    ndim = inputs.ndim - 2
    axes = range(ndim)
    for axis in axes:
        inputs = inputs.unflatten(1 + 3 * axis, (-1, 2, size // 2))
    patches, cells, points = ([1 + part + 3 * axis for axis in axes] for part in range(3))
    apart = inputs.permute(0, *patches, *cells, -1, *points)
    return apart.flatten(1 + 2 * ndim).flatten(1 + ndim, 2 * ndim).flatten(1, ndim)


def encode_space(coordinates: FourierCoordinates, grid: Float[Tensor, "b *x D"]) -> Float[Tensor, "b s d"]:
    """Return features of space with zeros where time stands: so the concatenation of both is the sum of two padded
    vectors."""
    grid = continue_grid(grid, whole_sides(tuple(grid.shape[1:-1]), coordinates.patches))
    rows = []
    for fourier, size in zip(coordinates.fourier, coordinates.patches, strict=True):
        rows.append(fourier(patch_points(grid, size, coordinates.points)).flatten(-2))
    return F.pad(torch.cat(rows, dim=1), (coordinates.half_width, 0))


def encode_time(coordinates: FourierCoordinates, t: Float[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
    return F.pad(sinusoidal(coordinates.pace * t, coordinates.half_width), (0, coordinates.half_width))


def decode_patches(
    decoder: PatchDecoder, z: Float[Tensor, "b t s d"], sides: tuple[int, ...], arithmetic: Arithmetic
) -> Float[Tensor, "b t *x c"]:
    """Decode with the weighted sum over patch sizes, which is linear, folded into the second convolution of each: no
    field of every size is stored."""
    whole = whole_sides(sides, decoder.patches)
    shapes = [tuple(side // size for side in whole) for size in decoder.patches]
    rows = arithmetic.add_norm(z, None, None, decoder.norm).split([prod(shape) for shape in shapes], dim=2)
    mixing = rearrange(decoder.mix.weight, "o (k c) -> k o c", k=len(decoder.patches))
    field = decoder.mix.bias
    for k, (row, shape) in enumerate(zip(rows, shapes, strict=True)):
        patches = feed_forward(decoder.mlps[k % len(decoder.mlps)], row, arithmetic)
        pixels = _paint(_grow(patches, decoder.grow[k], arithmetic), decoder.paint[k], mixing[k])
        field = field + _arrange(pixels, shape, decoder.patches[k] // 2)
    inside = tuple(slice(side) for side in sides)
    return field[(..., *inside, slice(None))]


def feed_forward(mlp: FeedForward, x: Float[Tensor, "*b i"], arithmetic: Arithmetic) -> Float[Tensor, "*b o"]:
    widen, activation, narrow = mlp
    return arithmetic.linear(arithmetic.linear(x, widen, activation), narrow, None)


def _grow(patches: Float[Tensor, "b t s d"], grow: nn.Module, arithmetic: Arithmetic) -> Float[Tensor, "b t s cells e"]:
    weight = grow.weight.flatten(2).permute(2, 1, 0)
    cells = arithmetic.gelu_map(patches, weight.flatten(0, 1), grow.bias.repeat(len(weight)))
    return cells.unflatten(-1, weight.shape[:2])


def _paint(cells: Tensor, paint: nn.Module, mixing: Float[Tensor, "o c"]) -> Float[Tensor, "b t s cells pixels"]:
    pixels = paint.weight[0, 0].numel()
    weight = einsum(paint.weight, mixing, "e c ..., o c -> ... o e").flatten(0, -2)
    return F.linear(cells, weight, (mixing @ paint.bias).repeat(pixels))


def _arrange(pixels: Tensor, shape: tuple[int, ...], cells: int) -> Float[Tensor, "b t *x c"]:
    """Move pixels of cells of patches, axis by axis, to their places on the grid."""
    ndim = len(shape)
    apart = pixels.flatten(2).unflatten(2, (*shape, *(cells,) * ndim, *(2,) * ndim, -1))
    order = []
    for axis in range(ndim):
        order += [2 + axis, 2 + axis + ndim, 2 + axis + 2 * ndim]
    together = apart.permute(0, 1, *order, -1)
    return together.reshape(*pixels.shape[:2], *(side * cells * 2 for side in shape), -1)
