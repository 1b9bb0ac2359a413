"""The kernels of the decoder layer; imported only where one of them runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.layers.mlp_triton import gelu_slope
from vcnef.kernels.layers.norm_triton import put_total, standardise, through_norm
from vcnef.kernels.parts_triton import (
    add,
    cast,
    columns,
    dot,
    gelu,
    matrix,
    norm,
    product,
    put,
    reverse,
    sums,
    times,
    vector,
    weight,
    zeros,
)
from vcnef.kernels.tiles_triton import fetch


@triton.jit(do_not_specialize=["count", "eps"])
@no_type_check
def decoder(
    tokens,
    out,
    layer_norm,
    first,
    last,
    count,
    eps,
    CHANNELS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    x = cast(matrix(tokens + start * D, rows, feature, left, D), tl.float32)
    hidden = gelu(product(norm(x, layer_norm, feature, eps, D), first, feature, feature, D, D))
    for channel in tl.static_range(CHANNELS):
        # In full precision, unlike a product of tensor cores: it is what the model answers.
        field = sums(times(hidden, vector(last.weight + channel * D, feature, D))) + tl.load(last.bias + channel)
        tl.store(out + (start + rows) * CHANNELS + channel, field, mask=rows < left)


@triton.jit(do_not_specialize=["count", "eps", "ahead"])
@no_type_check
def decoder_backward(
    grad,
    tokens,
    layer_norm,
    first,
    last,
    grad_tokens,
    standard,
    grad_inner,
    token_sums,
    count,
    eps,
    ahead,
    CHANNELS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """`token_sums` has the gradients of the last map. What the first map and the norm learn is made of `standard`, the
    norm's input with mean 0 and variance 1, and `grad_inner`."""
    program = tl.program_id(0).to(tl.int64)
    start = program * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    token_sums += program * CHANNELS * (D + 1)
    operands = first.weight.dtype.element_ty
    fetch((tokens,), (start + ahead * BLOCK_S) * D, tl.cast(count, tl.int64) * D, BLOCK_S * D)
    x = cast(matrix(tokens + start * D, rows, feature, left, D), tl.float32)
    unit, inverse = standardise(x, feature, eps, D)
    # As it is read for the weights: there are no registers for the rest.
    unit = cast(unit, operands)
    put(standard + start * D, unit, rows, feature, left, D)
    scale = vector(layer_norm.weight, feature, D)
    normed = add(times(cast(unit, tl.float32), scale), vector(layer_norm.bias, feature, D))
    first_weight = weight(first.weight, feature, feature, D, D)
    before = add(dot(normed, first_weight), vector(first.bias, feature, D))

    back = zeros(BLOCK_S, feature)
    for channel in tl.static_range(CHANNELS):
        g = tl.load(grad + (start + rows) * CHANNELS + channel, mask=rows < left, other=0.0)
        back = add(back, _rows(vector(last.weight + channel * D, feature, D), g))
    back = cast(times(back, gelu_slope(before)), operands)
    hidden = cast(gelu(before), operands)
    put(grad_inner + start * D, back, rows, feature, left, D)
    for channel in tl.static_range(CHANNELS):
        g = tl.load(grad + (start + rows) * CHANNELS + channel, mask=rows < left, other=0.0)
        put_total(token_sums + channel * D, cast(_rows(cast(hidden, tl.float32), g), operands), feature, D)
        tl.store(token_sums + CHANNELS * D + channel, tl.sum(g, 0))
    back = dot(back, reverse(first_weight))
    back = through_norm(back, cast(unit, tl.float32), inverse, scale, feature, D)
    put(grad_tokens + start * D, back, rows, feature, left, D)


@triton.jit
@no_type_check
def _rows(x, factor):
    """Each row times its factor."""
    return [each * factor[:, None] for each in x]
