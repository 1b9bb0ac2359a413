"""The kernels of a residual sum with its norm; imported only where one of them runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.layers.norm_triton import put_norm, put_sums, through_norm
from vcnef.kernels.parts_triton import add, cast, columns, matrix, put, times, vector, zeros
from vcnef.kernels.tiles_triton import own_tiles


@triton.jit(do_not_specialize=["count", "eps"])
@no_type_check
def residual(
    tokens,
    update,
    bias,
    out,
    standard,
    inverse,
    layer_norm,
    count,
    eps,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    total = cast(matrix(tokens + start * D, rows, feature, left, D), tl.float32)
    if update is not None:
        total = add(total, cast(matrix(update + start * D, rows, feature, left, D), tl.float32))
    if bias is not None:
        total = add(total, vector(bias, feature, D))
    if standard is not None:
        standard += start * D
        inverse += start
    put_norm(total, out + start * D, standard, inverse, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["count", "tiles", "share"])
@no_type_check
def residual_backward(
    grad,
    standard,
    inverse,
    layer_norm,
    grad_total,
    token_sums,
    count,
    tiles,
    share,
    D: tl.constexpr,
    SUMS: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Sums over tokens are joined between threads once, at the end of a program's tiles; there are three of them where
    a bias is in the sum.

    Features stand in one part: two would lie in registers in two ways, which a sum over both has to bring together."""
    rows, feature = tl.arange(0, BLOCK_S), (tl.arange(0, BLOCK_D),)
    weight = vector(layer_norm.weight, feature, D)
    scale_sums, shift_sums, bias_sums = zeros(BLOCK_S, feature), zeros(BLOCK_S, feature), zeros(BLOCK_S, feature)
    begin, end = own_tiles(tl.program_id(0), tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES):
        start = tl.cast(tile, tl.int64) * BLOCK_S
        left, at = count - start, start * D
        g = cast(matrix(grad + at, rows, feature, left, D), tl.float32)
        unit = cast(matrix(standard + at, rows, feature, left, D), tl.float32)
        scale = tl.load(inverse + start + rows, mask=rows < left, other=0.0)
        total = through_norm(g, unit, scale, weight, feature, D)
        put(grad_total + at, total, rows, feature, left, D)
        scale_sums, shift_sums = add(scale_sums, times(g, unit)), add(shift_sums, g)
        if SUMS == 3:
            bias_sums = add(bias_sums, total)
    token_sums += tl.program_id(0) * SUMS * D
    put_sums(token_sums, scale_sums, feature, D)
    put_sums(token_sums + D, shift_sums, feature, D)
    if SUMS == 3:
        put_sums(token_sums + 2 * D, bias_sums, feature, D)
