"""The kernels of the modulation layer; imported only where one of them runs.

A program takes the same points at the same frame of one sample after the other, so that it can read a field that they
share once. A factor that is given has one row of tokens for all times, and so have the tokens then.
"""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.layers.norm_triton import ALIKE, ones, positive_slope, put_column, put_norm
from vcnef.kernels.parts_triton import (
    add,
    as_columns,
    cast,
    columns,
    dot,
    matrix,
    positive,
    put,
    put_reversed,
    reverse,
    times,
    vector,
    weight,
    zeros,
)
from vcnef.kernels.tiles_triton import own_tiles


@triton.jit(do_not_specialize=["samples", "frames", "points", "share", "eps"])
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
    samples,
    frames,
    points,
    share,
    eps,
    D: tl.constexpr,
    SHARED_FIELD: tl.constexpr,
    BLOCK_S: tl.constexpr,
    STAGES: tl.constexpr,
):
    rows, feature = tl.arange(0, BLOCK_S), columns(D)
    out_weight = weight(out_map.weight, feature, feature, D, D)
    if factor is None:
        scaling = weight(scale.weight, feature, feature, D, D)
    _, frame, first, begin, end = _own_rows(tl.program_id(0), samples, frames, points, share, BLOCK_S)
    left = points - first
    if SHARED_FIELD:
        c = matrix(field + (frame * points + first) * D, rows, feature, left, D)
    for sample in tl.range(begin, end, num_stages=STAGES, disable_licm=True):
        where, token_at = _find(sample, frame, first, factor, frames, points, D)
        at = where * D
        y = matrix(tokens + token_at, rows, feature, left, D)
        if not SHARED_FIELD:
            c = matrix(field + at, rows, feature, left, D)
        if factor is not None:
            f = matrix(factor + token_at, rows, feature, left, D)
        else:
            f = positive(add(dot(y, scaling), vector(scale.bias, feature, D)))
        modulated = times(cast(f, tl.float32), cast(c, tl.float32))
        total = dot(modulated, out_weight, cast(y, tl.float32))
        total = add(total, vector(out_map.bias, feature, D))
        put_norm(total, out + at, standard + at, inverse + where, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["samples", "frames", "points", "share"])
@no_type_check
def modulation_backward(
    grad_total,
    tokens,
    factor,
    field,
    scale,
    out_map,
    grad_own,
    grad_field,
    samples,
    frames,
    points,
    share,
    D: tl.constexpr,
    SHARED_FIELD: tl.constexpr,
    BLOCK_S: tl.constexpr,
    STAGES: tl.constexpr,
):
    """`grad_own` is the gradient of the tokens, or of a factor that is given; the tokens' is `grad_total` then. Where
    samples share the field, `grad_field` has one sum for all of a program."""
    rows, feature = tl.arange(0, BLOCK_S), columns(D)
    out_back = reverse(weight(out_map.weight, feature, feature, D, D))
    if factor is None:
        scaling = weight(scale.weight, feature, feature, D, D)
    of_field = zeros(BLOCK_S, feature)
    part, frame, first, begin, end = _own_rows(tl.program_id(0), samples, frames, points, share, BLOCK_S)
    left = points - first
    for sample in tl.range(begin, end, num_stages=STAGES, disable_licm=True):
        where, token_at = _find(sample, frame, first, factor, frames, points, D)
        at = where * D
        total = matrix(grad_total + at, rows, feature, left, D)
        back = dot(total, out_back)
        if factor is not None:
            f = cast(matrix(factor + token_at, rows, feature, left, D), tl.float32)
        else:
            y = matrix(tokens + token_at, rows, feature, left, D)
            f = positive(add(dot(y, scaling), vector(scale.bias, feature, D)))
        # There are no registers to keep a shared field in.
        if SHARED_FIELD:
            of_field = add(of_field, times(back, f))
            c = matrix(field + (frame * points + first) * D, rows, feature, left, D)
        else:
            put(grad_field + at, times(back, f), rows, feature, left, D)
            c = matrix(field + at, rows, feature, left, D)
        back = times(back, cast(c, tl.float32))
        if factor is None:
            back = dot(times(back, positive_slope(f)), reverse(scaling), cast(total, tl.float32))
        put(grad_own + at, back, rows, feature, left, D)
    if SHARED_FIELD:
        where, _ = _find(part, frame, first, None, frames, points, D)
        put(grad_field + where * D, of_field, rows, feature, left, D)


