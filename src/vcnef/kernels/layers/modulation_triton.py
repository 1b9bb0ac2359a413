"""The kernels of the modulation layer; imported only where one of them runs.

A factor that is given has one row of tokens for all times, and so have the tokens then.
"""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.layers.norm_triton import norm_backward, positive_slope, put_norm, put_sums
from vcnef.kernels.parts_triton import (
    add,
    cast,
    columns,
    dot,
    matrix,
    own_tile,
    positive,
    product,
    put,
    reverse,
    times,
    vector,
    weight,
)


@triton.jit(do_not_specialize=["frames", "points", "eps"])
@no_type_check
def modulation(
    tokens,
    factor,
    field,
    out,
    standard,
    inverse,
    scale,
    out_map,
    layer_norm,
    frames,
    points,
    eps,
    D: tl.constexpr,
    SHARED_FIELD: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    row, first = own_tile(points, BLOCK_S)
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), points - first
    at = (row * points + first) * D
    token_at = ((row // frames) * points + first) * D if factor is not None else at
    field_at = ((row % frames) * points + first) * D if SHARED_FIELD else at

    y = matrix(tokens + token_at, rows, feature, left, D)
    c = matrix(field + field_at, rows, feature, left, D)
    if factor is not None:
        f = matrix(factor + token_at, rows, feature, left, D)
    else:
        f = positive(product(y, scale, feature, feature, D, D))
    modulated = times(cast(f, tl.float32), cast(c, tl.float32))
    total = dot(modulated, weight(out_map.weight, feature, feature, D, D), cast(y, tl.float32))
    total = add(total, vector(out_map.bias, feature, D))
    where = row * points + first
    put_norm(total, out + at, standard + at, inverse + where, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["frames", "points"])
@no_type_check
def modulation_backward(
    grad,
    tokens,
    factor,
    field,
    standard,
    inverse,
    scale,
    out_map,
    layer_norm,
    grad_tokens,
    grad_factor,
    grad_field,
    grad_total,
    modulated,
    token_sums,
    frames,
    points,
    D: tl.constexpr,
    SHARED_FIELD: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """`grad_factor` is the gradient of a factor that is given, otherwise of its logits."""
    program = tl.program_id(0).to(tl.int64)
    row, first = own_tile(points, BLOCK_S)
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), points - first
    operands = out_map.weight.dtype.element_ty
    where = row * points + first
    at = where * D
    token_at = ((row // frames) * points + first) * D if factor is not None else at
    field_at = ((row % frames) * points + first) * D if SHARED_FIELD else at
    total = norm_backward(
        grad + at, standard + at, inverse + where, layer_norm, token_sums + program * 4 * D, rows, left, feature, D
    )
    total_operand = cast(total, operands)
    put(grad_total + at, total_operand, rows, feature, left, D)
    back = dot(total_operand, reverse(weight(out_map.weight, feature, feature, D, D)))

    c = cast(matrix(field + field_at, rows, feature, left, D), tl.float32)
    if factor is not None:
        f = cast(matrix(factor + token_at, rows, feature, left, D), tl.float32)
    else:
        y = matrix(tokens + token_at, rows, feature, left, D)
        scaling = weight(scale.weight, feature, feature, D, D)
        f = positive(add(dot(y, scaling), vector(scale.bias, feature, D)))
    put(modulated + at, times(f, c), rows, feature, left, D)
    put(grad_field + at, times(back, f), rows, feature, left, D)
    back = times(back, c)
    if factor is None:
        back = cast(times(back, positive_slope(f)), operands)
        put_sums(token_sums + program * 4 * D + 3 * D, back, feature, D)
        total = dot(back, reverse(scaling), total)
        put(grad_tokens + at, total, rows, feature, left, D)
    put(grad_factor + at, back, rows, feature, left, D)
