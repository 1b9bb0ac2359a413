"""The kernels of the mixing layer; imported only where one of them runs.

A program has one head and takes tile after tile: the rows of that head in several sets of tokens, which are as many
rows as tensor cores want. Its weights stay on chip.
"""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.parts_triton import add, cast, columns, dot, matrix, put, put_reversed, reverse, weight, zeros
from vcnef.kernels.tiles_triton import own_tiles


@triton.jit(do_not_specialize=["sets", "tiles", "share"])
@no_type_check
def wide_mixing(
    gram,
    key_sum,
    value,
    join_weight,
    state,
    mixing,
    sets,
    tiles,
    share,
    D: tl.constexpr,
    HEADS: tl.constexpr,
    BLOCK_S: tl.constexpr,
    STAGES: tl.constexpr,
):
    HEAD: tl.constexpr = D // HEADS
    head, rows, own, feature = tl.program_id(0) % HEADS, _rows(D, HEAD, BLOCK_S), tl.arange(0, HEAD), columns(D)
    values = weight(value.weight + head * HEAD, feature, (own,), D, D)
    joining = weight(join_weight + head * HEAD * D, (own,), feature, HEAD, D)
    bias = tl.load(value.bias + head * HEAD + own)[None, :]
    begin, end = own_tiles(tl.program_id(0) // HEADS, tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES):
        first, left = _find(tile, head, sets, D, HEAD, BLOCK_S)
        g = matrix(gram + first * D, rows, feature, left, D)
        of_keys = tl.load(key_sum + first + rows, mask=rows < left, other=0.0)[:, None]
        s = cast(add(dot(g, values), (of_keys * bias,)), gram.dtype.element_ty)
        if state is not None:
            put(state + first * HEAD, s, rows, (own,), left, HEAD)
        put(mixing + first * D, dot(s, joining), rows, feature, left, D)


@triton.jit(do_not_specialize=["sets", "tiles", "share"])
@no_type_check
def wide_mixing_backward(
    grad,
    gram,
    key_sum,
    state,
    value,
    join_weight,
    grad_gram,
    grad_key_sum,
    weight_sums,
    sets,
    tiles,
    share,
    D: tl.constexpr,
    HEADS: tl.constexpr,
    BLOCK_S: tl.constexpr,
    STAGES: tl.constexpr,
):
    """`weight_sums` of every part of the tiles are the gradients of the values' weight, the join's and the values'
    bias."""
    HEAD: tl.constexpr = D // HEADS
    head, rows, own, feature = tl.program_id(0) % HEADS, _rows(D, HEAD, BLOCK_S), tl.arange(0, HEAD), columns(D)
    values_back = reverse(weight(value.weight + head * HEAD, feature, (own,), D, D))
    joining_back = reverse(weight(join_weight + head * HEAD * D, (own,), feature, HEAD, D))
    bias = tl.load(value.bias + head * HEAD + own)[None, :]
    of_values, of_join, of_bias = zeros(HEAD, feature), zeros(HEAD, feature), tl.zeros((BLOCK_S, HEAD), tl.float32)
    part = tl.program_id(0) // HEADS
    begin, end = own_tiles(part, tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES, disable_licm=True):
        first, left = _find(tile, head, sets, D, HEAD, BLOCK_S)
        m = matrix(grad + first * D, rows, feature, left, D)
        g = matrix(gram + first * D, rows, feature, left, D)
        s = matrix(state + first * HEAD, rows, (own,), left, HEAD)
        of_keys = tl.load(key_sum + first + rows, mask=rows < left, other=0.0)[:, None]
        back = dot(m, joining_back)
        tl.store(grad_key_sum + first + rows, tl.sum(back[0] * bias, 1), mask=rows < left)
        of_bias += of_keys * back[0]
        back = cast(back, gram.dtype.element_ty)
        put(grad_gram + first * D, dot(back, values_back), rows, feature, left, D)
        of_values = dot((tl.trans(back[0]),), (g,), of_values)
        of_join = dot((tl.trans(s[0]),), (m,), of_join)
    weight_sums += part * D * (2 * D + 1)
    put(weight_sums + head * HEAD * D, of_values, own, feature, HEAD, D)
    put_reversed(weight_sums + D * D + head * HEAD, of_join, own, feature, D, D)
    tl.store(weight_sums + 2 * D * D + head * HEAD + own, tl.sum(of_bias, 0))


@triton.jit
@no_type_check
def _rows(D: tl.constexpr, HEAD: tl.constexpr, BLOCK_S: tl.constexpr):
    """Those of one head in a tile's sets, which have D rows each, counted from the first of them."""
    row = tl.arange(0, BLOCK_S)
    return row // HEAD * D + row % HEAD


@triton.jit
@no_type_check
def _find(tile, head, sets, D: tl.constexpr, HEAD: tl.constexpr, BLOCK_S: tl.constexpr):
    """The first row of a tile, and how many rows there are from there on."""
    first = tl.cast(tile, tl.int64) * (BLOCK_S // HEAD)
    return first * D + head * HEAD, (sets - first) * D
