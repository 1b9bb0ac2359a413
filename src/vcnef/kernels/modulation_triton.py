"""The kernels of `modulation`, which says what they compute; imported only where one of them runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.parts_triton import gelu, matrix, norm, positive, product, put, vector

# `do_not_specialize`: one compilation serves all numbers of points and times.


@triton.jit(do_not_specialize=["points"])
@no_type_check
def mix(
    tokens,
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
    its left side, in registers."""
    row = tl.program_id(0).to(tl.int64)
    feature = tl.arange(0, BLOCK_D)
    operands = key.weight.dtype.element_ty
    key_weight = tl.trans(matrix(key.weight, feature, feature, D, D, D))
    key_bias = vector(key.bias, feature, D)

    gram = tl.zeros((BLOCK_D, BLOCK_D), tl.float32)
    key_sum = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, points, BLOCK_S):
        point = start + tl.arange(0, BLOCK_S)
        x = matrix(tokens + row * points * D, point, feature, points, D, D).to(operands)
        keys = positive(tl.dot(key_weight, tl.trans(x)) + key_bias[:, None])
        keys = tl.where(point[None, :] < points, keys, 0.0)
        key_sum += tl.sum(keys, 1)
        gram = tl.dot(keys.to(operands), x, gram)

    share = 1.0 / points
    key_sum *= share
    state = tl.dot((gram * share).to(operands), matrix(value.weight, feature, feature, D, D, D))
    state += key_sum[:, None] * vector(value.bias, feature, D)[None, :]
    state = tl.where(feature[:, None] // HEAD == feature[None, :] // HEAD, state, 0.0)
    mixed = tl.dot(state.to(operands), matrix(join_weight, feature, feature, D, D, D))
    put(mixing + row * D * D, mixed, feature, feature, D, D)
    tl.store(key_mean + row * D + feature, key_sum, mask=feature < D)


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
    join_bias,
    attention_norm,
    scale,
    points,
    eps,
    D: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program per sample, time and tile of tokens: Y and F of a block whose times are still one."""
    tiles = tl.cdiv(points, BLOCK_S)
    row = (tl.program_id(0) // tiles).to(tl.int64)
    point = tl.program_id(0) % tiles * BLOCK_S + tl.arange(0, BLOCK_S)
    feature = tl.arange(0, BLOCK_D)
    y = _attend(
        tokens, mixing, key_mean, extra, query, join_bias, attention_norm, row, point, points, eps, D, HEAD, BLOCK_D
    )
    put(attended + row * points * D, y, point, feature, points, D)
    f = positive(product(y, scale, feature, feature, D, D))
    put(factor + row * points * D, f, point, feature, points, D)


@triton.jit(do_not_specialize=["times", "points", "eps"])
@no_type_check
def apply(
    tokens,
    mixing,
    key_mean_or_scale,
    extra,
    field,
    out,
    query,
    join_bias,
    attention_norm,
    scale,
    out_map,
    modulation_norm,
    widen,
    narrow,
    mlp_norm,
    times,
    points,
    eps,
    D: tl.constexpr,
    HIDDEN: tl.constexpr,
    HEAD: tl.constexpr,
    GELU: tl.constexpr,
    ATTEND: tl.constexpr,
    MODULATE: tl.constexpr,
    ONE_TIME: tl.constexpr,
    SHARED_FIELD: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """One program per sample, time and tile of tokens. ATTEND: `tokens` are the block's inputs; otherwise they are Y,
    and `key_mean_or_scale` is F. Without MODULATE it is a transformer block."""
    tiles = tl.cdiv(points, BLOCK_S)
    row = (tl.program_id(0) // tiles).to(tl.int64)
    point = tl.program_id(0) % tiles * BLOCK_S + tl.arange(0, BLOCK_S)
    feature = tl.arange(0, BLOCK_D)
    operands = widen.weight.dtype.element_ty
    tokens_row = row // times if ONE_TIME else row

    if ATTEND:
        mean = key_mean_or_scale
        z = _attend(
            tokens, mixing, mean, extra, query, join_bias, attention_norm, row, point, points, eps, D, HEAD, BLOCK_D
        )
    else:
        z = matrix(tokens + tokens_row * points * D, point, feature, points, D, D).to(tl.float32)

    if MODULATE:
        if ATTEND:
            factor = positive(product(z, scale, feature, feature, D, D))
        else:
            factor = matrix(key_mean_or_scale + tokens_row * points * D, point, feature, points, D, D).to(tl.float32)
        field_row = row % times if SHARED_FIELD else row
        factor *= matrix(field + field_row * points * D, point, feature, points, D, D).to(tl.float32)
        z = norm(z + product(factor, out_map, feature, feature, D, D), modulation_norm, feature, eps, D)

    z_operand = z.to(operands)
    z += vector(narrow.bias, feature, D)[None, :]
    for start in range(0, HIDDEN, BLOCK_H):
        chunk = start + tl.arange(0, BLOCK_H)
        hidden = product(z_operand, widen, feature, chunk, D, HIDDEN)
        hidden = gelu(hidden) if GELU else tl.maximum(hidden, 0.0)
        z = tl.dot(hidden.to(operands), matrix(narrow.weight, chunk, feature, HIDDEN, D, D), z)
    put(out + row * points * D, norm(z, mlp_norm, feature, eps, D), point, feature, points, D)


@triton.jit(do_not_specialize=["count", "eps"])
@no_type_check
def decode(
    tokens,
    out,
    weights_norm,
    first,
    second,
    count,
    eps,
    CHANNELS: tl.constexpr,
    BLOCK_C: tl.constexpr,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program per tile of tokens, of whichever sample and time."""
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    token, feature, channel = tl.arange(0, BLOCK_S), tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_C)
    x = matrix(tokens + start * D, token, feature, count - start, D, D).to(tl.float32)
    hidden = gelu(product(norm(x, weights_norm, feature, eps, D), first, feature, feature, D, D))
    fields = product(hidden, second, feature, channel, D, CHANNELS)
    put(out + start * CHANNELS, fields, token, channel, count - start, CHANNELS)


@triton.jit
@no_type_check
def _attend(
    tokens,
    mixing,
    key_mean,
    extra,
    query,
    join_bias,
    attention_norm,
    row,
    point,
    points,
    eps,
    D: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Y = LN(X + (Q / (Q (k̄ ∘ m))) M + bo)."""
    feature = tl.arange(0, BLOCK_D)
    operands = query.weight.dtype.element_ty
    x = matrix(tokens + row * points * D, point, feature, points, D, D)
    queries = positive(product(x, query, feature, feature, D, D))
    # Padding makes heads of its own, where φ(0) · 1 keeps the normaliser away from zero.
    mean = tl.load(key_mean + row * D + feature, mask=feature < D, other=1.0)
    by_head = tl.where(feature[:, None] // HEAD == feature[None, :] // HEAD, mean[:, None], 0.0)
    # As wide as the features: a product that is too wide is cheaper than spreading a narrow one.
    normaliser = tl.dot(queries.to(operands), by_head.to(operands)) + 1e-6 / points
    weights = (queries / normaliser).to(operands)
    attended = tl.dot(weights, matrix(mixing + row * D * D, feature, feature, D, D, D))
    attended += x.to(tl.float32) + vector(join_bias, feature, D)[None, :]
    if extra is not None:
        attended += matrix(extra + row * points * D, point, feature, points, D, D).to(tl.float32)
    return norm(attended, attention_norm, feature, eps, D)
