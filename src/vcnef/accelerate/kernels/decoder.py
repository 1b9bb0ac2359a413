"""The decoder of tokens, W₂ GELU(W₁ LN(Z) + b₁) + b₂: `decoder` with gradients, `decode` for inference."""

# No postponed annotations here: custom operators read their signatures from them.

from collections.abc import Iterator, Sequence
from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels import formulas, requirements
from vcnef.accelerate.kernels.beside import Beside
from vcnef.accelerate.kernels.launch import Weights, affine, floats, launch, launch_fetching, pack, tiles_of, two_like
from vcnef.accelerate.kernels.norms import gelu_slope, norm_backward, put_total, standardise
from vcnef.accelerate.kernels.operation import EPS, INFERENCE_TOLERANCE, TRAINING_TOLERANCE, Example, Operation, Sizes
from vcnef.accelerate.kernels.parts import (
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
from vcnef.accelerate.kernels.sums import map_grad, summed
from vcnef.accelerate.kernels.tiles import fetch
from vcnef.accelerate.kernels.weights import Affine, DecoderWeights, Tiling

MOST_CHANNELS = 8
"""Of a decoder with gradients: its kernels write out the last map, channel after channel."""

DECODE_TILING = Tiling(64, 0, 4, 1)


def obstacle(device: torch.device, dtype: torch.dtype, width: int, channels: int) -> str | None:
    """Return why a decoder with gradients cannot run as kernels, or None."""
    if channels > MOST_CHANNELS:
        return f"{channels} channels, where at most {MOST_CHANNELS} are served"
    return requirements.obstacle(device, dtype, width)


def decoder(tokens: Float[Tensor, "*b d"], weights: Weights, eps: float) -> Float[Tensor, "*b c"]:
    """`weights` of the norm, the first and the last map; in fp32."""
    return _decoder(tokens.contiguous(), weights, pack(tokens, weights[:4]), eps)


@torch.library.custom_op("vcnef::norm_and_two_maps", mutates_args=())
def _decoder(tokens: Tensor, weights: list[Tensor], packed: list[Tensor], eps: float) -> Tensor:
    out = _empty_decoder(tokens, weights)
    (channels, width), count = weights[4].shape, tokens.numel() // tokens.shape[-1]
    parts = *affine(weights[:4], packed), Affine(*weights[4:])
    launch(decoder_kernel, tiles_of("decoder", count), tokens, out, *parts, count, eps, CHANNELS=channels, D=width)
    return out


@_decoder.register_fake
def _empty_decoder(tokens: Tensor, weights: list[Tensor], *_: Any) -> Tensor:
    return floats(tokens, *tokens.shape[:-1], len(weights[4]))


@torch.library.custom_op("vcnef::decoder_layer_backward", mutates_args=())
def _decoder_backward(
    grad: Tensor, tokens: Tensor, weights: list[Tensor], packed: list[Tensor], eps: float
) -> list[Tensor]:
    (channels, width), count = weights[4].shape, tokens.numel() // tokens.shape[-1]
    parts = *affine(weights[:4], packed), Affine(*weights[4:])
    programs = tiles_of("decoder_backward", count)
    grad_tokens, standard = two_like(tokens)
    grad_inner, token_sums = torch.empty_like(tokens), floats(tokens, programs, channels * (width + 1))
    launch_fetching(
        decoder_backward_kernel, programs, grad, tokens, *parts, grad_tokens, standard, grad_inner, token_sums,
        count, eps, CHANNELS=channels, D=width,
    )  # fmt: skip
    with Beside(tokens) as beside:
        of_last = beside(summed, token_sums)
        return [grad_tokens, of_last, map_grad(standard, grad_inner)]


@_decoder_backward.register_fake
def _(grad: Tensor, tokens: Tensor, weights: list[Tensor], *_: Any) -> list[Tensor]:
    channels, width = weights[4].shape
    return [torch.empty_like(tokens), floats(tokens, channels * (width + 1)), floats(tokens, width + 1, width)]


def _save_decoder(ctx: Any, inputs: tuple, output: Tensor) -> None:
    tokens, weights, packed, ctx.eps = inputs
    ctx.save_for_backward(tokens, *packed, *weights)


def _differentiate_decoder(ctx: Any, grad: Tensor) -> tuple:
    tokens, packed, *weights = ctx.saved_tensors
    grad_tokens, of_last, of_first = _decoder_backward(grad.contiguous(), tokens, weights, [packed], ctx.eps)
    norm_scale, norm_shift, first_weight, _, last_weight, _ = weights
    channels, width = last_weight.shape
    last, last_bias = of_last.split([channels * width, channels])
    of_standard, first_bias = of_first[:-1], of_first[-1]
    # Sums over tokens of what the first map, which is linear, hands back.
    scale, shift = (first_weight * of_standard).sum(0), (first_weight * first_bias[:, None]).sum(0)
    first = of_standard * norm_scale + first_bias[:, None] * norm_shift
    grads = [scale, shift, first, first_bias, last.view(channels, width), last_bias]
    return grad_tokens, grads, [None], None


_decoder.register_autograd(_differentiate_decoder, setup_context=_save_decoder)


@triton.jit(do_not_specialize=["count", "eps"])
@no_type_check
def decoder_kernel(
    tokens, out, layer_norm, first, last, count, eps,
    CHANNELS: tl.constexpr, D: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
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
def decoder_backward_kernel(
    grad, tokens, layer_norm, first, last, grad_tokens, standard, grad_inner, token_sums, count, eps, ahead,
    CHANNELS: tl.constexpr, D: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
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
    back = norm_backward(back, cast(unit, tl.float32), inverse, scale, feature, D)
    put(grad_tokens + start * D, back, rows, feature, left, D)


@triton.jit
@no_type_check
def _rows(x, factor):
    """Each row times its factor."""
    return [each * factor[:, None] for each in x]


def decode(tokens: Float[Tensor, "*b d"], weights: DecoderWeights) -> Float[Tensor, "*b c"]:
    """Return fields in fp32."""
    width, channels = tokens.shape[-1], weights.channels
    rows = tokens.reshape(-1, width)
    out = rows.new_empty(len(rows), channels, dtype=torch.float32)
    with torch.cuda.device_of(rows):
        decode_kernel[(-(-len(rows) // DECODE_TILING.tokens),)](
            *(rows, out, weights, len(rows)),
            CHANNELS=channels,
            D=width,
            BLOCK_S=DECODE_TILING.tokens,
            **DECODE_TILING.launch,
        )
    return out.view(*tokens.shape[:-1], channels)


@triton.jit(do_not_specialize=["count"])
@no_type_check
def decode_kernel(tokens, out, decoder, count, CHANNELS: tl.constexpr, D: tl.constexpr, BLOCK_S: tl.constexpr):
    """One program per tile of tokens, of whichever sample and time."""
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    token, feature, channel = tl.arange(0, BLOCK_S), columns(D), columns(CHANNELS)
    x = cast(matrix(tokens + start * D, token, feature, count - start, D), tl.float32)
    fields = decode_tile(x, decoder, feature, channel, D, CHANNELS)
    put(out + start * CHANNELS, fields, token, channel, count - start, CHANNELS)


@triton.jit
@no_type_check
def decode_tile(x, decoder, feature, channel, D: tl.constexpr, CHANNELS: tl.constexpr):
    """W₂ GELU(W₁ LN(X) + b₁) + b₂."""
    normed = norm(x, decoder.norm, feature, decoder.eps, D)
    return product(
        gelu(product(normed, decoder.first, feature, feature, D, D)), decoder.second, feature, channel, D, CHANNELS
    )


def decoder_baseline(tokens: Float[Tensor, "*b d"], weights: Weights, eps: float) -> Float[Tensor, "*b c"]:
    return formulas.decode(tokens, *formulas.pairs(weights), eps)


def decode_baseline(tokens: Float[Tensor, "*b d"], weights: DecoderWeights) -> Float[Tensor, "*b c"]:
    return formulas.decode(tokens.float(), *weights)


def draw_decoder(sizes: Sizes, channels: int) -> list[Tensor]:
    return [*sizes.norm(), *sizes.square(), *sizes.linear(sizes.width, channels)]


def pack_decoder(sizes: Sizes, learnt: Sequence[Tensor]) -> DecoderWeights:
    parts = dict(zip(("norm", "first", "second"), zip(learnt[::2], learnt[1::2], strict=True), strict=True))
    return DecoderWeights.pack(sizes.dtype, eps=EPS, **parts)


def decoder_examples(sizes: Sizes) -> Iterator[Example]:
    for channels in sorted({1, sizes.channels}):
        weights = draw_decoder(sizes, channels)
        yield Example(f"to {channels} channels", [sizes.tokens()], weights, lambda x, *w: (x, list(w), EPS))


def decode_examples(sizes: Sizes) -> Iterator[Example]:
    for channels in (sizes.channels, 20):
        tokens, weights = sizes.tokens().to(sizes.between), draw_decoder(sizes, channels)
        yield Example(f"to {channels} channels", [tokens], weights, lambda x, *w: (x, pack_decoder(sizes, w)))


DECODER = Operation(
    "decoder",
    decoder,
    decoder_baseline,
    obstacle,
    decoder_examples,
    differentiable=True,
    tolerance=TRAINING_TOLERANCE,
)
DECODE = Operation(
    "decode",
    decode,
    decode_baseline,
    requirements.obstacle,
    decode_examples,
    differentiable=False,
    tolerance=INFERENCE_TOLERANCE,
)
