"""The kernels of the attention layer, but for `mix`, which inference has too; imported only where one of them runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.heads_triton import gather, head_values, inverse_head_sums, put_heads, spread, within_heads
from vcnef.kernels.layers.norm_triton import ALIKE, ones, positive_slope, put_column, put_norm, put_total
from vcnef.kernels.parts_triton import (
    add,
    as_columns,
    cast,
    columns,
    dot,
    matrix,
    positive,
    put,
    reverse,
    scaled,
    smaller,
    sums,
    times,
    vector,
    weight,
    zeros,
)
from vcnef.kernels.tiles_triton import own_tiles, place


@triton.jit(do_not_specialize=["points", "eps", "tiles", "share"])
@no_type_check
def attention(
    tokens,
    mixing,
    key_mean,
    extra,
    out,
    standard,
    inverse,
    normalised,
    normaliser,
    query,
    join_bias,
    layer_norm,
    heads,
    points,
    eps,
    tiles,
    share,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
    STAGES: tl.constexpr,
):
    rows, feature = tl.arange(0, BLOCK_S), columns(D)
    query_weight = weight(query.weight, feature, feature, D, D)
    begin, end = own_tiles(tl.program_id(0), tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES):
        row, first = place(tile, points, BLOCK_S)
        left, where = points - first, row * points + first
        at = where * D
        x = matrix(tokens + at, rows, feature, left, D)
        queries = positive(add(dot(x, query_weight), vector(query.bias, feature, D)))
        weighted = times(queries, vector(key_mean + row * D, feature, D))
        inverse_sum = inverse_head_sums(weighted, heads, feature, points, D, HEADS)
        put_heads(normaliser + where * HEADS, inverse_sum, rows, left, HEADS)
        weights = cast(times(queries, spread(inverse_sum, heads, feature, D, HEADS)), x[0].dtype)
        put(normalised + at, weights, rows, feature, left, D)
        total = dot(weights, weight(mixing + row * D * D, feature, feature, D, D), cast(x, tl.float32))
        total = add(total, vector(join_bias, feature, D))
        if extra is not None:
            total = add(total, cast(matrix(extra + at, rows, feature, left, D), tl.float32))
        put_norm(total, out + at, standard + at, inverse + where, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["points", "tiles", "share"])
@no_type_check
def attention_backward(
    grad_total,
    normalised,
    normaliser,
    mixing,
    key_mean,
    query_weight,
    heads,
    grad_queries,
    grad_tokens,
    mean_sums,
    points,
    tiles,
    share,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
    STAGES: tl.constexpr,
):
    """As far as M and k̄, from w = Q / (Q (k̄ ∘ m)) and r, 1 over that sum: with b the gradient of w and h = Σ b ∘ w
    over a head, that of the queries' logits is (b − h k̄) ∘ min(w, r), and that of k̄ is −Σ h w over tokens.

    `grad_queries` has these; `grad_tokens` is that of the tokens but for what comes through the keys."""
    rows, feature = tl.arange(0, BLOCK_S), columns(D)
    operands = mixing.dtype.element_ty
    query_back = reverse(weight(query_weight, feature, feature, D, D))
    begin, end = own_tiles(tl.program_id(0), tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES, disable_licm=True):
        row, first = place(tile, points, BLOCK_S)
        left, where = points - first, row * points + first
        at = where * D
        total = matrix(grad_total + at, rows, feature, left, D)
        w = cast(matrix(normalised + at, rows, feature, left, D), tl.float32)
        inverse_sum = head_values(normaliser + where * HEADS, rows, left, HEADS)
        back = dot(total, reverse(weight(mixing + row * D * D, feature, feature, D, D)))
        # The gradient of the normaliser is the same for all features of a head.
        shared = spread(gather(times(back, w), heads, feature, D, HEADS), heads, feature, D, HEADS)
        put_total(mean_sums + tl.cast(tile, tl.int64) * D, cast(scaled(times(w, shared), -1.0), operands), feature, D)
        back = add(back, scaled(times(vector(key_mean + row * D, feature, D), shared), -1.0))
        slope = smaller(w, spread(inverse_sum, heads, feature, D, HEADS))
        back = cast(times(back, slope), operands)
        put(grad_queries + at, back, rows, feature, left, D)
        put(grad_tokens + at, dot(back, query_back, cast(total, tl.float32)), rows, feature, left, D)


@triton.jit(do_not_specialize=["tiles", "points"])
@no_type_check
def mixing_backward(
    normalised,
    grad_total,
    mean_sums,
    key_mean,
    value,
    join_weight,
    grad_mixing,
    grad_state,
    grad_gram,
    grad_key_sum,
    bias_sums,
    tiles,
    points,
    D: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program per sample and time: the gradient of M and, from it and that of k̄, those of Kᵀ X and the sum of K.

    `mean_sums` are what each of its tiles has of k̄'s gradient; `bias_sums` is that of the values' bias."""
    row = tl.program_id(0).to(tl.int64)
    feature, whole = columns(D), tl.arange(0, BLOCK_D)
    operands = value.weight.dtype.element_ty
    square = row * D * D
    mean = tl.load(key_mean + row * D + whole, mask=whole < D, other=0.0)
    grad_mean = tl.zeros((BLOCK_D,), tl.float32)
    for tile in range(tiles):
        grad_mean += tl.load(mean_sums + (row * tiles + tile) * D + whole, mask=whole < D, other=0.0)
    grad = zeros(BLOCK_D, feature)
    for first in range(0, points, BLOCK_S):
        rows, left, at = tl.arange(0, BLOCK_S), points - first, (row * points + first) * D
        w = matrix(normalised + at, rows, (whole,), left, D)
        grad = dot(as_columns(w)[0], (matrix(grad_total + at, rows, feature, left, D),), grad)
    grad = cast(grad, operands)
    put(grad_mixing + square, grad, whole, feature, D, D)
    state = dot(grad, reverse(weight(join_weight, feature, feature, D, D)))
    state = within_heads(state, whole, feature, HEAD)
    grad_mean += sums(times(state, vector(value.bias, feature, D)))
    tl.store(grad_key_sum + row * D + whole, grad_mean / points, mask=whole < D)
    state = cast(state, operands)
    put(grad_state + square, state, whole, feature, D, D)
    put_total(bias_sums + row * D, state, feature, D, mean)
    gram = dot(state, reverse(weight(value.weight, feature, feature, D, D)))
    put(grad_gram + square, scaled(gram, 1.0 / points), whole, feature, D, D)


