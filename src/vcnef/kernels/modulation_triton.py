"""The kernels of `modulation`, which says what they compute; imported only where one of them runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.heads_triton import inverse_head_sums, spread, within_heads
from vcnef.kernels.parts_triton import (
    add,
    as_columns,
    cast,
    columns,
    dot,
    gelu,
    matrix,
    norm,
    positive,
    product,
    put,
    relu,
    reverse,
    scaled,
    times,
    vector,
    weight,
    zeros,
)
from vcnef.kernels.tiles_triton import own_tile

# `do_not_specialize`: one compilation serves all numbers of points and times.


@triton.jit(do_not_specialize=["points"])
@no_type_check
def mix(
    tokens,
    gram_out,
    state_out,
    mixing,
    key_mean,
    key,
    value,
    join_weight,
    points,
    D: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program per sample and time. Keys are computed as `d s`: a product then leaves them where the next one reads
    its left side, in registers. Their d is in one part, since tensor cores take 64 rows or none.

    `gram_out` and `state_out`, which gradients need, may be None."""
    row = tl.program_id(0).to(tl.int64)
    feature, whole = columns(D), tl.arange(0, BLOCK_D)
    operands = key.weight.dtype.element_ty
    key_weight = reverse(weight(key.weight, feature, (whole,), D, D))[0]
    key_bias = tl.load(key.bias + whole, mask=whole < D, other=0.0)[:, None]

    gram = zeros(BLOCK_D, feature)
    key_sum = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, points, BLOCK_S):
        point = start + tl.arange(0, BLOCK_S)
        x = cast(matrix(tokens + row * points * D, point, feature, points, D), operands)
        keys = positive(add(dot(key_weight, as_columns(x)), (key_bias,)))
        keys = (tl.where(point[None, :] < points, keys[0], 0.0),)
        key_sum += tl.sum(keys[0], 1)
        gram = dot(keys, (x,), gram)

    share = 1.0 / points
    key_sum *= share
    gram = cast(scaled(gram, share), operands)
    state = dot(gram, weight(value.weight, feature, feature, D, D))
    state = add(state, scaled(vector(value.bias, feature, D), key_sum[:, None]))
    state = within_heads(state, whole, feature, HEAD)
    if gram_out is not None:
        put(gram_out + row * D * D, gram, whole, feature, D, D)
        put(state_out + row * D * D, state, whole, feature, D, D)
    put(mixing + row * D * D, dot(state, weight(join_weight, feature, feature, D, D)), whole, feature, D, D)
    tl.store(key_mean + row * D + whole, key_sum, mask=whole < D)


