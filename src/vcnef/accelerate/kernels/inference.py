"""Blocks of linear attention without gradients.

With φ = ELU + 1, tokens X of one sample and time, M and k̄ of them from `mix`, and m the matrix of ones within a head,
zeros between heads:

    attend     Q = φ(X Wq + bq),  Y = LN(X + (Q / (Q (k̄ ∘ m))) M + bo + extra),  F = φ(Y Ws + bs)
    modulate   Z = LN(Y + (F ∘ C) W + b),  LN(Z + W₂ act(W₁ Z + b₁) + b₂)
    apply      attend and modulate in one: the rest of a modulation block after `mix`, and its decoder if given
    transform  the rest of a transformer block after `mix`: attend without F, and modulate with Z = Y

The first modulation block attends once for all times, so there `attend` and `modulate` are two.
"""

from collections.abc import Iterator
from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels import formulas
from vcnef.accelerate.kernels.decoder import decode_baseline, decode_tile, draw_decoder, pack_decoder
from vcnef.accelerate.kernels.heads import inverse_head_sums, spread
from vcnef.accelerate.kernels.mix import draw_block, mix_baseline, pack_block
from vcnef.accelerate.kernels.operation import INFERENCE_TOLERANCE, Example, Operation, Sizes
from vcnef.accelerate.kernels.parts import (
    add,
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
    times,
    vector,
    weight,
)
from vcnef.accelerate.kernels.requirements import obstacle
from vcnef.accelerate.kernels.tiles import own_tile
from vcnef.accelerate.kernels.weights import BlockWeights, DecoderWeights, Heads, Tiling, first_for, head_maps, padded

BLOCK_TILINGS = (
    Tiling(128, 32, 8, 3, 128),
    Tiling(64, 64, 4, 2, 168),
    Tiling(128, 64, 8, 3),
    Tiling(64, 64, 4, 2),
)
"""As measured on an H200; `first_for` chooses."""