@triton.jit(do_not_specialize=["points", "tiles", "share"])
@no_type_check
def keys_backward(
    tokens,
    grad_gram,
    grad_key_sum,
    key,
    grad_tokens,
    key_sums,
    points,
    tiles,
    share,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_S: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Through Kᵀ X and the sum of K. `grad_tokens` has the rest already; `key_sums` of every program are the gradients
    of the keys' weight and bias.

    Keys and their gradients have features as rows, so that they are in registers where the weight's is made of them."""
    rows, feature, whole = tl.arange(0, BLOCK_S), columns(D), tl.arange(0, BLOCK_D)
    operands = tokens.dtype.element_ty
    key_weight = reverse(weight(key.weight, feature, (whole,), D, D))[0]
    key_bias = tl.load(key.bias + whole, mask=whole < D, other=0.0)[:, None]
    all_tokens = ones(BLOCK_S, operands)
    grad_weight, grad_bias = zeros(BLOCK_D, feature), zeros(BLOCK_D, columns(ALIKE))
    begin, end = own_tiles(tl.program_id(0), tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES, disable_licm=True):
        row, first = place(tile, points, BLOCK_S)
        left, at = points - first, (row * points + first) * D
        x = matrix(tokens + at, rows, feature, left, D)
        gram = weight(grad_gram + row * D * D, (whole,), feature, D, D)
        key_sum = tl.load(grad_key_sum + row * D + whole, mask=whole < D, other=0.0)[:, None]
        keys = positive(add(dot(key_weight, as_columns(x)), (key_bias,)))
        back = times(add(dot(gram[0], as_columns(x)), (key_sum,)), positive_slope(keys))
        # Tokens beyond the last have keys, but no gradient.
        back = (tl.where((rows < left)[None, :], back[0], 0.0).to(operands),)
        grad_bias = dot(back, all_tokens, grad_bias)
        grad_weight = dot(back, (x,), grad_weight)
        total = cast(matrix(grad_tokens + at, rows, feature, left, D), tl.float32)
        total = dot((tl.trans(back[0]),), (key_weight,), total)
        total = dot((tl.trans(keys[0].to(operands)),), gram, total)
        put(grad_tokens + at, total, rows, feature, left, D)
    key_sums += tl.program_id(0) * D * (D + 1)
    put(key_sums, grad_weight, whole, feature, D, D)
    put_column(key_sums + D * D, grad_bias, whole, D)
