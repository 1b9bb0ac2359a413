"""The kernels of the MLP layer; imported only where one of them runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.layers.norm_triton import norm_backward, put_norm, put_sums
from vcnef.kernels.parts_triton import (
    add,
    cast,
    columns,
    dot,
    gelu,
    matrix,
    normal_density,
    normal_tail,
    product,
    put,
    relu,
    reverse,
    times,
    vector,
    weight,
)


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


@triton.jit(do_not_specialize=["count"])
@no_type_check
def mlp_backward(
    grad,
    tokens,
    standard,
    inverse,
    widen,
    narrow,
    layer_norm,
    grad_tokens,
    grad_out,
    hidden,
    grad_hidden,
    token_sums,
    count,
    D: tl.constexpr,
    HIDDEN: tl.constexpr,
    GELU: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    start = program * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    operands = widen.weight.dtype.element_ty
    total = norm_backward(
        grad + start * D, standard + start * D, inverse + start, layer_norm, token_sums + program * (3 * D + HIDDEN),
        rows, left, feature, D,
    )  # fmt: skip
    grad_operand = cast(total, operands)
    put(grad_out + start * D, grad_operand, rows, feature, left, D)
    x = matrix(tokens + start * D, rows, feature, left, D)
    for first in range(0, HIDDEN, BLOCK_H):
        chunk = (first + tl.arange(0, BLOCK_H),)
        widening = weight(widen.weight, feature, chunk, D, HIDDEN)
        before = add(dot(x, widening), vector(widen.bias, chunk, HIDDEN))
        after = gelu(before) if GELU else relu(before)
        put(hidden + start * HIDDEN, after, rows, chunk, left, HIDDEN)
        back = dot(grad_operand, reverse(weight(narrow.weight, chunk, feature, HIDDEN, D)))
        back = times(back, gelu_slope(before) if GELU else relu_slope(before))
        back = cast(back, operands)
        put(grad_hidden + start * HIDDEN, back, rows, chunk, left, HIDDEN)
        put_sums(token_sums + program * (3 * D + HIDDEN) + 3 * D, back, chunk, HIDDEN)
        total = dot(back, reverse(widening), total)
    put(grad_tokens + start * D, total, rows, feature, left, D)


@triton.jit
@no_type_check
def relu_slope(x):
    return [tl.where(each > 0, 1.0, 0.0) for each in x]


@triton.jit
@no_type_check
def gelu_slope(x):
    """Φ(x) + x φ(x)."""
    return [tl.where(each > 0, 1 - normal_tail(each), normal_tail(each)) + each * normal_density(each) for each in x]