def attend(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
) -> tuple[Float[Tensor, "b t s d"], Float[Tensor, "b t s d"]]:
    """Y and F in the operands' type; `extra` joins the attention's output."""
    batch, times, points, width = tokens.shape
    tiling = first_for(width, BLOCK_TILINGS, points)
    tokens = tokens.contiguous()
    attended, factor = (torch.empty_like(tokens, dtype=weights.operands) for _ in range(2))
    with torch.cuda.device_of(tokens):
        attend_kernel[(batch * times * -(-points // tiling.tokens),)](
            *(tokens, mixing, key_mean, None if extra is None else extra.contiguous(), attended, factor),
            *(weights.query, _heads(tokens, weights), weights.join.bias, weights.attention_norm),
            *(weights.scale, points, weights.eps),
            HEADS=weights.heads,
            **_sizes(width, tiling),
        )
    return attended, factor


def apply(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    field: Float[Tensor, "b_or_1 t s d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
    decoder: DecoderWeights | None = None,
) -> Float[Tensor, "b t s d_or_c"]:
    """Return the rest of a modulation block in the operands' type, or the fields that a decoder makes of it, in
    fp32."""
    return _launch(tokens, mixing, key_mean, extra, field, weights, decoder)


def modulate(
    attended: Float[Tensor, "b t_or_1 s d"],
    scale: Float[Tensor, "b t_or_1 s d"],
    field: Float[Tensor, "b_or_1 t s d"],
    weights: BlockWeights,
) -> Float[Tensor, "b t s d"]:
    """Return the part of a block after attention and scale, in the operands' type; `scale` is F."""
    return _launch(attended, None, scale, None, field, weights)


def transform(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
) -> Float[Tensor, "b t s d"]:
    """Return the rest of a transformer block, in the operands' type."""
    return _launch(tokens, mixing, key_mean, extra, None, weights)


def _launch(
    tokens: Tensor,
    mixing: Tensor | None,
    key_mean_or_scale: Tensor,
    extra: Tensor | None,
    field: Tensor | None,
    weights: BlockWeights,
    decoder: DecoderWeights | None = None,
) -> Tensor:
    batch, own_times, points, width = tokens.shape
    times, hidden = own_times if field is None else field.shape[1], len(weights.widen.bias)
    tiling = first_for(width, BLOCK_TILINGS, points)
    tokens, key_mean_or_scale = tokens.contiguous(), key_mean_or_scale.contiguous()
    field = field if field is None else field.to(weights.operands).contiguous()
    extra = extra if extra is None else extra.contiguous()
    channels, dtype = (width, weights.operands) if decoder is None else (decoder.channels, torch.float32)
    out = tokens.new_empty(batch, times, points, channels, dtype=dtype)
    with torch.cuda.device_of(tokens):
        apply_kernel[(batch * times * -(-points // tiling.tokens),)](
            *(tokens, mixing, key_mean_or_scale, extra, field, out),
            *(weights.query, _heads(tokens, weights), weights.join.bias, weights.attention_norm),
            *(weights.scale, weights.out, weights.modulation_norm),
            *(weights.widen, weights.narrow, weights.mlp_norm),
            *(decoder, times, points, weights.eps),
            CHANNELS=channels,
            HEADS=weights.heads,
            HIDDEN=hidden,
            GELU=weights.activation == "gelu",
            ATTEND=mixing is not None,
            MODULATE=field is not None,
            ONE_TIME=own_times == 1,
            SHARED_FIELD=field is not None and field.shape[0] == 1,
            BLOCK_H=min(tiling.hidden, padded(hidden)),
            **_sizes(width, tiling),
        )
    return out


def _heads(tokens: Tensor, weights: BlockWeights) -> Heads:
    return head_maps(tokens.shape[-1], weights.heads, weights.operands, tokens.device)


def _sizes(width: int, tiling: Tiling) -> dict[str, Any]:
    return {"D": width, "BLOCK_S": tiling.tokens, **tiling.launch}


@triton.jit(do_not_specialize=["points", "eps"])
@no_type_check
def attend_kernel(
    tokens, mixing, key_mean, extra, attended, factor, query, heads, join_bias, attention_norm, scale, points, eps,
    HEADS: tl.constexpr, D: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    """One program per sample, time and tile of tokens; Y and F of the first block, which has one time."""
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
def apply_kernel(
    tokens, mixing, key_mean_or_scale, extra, field, out, query, heads, join_bias, attention_norm, scale, out_map,
    modulation_norm, widen, narrow, mlp_norm, decoder, frames, points, eps,
    CHANNELS: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr, HIDDEN: tl.constexpr, GELU: tl.constexpr,
    ATTEND: tl.constexpr, MODULATE: tl.constexpr, ONE_TIME: tl.constexpr, SHARED_FIELD: tl.constexpr,
    BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
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
        fields = decode_tile(z, decoder, feature, channel, D, CHANNELS)
        put(out + row * points * CHANNELS, fields, point, channel, points, CHANNELS)


@triton.jit
@no_type_check
def _attend(
    tokens, mixing, key_mean, extra, query, heads, join_bias, attention_norm, row, point, points, eps, feature,
    D: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """Y = LN(X + (Q / (Q (k̄ ∘ m))) M + bo + extra)."""
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


def attend_baseline(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
) -> tuple[Float[Tensor, "b t s d"], Float[Tensor, "b t s d"]]:
    attended = _attended(tokens, mixing, key_mean, weights, extra)
    return attended.to(weights.operands), _factor(attended, weights).to(weights.operands)


def modulate_baseline(
    attended: Float[Tensor, "b t_or_1 s d"],
    scale: Float[Tensor, "b t_or_1 s d"],
    field: Float[Tensor, "b_or_1 t s d"],
    weights: BlockWeights,
) -> Float[Tensor, "b t s d"]:
    total = attended.float() + formulas.affine(scale.float() * field.float(), weights.out)
    return _finish(formulas.norm(total, weights.modulation_norm, weights.eps), weights)


def apply_baseline(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    field: Float[Tensor, "b_or_1 t s d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
    decoder: DecoderWeights | None = None,
) -> Float[Tensor, "b t s d_or_c"]:
    attended = _attended(tokens, mixing, key_mean, weights, extra)
    modulated = modulate_baseline(attended, _factor(attended, weights), field, weights)
    return modulated if decoder is None else decode_baseline(modulated, decoder)


def transform_baseline(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
) -> Float[Tensor, "b t s d"]:
    return _finish(_attended(tokens, mixing, key_mean, weights, extra), weights)


def _attended(
    tokens: Tensor, mixing: Tensor, key_mean: Tensor, weights: BlockWeights, extra: Tensor | None
) -> Float[Tensor, "b t s d"]:
    total = formulas.attend(tokens.float(), mixing, key_mean, weights.query, weights.join.bias, weights.heads)
    return formulas.norm(total if extra is None else total + extra, weights.attention_norm, weights.eps)


def _factor(attended: Float[Tensor, "b t s d"], weights: BlockWeights) -> Float[Tensor, "b t s d"]:
    return formulas.positive(formulas.affine(attended, weights.scale))


def _finish(tokens: Float[Tensor, "b t s d"], weights: BlockWeights) -> Float[Tensor, "b t s d"]:
    total = formulas.mlp(tokens, weights.widen, weights.narrow, weights.activation)
    return formulas.norm(total, weights.mlp_norm, weights.eps).to(weights.operands)


def _mixed(sizes: Sizes) -> tuple[list[Tensor], list[Tensor]]:
    """Return tokens with their M and k̄, and the weights of the block."""
    tokens, learnt = sizes.tokens().to(sizes.between), draw_block(sizes)
    return [tokens, *mix_baseline(tokens, pack_block(sizes, learnt))], learnt


def attend_examples(sizes: Sizes) -> Iterator[Example]:
    data, learnt = _mixed(sizes)
    yield Example("alone", data, learnt, lambda x, m, k, *w: (x, m, k, pack_block(sizes, w)))
    data = [*data, sizes.tokens().to(sizes.between)]
    yield Example("with extra", data, learnt, lambda x, m, k, extra, *w: (x, m, k, pack_block(sizes, w), extra))


def modulate_examples(sizes: Sizes) -> Iterator[Example]:
    attended, factor = sizes.tokens(), sizes.tokens().abs()
    for label, frames in (("all times", sizes.times), ("one time", 1)):
        own = [each[:, :frames].to(sizes.between) for each in (attended, factor)]
        data = [*own, sizes.modulating_field()]
        yield Example(label, data, draw_block(sizes), lambda y, f, field, *w: (y, f, field, pack_block(sizes, w)))


def apply_examples(sizes: Sizes) -> Iterator[Example]:
    data, learnt = _mixed(sizes)
    data.append(sizes.modulating_field())
    yield Example("alone", data, learnt, lambda x, m, k, field, *w: (x, m, k, field, pack_block(sizes, w)))
    count, decoder = len(learnt), draw_decoder(sizes, sizes.channels)

    def arrange(x: Tensor, m: Tensor, k: Tensor, field: Tensor, extra: Tensor, *w: Tensor) -> tuple:
        return x, m, k, field, pack_block(sizes, w[:count]), extra, pack_decoder(sizes, w[count:])

    data = [*data, sizes.tokens().to(sizes.between)]
    yield Example("with extra and a decoder", data, [*learnt, *decoder], arrange)


APPLY = Operation(
    "apply", apply, apply_baseline, obstacle, apply_examples, differentiable=False, tolerance=INFERENCE_TOLERANCE
)
ATTEND = Operation(
    "attend", attend, attend_baseline, obstacle, attend_examples, differentiable=False, tolerance=INFERENCE_TOLERANCE
)
MODULATE = Operation(
    "modulate",
    modulate,
    modulate_baseline,
    obstacle,
    modulate_examples,
    differentiable=False,
    tolerance=INFERENCE_TOLERANCE,
)
TRANSFORM = Operation(
    "transform",
    transform,
    transform_baseline,
    obstacle,
    attend_examples,
    differentiable=False,
    tolerance=INFERENCE_TOLERANCE,
)