@triton.jit(do_not_specialize=["points", "eps"])
@no_type_check
def attend(
    tokens,
    mixing,
    key_mean,
    extra,
    attended,
    factor,
    query,
    heads,
    join_bias,
    attention_norm,
    scale,
    points,
    eps,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """One program per sample, time and tile of tokens: Y and F of a block whose times are still one."""
    row, first = own_tile(points, BLOCK_S)
    point = first + tl.arange(0, BLOCK_S)
    feature = columns(D)
    y = _attend(
        tokens, mixing, key_mean, extra, query, heads, join_bias, attention_norm, row, point, points, eps, feature,
        D, HEADS,
    )  # fmt: skip
    put(attended + row * points * D, y, point, feature, points, D)
    f = positive(product(y, scale, feature, feature, D, D))
    put(factor + row * points * D, f, point, feature, points, D)


@triton.jit(do_not_specialize=["frames", "points", "eps"])
@no_type_check
def apply(
    tokens,
    mixing,
    key_mean_or_scale,
    extra,
    field,
    out,
    query,
    heads,
    join_bias,
    attention_norm,
    scale,
    out_map,
    modulation_norm,
    widen,
    narrow,
    mlp_norm,
    decoder,
    frames,
    points,
    eps,
    CHANNELS: tl.constexpr,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    HIDDEN: tl.constexpr,
    GELU: tl.constexpr,
    ATTEND: tl.constexpr,
    MODULATE: tl.constexpr,
    ONE_TIME: tl.constexpr,
    SHARED_FIELD: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """One program per sample, time and tile of tokens. ATTEND: `tokens` are the block's inputs; otherwise they are Y,
    and `key_mean_or_scale` is F. Without MODULATE it is a transformer block. With a decoder, `out` are its fields."""
    row, first = own_tile(points, BLOCK_S)
    point = first + tl.arange(0, BLOCK_S)
    feature = columns(D)
    operands = widen.weight.dtype.element_ty
    tokens_row = row // frames if ONE_TIME else row

    if ATTEND:
        mean = key_mean_or_scale
        z = _attend(
            tokens, mixing, mean, extra, query, heads, join_bias, attention_norm, row, point, points, eps, feature,
            D, HEADS,
        )  # fmt: skip
        z = cast(z, operands)
    else:
        z = matrix(tokens + tokens_row * points * D, point, feature, points, D)

    if MODULATE:
        if ATTEND:
            factor = positive(product(z, scale, feature, feature, D, D))
        else:
            factor = cast(matrix(key_mean_or_scale + tokens_row * points * D, point, feature, points, D), tl.float32)
        field_row = row % frames if SHARED_FIELD else row
        branch = matrix(field + field_row * points * D, point, feature, points, D)
        z = dot(times(factor, branch), weight(out_map.weight, feature, feature, D, D), cast(z, tl.float32))
        z = norm(add(z, vector(out_map.bias, feature, D)), modulation_norm, feature, eps, D)

    z_operand = cast(z, operands)
    z = add(z, vector(narrow.bias, feature, D))
    for start in range(0, HIDDEN, BLOCK_H):
        chunk = (start + tl.arange(0, BLOCK_H),)
        hidden = product(z_operand, widen, feature, chunk, D, HIDDEN)
        hidden = gelu(hidden) if GELU else relu(hidden)
        z = dot(hidden, weight(narrow.weight, chunk, feature, HIDDEN, D), z)
    z = norm(z, mlp_norm, feature, eps, D)
    if decoder is None:
        put(out + row * points * D, z, point, feature, points, D)
    else:
        channel = columns(CHANNELS)
        fields = _decode(z, decoder, feature, channel, D, CHANNELS)
        put(out + row * points * CHANNELS, fields, point, channel, points, CHANNELS)


@triton.jit(do_not_specialize=["count"])
@no_type_check
def decode(tokens, out, decoder, count, CHANNELS: tl.constexpr, D: tl.constexpr, BLOCK_S: tl.constexpr):
    """One program per tile of tokens, of whichever sample and time."""
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    token, feature, channel = tl.arange(0, BLOCK_S), columns(D), columns(CHANNELS)
    x = cast(matrix(tokens + start * D, token, feature, count - start, D), tl.float32)
    fields = _decode(x, decoder, feature, channel, D, CHANNELS)
    put(out + start * CHANNELS, fields, token, channel, count - start, CHANNELS)


@triton.jit
@no_type_check
def _decode(x, decoder, feature, channel, D: tl.constexpr, CHANNELS: tl.constexpr):
    """W₂ GELU(W₁ LN(X) + b₁) + b₂."""
    normed = norm(x, decoder.norm, feature, decoder.eps, D)
    return product(
        gelu(product(normed, decoder.first, feature, feature, D, D)), decoder.second, feature, channel, D, CHANNELS
    )


@triton.jit
@no_type_check
def _attend(
    tokens,
    mixing,
    key_mean,
    extra,
    query,
    heads,
    join_bias,
    attention_norm,
    row,
    point,
    points,
    eps,
    feature,
    D: tl.constexpr,
    HEADS: tl.constexpr,
):
    """Y = LN(X + (Q / (Q (k̄ ∘ m))) M + bo)."""
    operands = query.weight.dtype.element_ty
    x = matrix(tokens + row * points * D, point, feature, points, D)
    queries = cast(positive(product(x, query, feature, feature, D, D)), operands)
    weighted = times(queries, cast(vector(key_mean + row * D, feature, D), operands))
    inverse_sum = inverse_head_sums(weighted, heads, feature, points, D, HEADS)
    shares = times(queries, spread(inverse_sum, heads, feature, D, HEADS))
    attended = dot(shares, weight(mixing + row * D * D, feature, feature, D, D), cast(x, tl.float32))
    attended = add(attended, vector(join_bias, feature, D))
    if extra is not None:
        attended = add(attended, matrix(extra + row * points * D, point, feature, points, D))
    return norm(attended, attention_norm, feature, eps, D)
