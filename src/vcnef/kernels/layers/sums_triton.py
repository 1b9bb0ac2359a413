"""The kernel of `sums`; imported only where it runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.layers.norm_triton import ALIKE, ones, put_column
from vcnef.kernels.parts_triton import as_columns, columns, dot, matrix, put, zeros
from vcnef.kernels.tiles_triton import own_tiles


@triton.jit(do_not_specialize=["count", "pairs", "tiles", "share"])
@no_type_check
def products(
    inputs,
    grads,
    sums,
    count,
    pairs,
    tiles,
    share,
    BIASED: tl.constexpr,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_S: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Σ grad inputsᵀ over a share of the tiles, of one of the pairs, and Σ grad after it where there is a bias; `sums`
    has all pairs of the first share first."""
    pair, part = tl.program_id(0).to(tl.int64) % pairs, tl.program_id(0) // pairs
    rows, feature, whole = tl.arange(0, BLOCK_S), columns(D), tl.arange(0, BLOCK_D)
    all_tokens = ones(BLOCK_S, grads.dtype.element_ty)
    of_weight, of_bias = zeros(BLOCK_D, feature), zeros(BLOCK_D, columns(ALIKE))
    begin, end = own_tiles(part, tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES):
        start = tile * BLOCK_S
        left, at = count - start, (pair * count + start) * D
        g = as_columns(matrix(grads + at, rows, (whole,), left, D))[0]
        of_weight = dot(g, (matrix(inputs + at, rows, feature, left, D),), of_weight)
        if BIASED:
            of_bias = dot(g, all_tokens, of_bias)
    sums += tl.program_id(0).to(tl.int64) * D * (D + BIASED)
    put(sums, of_weight, whole, feature, D, D)
    if BIASED:
        put_column(sums + D * D, of_bias, whole, D)
