"""The kernels of an activation with its bias; imported only where one of them runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.layers.mlp_triton import gelu_slope
from vcnef.kernels.layers.norm_triton import put_sums
from vcnef.kernels.parts_triton import add, cast, gelu, matrix, put, times, vector, zeros
from vcnef.kernels.tiles_triton import own_tiles


@triton.jit(do_not_specialize=["count"])
@no_type_check
def activation(x, bias, out, count, D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr):
    """One program per tile of rows and chunk of features."""
    tile, chunk = _own(D, BLOCK_H)
    start = tile * BLOCK_S
    rows, left, at = tl.arange(0, BLOCK_S), count - start, start * D
    before = add(cast(matrix(x + at, rows, chunk, left, D), tl.float32), vector(bias, chunk, D))
    put(out + at, gelu(before), rows, chunk, left, D)


@triton.jit(do_not_specialize=["count", "tiles", "share"])
@no_type_check
def activation_backward(
    grad,
    x,
    bias,
    grad_x,
    bias_sums,
    count,
    tiles,
    share,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_H: tl.constexpr,
    STAGES: tl.constexpr,
):
    """A program takes several tiles: the sum over rows, the gradient of the bias, is joined between threads once."""
    part, chunk = _own(D, BLOCK_H)
    rows, shift, sums = tl.arange(0, BLOCK_S), vector(bias, chunk, D), zeros(BLOCK_S, chunk)
    begin, end = own_tiles(part, tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES):
        start = tile * BLOCK_S
        left, at = count - start, start * D
        before = add(cast(matrix(x + at, rows, chunk, left, D), tl.float32), shift)
        back = times(cast(matrix(grad + at, rows, chunk, left, D), tl.float32), gelu_slope(before))
        put(grad_x + at, back, rows, chunk, left, D)
        sums = add(sums, back)
    put_sums(bias_sums + part * D, sums, chunk, D)


@triton.jit
@no_type_check
def _own(D: tl.constexpr, BLOCK_H: tl.constexpr):
    """Which rows and features are this program's."""
    CHUNKS: tl.constexpr = (D + BLOCK_H - 1) // BLOCK_H
    program = tl.program_id(0)
    return (program // CHUNKS).to(tl.int64), (program % CHUNKS * BLOCK_H + tl.arange(0, BLOCK_H),)
