"""The kernels of the MLP layer; imported only where one of them runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.layers.norm_triton import put_norm
from vcnef.kernels.parts_triton import (
    add,
    as_columns,
    cast,
    columns,
    dot,
    gelu,
    hold,
    matrix,
    normal_density,
    normal_tail,
    product,
    put,
    put_reversed,
    relu,
    reverse,
    times,
    vector,
    weight,
    zeros,
)
from vcnef.kernels.tiles_triton import fetch


@triton.jit(do_not_specialize=["count", "eps"])
@no_type_check
def mlp(
    tokens,
    out,
    standard,
    inverse,
    widen,
    narrow,
    layer_norm,
    count,
    eps,
    D: tl.constexpr,
    HIDDEN: tl.constexpr,
    GELU: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    x = matrix(tokens + start * D, rows, feature, left, D)
    total = add(cast(x, tl.float32), vector(narrow.bias, feature, D))
    for first in range(0, HIDDEN, BLOCK_H):
        chunk = (first + tl.arange(0, BLOCK_H),)
        hidden = product(x, widen, feature, chunk, D, HIDDEN)
        hidden = gelu(hidden) if GELU else relu(hidden)
        total = dot(hidden, weight(narrow.weight, chunk, feature, HIDDEN, D), total)
    put_norm(total, out + start * D, standard + start * D, inverse + start, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["count", "ahead"])
@no_type_check
def mlp_backward(
    grad_total,
    tokens,
    widen,
    narrow,
    grad_tokens,
    count,
    ahead,
    D: tl.constexpr,
    HIDDEN: tl.constexpr,
    GELU: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    at = start * D
    fetch((grad_total, tokens), at + ahead * (BLOCK_S * D), tl.cast(count, tl.int64) * D, BLOCK_S * D)
    g = matrix(grad_total + at, rows, feature, left, D)
    x = matrix(tokens + at, rows, feature, left, D)
    total = cast(hold(g, left), tl.float32)
    for first in range(0, HIDDEN, BLOCK_H):
        chunk = (first + tl.arange(0, BLOCK_H),)
        widening = weight(widen.weight, feature, chunk, D, HIDDEN)
        before = add(dot(x, widening), vector(widen.bias, chunk, HIDDEN))
        back = dot(g, reverse(weight(narrow.weight, chunk, feature, HIDDEN, D)))
        back = times(back, gelu_slope(before) if GELU else relu_slope(before))
        total = dot(back, reverse(widening), total)
    put(grad_tokens + at, total, rows, feature, left, D)


@triton.jit(do_not_specialize=["count", "share"])
@no_type_check
def mlp_weights_backward(
    tokens,
    grad_total,
    widen,
    narrow,
    sums,
    count,
    share,
    D: tl.constexpr,
    HIDDEN: tl.constexpr,
    GELU: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """One program per `share` of the tiles and chunk of hidden features, whose weights stay on chip: to compute these
    features again is cheaper than to store them, four times as wide as tokens, and read them back.

    Features are rows here, so that products leave them where the next ones read their left side, in registers.
    `sums` of every share are the gradients of the widening map's weight and bias, and of the narrowing weight."""
    CHUNKS: tl.constexpr = (HIDDEN + BLOCK_H - 1) // BLOCK_H
    part = (tl.program_id(0) // CHUNKS).to(tl.int64)
    own, feature = tl.program_id(0) % CHUNKS * BLOCK_H + tl.arange(0, BLOCK_H), columns(D)
    operands = widen.weight.dtype.element_ty
    widening = reverse(weight(widen.weight, feature, (own,), D, HIDDEN))[0]
    narrowing = weight(narrow.weight, (own,), feature, HIDDEN, D)[0]
    bias = tl.load(widen.bias + own, mask=own < HIDDEN, other=0.0)[:, None]

    grad_widen, grad_narrow = zeros(BLOCK_H, feature), zeros(BLOCK_H, feature)
    grad_bias = tl.zeros((BLOCK_H,), tl.float32)
    end = tl.minimum((part + 1) * share * BLOCK_S, count)
    for start in range(part * share * BLOCK_S, end, BLOCK_S):
        rows, at = tl.arange(0, BLOCK_S), start * D
        x = matrix(tokens + at, rows, feature, end - start, D)
        g = matrix(grad_total + at, rows, feature, end - start, D)
        before = add(dot(widening, as_columns(x)), (bias,))
        back = dot(narrowing, as_columns(g))
        back = times(back, gelu_slope(before) if GELU else relu_slope(before))
        after = gelu(before) if GELU else relu(before)
        grad_bias += tl.sum(back[0], 1)
        grad_widen = dot(cast(back, operands), (x,), grad_widen)
        grad_narrow = dot(cast(after, operands), (g,), grad_narrow)

    sums += part * HIDDEN * (2 * D + 1)
    put(sums, grad_widen, own, feature, HIDDEN, D)
    put_reversed(sums + HIDDEN * D, grad_narrow, own, feature, HIDDEN, D)
    tl.store(sums + 2 * HIDDEN * D + own, grad_bias, mask=own < HIDDEN)


@triton.jit
@no_type_check
def relu_slope(x):
    return [tl.where(each > 0, 1.0, 0.0) for each in x]


@triton.jit
@no_type_check
def gelu_slope(x):
    """Φ(x) + x φ(x)."""
    return [tl.where(each > 0, 1 - normal_tail(each), normal_tail(each)) + each * normal_density(each) for each in x]