@triton.jit(do_not_specialize=["samples", "frames", "points", "together", "sets", "share"])
@no_type_check
def modulation_weights_backward(
    tokens,
    factor,
    field,
    grad_total,
    scale,
    out_map,
    sums,
    samples,
    frames,
    points,
    together,
    sets,
    share,
    D: tl.constexpr,
    SHARED_FIELD: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """F ∘ C and the gradient of F's logits are computed again, since to store and to read them costs more.

    Features are rows here, as for the MLP's weights. `sums` of every program are the gradients of the outer weight
    and, where F is not given, of the inner weight and bias. A shared field is turned once for `together` samples:
    products would have to wait for it."""
    rows, feature, whole = tl.arange(0, BLOCK_S), columns(D), tl.arange(0, BLOCK_D)
    operands = grad_total.dtype.element_ty
    if factor is None:
        out_weight = weight(out_map.weight, (whole,), feature, D, D)[0]
        scaling = reverse(weight(scale.weight, feature, (whole,), D, D))[0]
        bias = tl.load(scale.bias + whole, mask=whole < D, other=0.0)[:, None]
    all_tokens = ones(BLOCK_S, operands)
    grad_out, grad_scale, grad_bias = zeros(BLOCK_D, feature), zeros(BLOCK_D, feature), zeros(BLOCK_D, columns(ALIKE))
    first_set, last_set = own_tiles(tl.program_id(0), sets, share)
    for one in tl.range(first_set, last_set, num_stages=1, disable_licm=True):
        _, frame, first, begin, end = _own_rows(one, samples, frames, points, together, BLOCK_S)
        left = points - first
        if SHARED_FIELD:
            c = _features_as_rows(field + (frame * points + first) * D, whole, rows, left, D)
        for sample in tl.range(begin, end, disable_licm=True):
            where, token_at = _find(sample, frame, first, factor, frames, points, D)
            g = matrix(grad_total + where * D, rows, feature, left, D)
            if not SHARED_FIELD:
                c = _features_as_rows(field + where * D, whole, rows, left, D)
            if factor is not None:
                f = _features_as_rows(factor + token_at, whole, rows, left, D)
            else:
                y = matrix(tokens + token_at, rows, feature, left, D)
                f = positive(add(dot(scaling, as_columns(y)), (bias,)))
                back = times(times(dot(out_weight, as_columns(g)), c), positive_slope(f))
                back = cast(back, operands)
                grad_bias = dot(back, all_tokens, grad_bias)
                grad_scale = dot(back, (y,), grad_scale)
            grad_out = dot(cast(times(f, c), operands), (g,), grad_out)

    sums += tl.program_id(0) * (D * D if factor is not None else D * (2 * D + 1))
    put_reversed(sums, grad_out, whole, feature, D, D)
    if factor is None:
        put(sums + D * D, grad_scale, whole, feature, D, D)
        put_column(sums + 2 * D * D, grad_bias, whole, D)


@triton.jit
@no_type_check
def _own_rows(index, samples, frames, points, share, BLOCK_S: tl.constexpr):
    """Of the tiles at the same frame and points, one in each sample: which share of the samples this is, the frame and
    the first point, the first sample and the one after the last."""
    per_row = tl.cdiv(points, BLOCK_S)
    part = index // (frames * per_row)
    begin, end = own_tiles(part, samples, share)
    return part, tl.cast(index // per_row % frames, tl.int64), index % per_row * BLOCK_S, begin, end


@triton.jit
@no_type_check
def _find(sample, frame, first, factor, frames, points, D: tl.constexpr):
    """The first token of a tile, and where the layer's own tokens begin, which a given factor has for all frames."""
    where = (sample * frames + frame) * points + first
    once = tl.cast(sample, tl.int64) * points + first
    return where, (where if factor is None else once) * D


@triton.jit
@no_type_check
def _features_as_rows(pointer, feature, rows, left, D: tl.constexpr):
    """A tile of tokens, which are columns here, in fp32. Turned after the read, it would not be read ahead."""
    inside = (feature < D)[:, None] & (rows < left)[None, :]
    return (tl.load(pointer + rows[None, :] * D + feature[:, None], mask=inside, other=0.0).to(tl.float32),)
