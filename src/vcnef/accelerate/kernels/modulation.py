"""Modulation of tokens with its residual sum and norm, with gradients.

With φ = ELU + 1, tokens Y and the modulating field C:

    LN(Y + (F ∘ C) W + b),  F = φ(Y Ws + bs)

The factor F may also be given: it is then, like Y, one for all times.

A program takes the same points at the same frame of one sample after the other, so that it reads a field once that
samples share.
"""

# No postponed annotations here: custom operators read their signatures from them.

from collections.abc import Iterator
from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels import formulas
from vcnef.accelerate.kernels.beside import Beside
from vcnef.accelerate.kernels.launch import Weights, affine, floats, launch, like, pack, shares_of, stages_of, tiles_of
from vcnef.accelerate.kernels.norms import ALIKE, ones, positive_slope, put_column, put_norm
from vcnef.accelerate.kernels.operation import EPS, TRAINING_TOLERANCE, Example, Operation, Sizes
from vcnef.accelerate.kernels.parts import (
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
from vcnef.accelerate.kernels.requirements import obstacle
from vcnef.accelerate.kernels.residual import through_norm
from vcnef.accelerate.kernels.sums import summed
from vcnef.accelerate.kernels.tiles import own_tiles
from vcnef.accelerate.kernels.weights import Affine, padded

MOST_IN_TURN = {"modulation": 8, "modulation_backward": 8, "modulation_weights_backward": 16}
"""Samples that a program takes one after the other, as measured on an H200: with more of them and fewer programs, some
multiprocessors are done before others."""


def modulation(
    tokens: Float[Tensor, "b t_or_1 s d"],
    factor: Float[Tensor, "b 1 s d"] | None,
    field: Float[Tensor, "b_or_1 t s d"],
    weights: Weights,
    eps: float,
) -> Float[Tensor, "b t s d"]:
    """`weights` of scale, out and the norm; without those of scale where the factor F is given."""
    packed = pack(tokens, weights)
    return _modulation(tokens.contiguous(), like(factor, tokens), like(field, tokens), weights, packed, eps)[0]


@torch.library.custom_op("vcnef::modulation_by_frames", mutates_args=())
def _modulation(
    tokens: Tensor, factor: Tensor | None, field: Tensor, weights: list[Tensor], packed: list[Tensor], eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    found = _empty_modulation(tokens, factor, field)
    batch, frames, points, width = found[0].shape
    *scale, out_map, norm = affine(weights, packed)
    each, _, sets = _in_turn("modulation", found[0])
    launch(
        modulation_kernel, sets, tokens, factor, field, *found, *(scale or [None]), out_map, norm, batch, frames,
        points, each, eps, D=width, SHARED_FIELD=len(field) == 1, STAGES=stages_of("modulation", width),
    )  # fmt: skip
    return found


@_modulation.register_fake
def _empty_modulation(tokens: Tensor, factor: Tensor | None, field: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    shape = len(tokens), *field.shape[1:]
    return tokens.new_empty(shape), tokens.new_empty(shape), floats(tokens, *shape[:-1])


@torch.library.custom_op("vcnef::modulation_by_frames_backward", mutates_args=())
def _modulation_backward(
    grad: Tensor,
    tokens: Tensor,
    factor: Tensor | None,
    field: Tensor,
    standard: Tensor,
    inverse: Tensor,
    weights: list[Tensor],
    packed: list[Tensor],
) -> list[Tensor]:
    batch, frames, points, width = grad.shape
    *scale, out_map, norm = affine(weights, packed)
    maps = *(scale or [None]), out_map
    with Beside(tokens) as beside:
        grad_total, token_sums = through_norm(grad, standard, inverse, norm)
        map_sums = beside(_learn_maps, tokens, factor, field, grad_total, maps)
        norm_sums = beside(summed, token_sums)
        each, parts, sets = _in_turn("modulation_backward", grad)
        grad_own = torch.empty_like(standard)
        field_sums = field.new_empty(parts, *field.shape[1:]) if len(field) == 1 else torch.empty_like(field)
        # A factor that is given leaves room on chip for another tile.
        stages = stages_of("modulation_backward", width) + (factor is not None)
        launch(
            modulation_backward_kernel, sets, grad_total, tokens, factor, field, *maps, grad_own, field_sums, batch,
            frames, points, each, D=width, SHARED_FIELD=len(field) == 1, STAGES=stages,
        )  # fmt: skip
        grad_field = beside(_sum_over, 0, field_sums) if len(field) == 1 else field_sums
        if factor is None:
            return [grad_own, grad_field, norm_sums, map_sums]
        return [beside(_sum_over, 1, grad_total), grad_field, norm_sums, map_sums, _sum_over(1, grad_own)]


def _sum_over(axis: int, x: Tensor) -> Tensor:
    return x.sum(axis, keepdim=True)


def _learn_maps(
    tokens: Tensor, factor: Tensor | None, field: Tensor, grad_total: Tensor, maps: tuple[Affine | None, Affine]
) -> Tensor:
    """Return the gradients of the outer weight and, where the factor is not given, of the inner weight and bias."""
    batch, frames, points, width = grad_total.shape
    each, _, sets = _in_turn("modulation_weights_backward", grad_total)
    programs, share = shares_of("modulation_weights_backward", sets, tokens.device)
    weight_sums = floats(tokens, programs, _weights_learnt(width, factor))
    launch(
        modulation_weights_backward_kernel, programs, tokens, factor, field, grad_total, *maps, weight_sums,
        batch, frames, points, each, sets, share, D=width, SHARED_FIELD=len(field) == 1, BLOCK_D=padded(width),
    )  # fmt: skip
    return summed(weight_sums)


def _in_turn(kernel: str, rows: Tensor) -> tuple[int, int, int]:
    """Return how many samples a program of that kernel takes one after the other, in how many parts they come then, and
    how many such sets of the same points and frame there are."""
    samples, frames, points, _ = rows.shape
    tiles = frames * tiles_of(kernel, points)
    _, each = shares_of(kernel, tiles * samples, rows.device)
    each = min(each, MOST_IN_TURN[kernel])
    parts = -(-samples // each)
    return each, parts, parts * tiles


@_modulation_backward.register_fake
def _(grad: Tensor, tokens: Tensor, factor: Tensor | None, field: Tensor, *_: Any) -> list[Tensor]:
    width = tokens.shape[-1]
    sums = floats(tokens, 3 * width), floats(tokens, _weights_learnt(width, factor))
    return [
        torch.empty_like(tokens),
        torch.empty_like(field),
        *sums,
        *([] if factor is None else [torch.empty_like(factor)]),
    ]


def _weights_learnt(width: int, factor: Tensor | None) -> int:
    """Return how many numbers there are in the outer weight and, where the factor is not given, in the inner weight and
    bias."""
    return width * (2 * width + 1) if factor is None else width * width


def _save_modulation(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    tokens, factor, field, weights, packed, _ = inputs
    ctx.save_for_backward(tokens, factor, field, *output[1:], *packed, *weights)


def _differentiate_modulation(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    tokens, factor, field, standard, inverse, *saved = ctx.saved_tensors
    matrices = 2 if factor is None else 1
    packed, weights = saved[:matrices], saved[matrices:]
    found = _modulation_backward(grad.contiguous(), tokens, factor, field, standard, inverse, weights, packed)
    grad_tokens, grad_field, sums, maps, *grad_factor = found
    scale, shift, out_bias = sums.chunk(3)
    width = len(scale)
    out, *inner = maps.split([width * width] * matrices + [width] * (matrices - 1))
    grads = [out.view(width, width), out_bias, scale, shift]
    if factor is None:
        scaling, scaling_bias = inner
        return grad_tokens, None, grad_field, [scaling.view(width, width), scaling_bias, *grads], [None] * 2, None
    return grad_tokens, *grad_factor, grad_field, grads, [None], None


_modulation.register_autograd(_differentiate_modulation, setup_context=_save_modulation)


@triton.jit(do_not_specialize=["samples", "frames", "points", "share", "eps"])
@no_type_check
def modulation_kernel(
    tokens, factor, field, out, standard, inverse, scale, out_map, layer_norm, samples, frames, points, share, eps,
    D: tl.constexpr, SHARED_FIELD: tl.constexpr, BLOCK_S: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
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
def modulation_backward_kernel(
    grad_total, tokens, factor, field, scale, out_map, grad_own, grad_field, samples, frames, points, share,
    D: tl.constexpr, SHARED_FIELD: tl.constexpr, BLOCK_S: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
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
def modulation_weights_backward_kernel(
    tokens, factor, field, grad_total, scale, out_map, sums, samples, frames, points, together, sets, share,
    D: tl.constexpr, SHARED_FIELD: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
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


def modulation_baseline(
    tokens: Float[Tensor, "b t_or_1 s d"],
    factor: Float[Tensor, "b 1 s d"] | None,
    field: Float[Tensor, "b_or_1 t s d"],
    weights: Weights,
    eps: float,
) -> Float[Tensor, "b t s d"]:
    *scale, out_map, norm = formulas.pairs(weights)
    if factor is None:
        factor = formulas.positive(formulas.affine(tokens, scale[0]))
    return formulas.norm(tokens + formulas.affine(factor * field, out_map), norm, eps)


def examples(sizes: Sizes) -> Iterator[Example]:
    scale, out_map, norm = sizes.square(), sizes.square(), sizes.norm()
    data = [sizes.tokens(), sizes.modulating_field()]
    yield Example("alone", data, [*scale, *out_map, *norm], lambda x, field, *w: (x, None, field, list(w), EPS))
    once, factor = sizes.tokens()[:, :1].clone(), sizes.tokens()[:, :1].abs()
    data = [once, factor, sizes.modulating_field()]
    yield Example("with a factor", data, [*out_map, *norm], lambda x, f, field, *w: (x, f, field, list(w), EPS))


MODULATION = Operation(
    "modulation", modulation, modulation_baseline, obstacle, examples, differentiable=True, tolerance=TRAINING_TOLERANCE
)
