"""The decoder of tokens, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.beside import Beside
from vcnef.kernels.layers.launch import Weights, affine, floats, launch, launch_fetching, pack, tiles_of, two_like
from vcnef.kernels.layers.sums import map_grad, summed
from vcnef.kernels.weights import Affine


def decoder(tokens: Float[Tensor, "*b d"], weights: Weights, eps: float) -> Float[Tensor, "*b c"]:
    """`weights` of the norm, the first and the last map; in fp32."""
    return _decoder(tokens.contiguous(), weights, pack(tokens, weights[:4]), eps)


@torch.library.custom_op("vcnef::norm_and_two_maps", mutates_args=())
def _decoder(tokens: Tensor, weights: list[Tensor], packed: list[Tensor], eps: float) -> Tensor:
    from vcnef.kernels.layers import decoder_triton as kernels

    out = _empty_decoder(tokens, weights)
    (channels, width), count = weights[4].shape, tokens.numel() // tokens.shape[-1]
    parts = *affine(weights[:4], packed), Affine(*weights[4:])
    launch(kernels.decoder, tiles_of("decoder", count), tokens, out, *parts, count, eps, CHANNELS=channels, D=width)
    return out


@_decoder.register_fake
def _empty_decoder(tokens: Tensor, weights: list[Tensor], *_: Any) -> Tensor:
    return floats(tokens, *tokens.shape[:-1], len(weights[4]))


@torch.library.custom_op("vcnef::decoder_layer_backward", mutates_args=())
def _decoder_backward(
    grad: Tensor, tokens: Tensor, weights: list[Tensor], packed: list[Tensor], eps: float
) -> list[Tensor]:
    from vcnef.kernels.layers import decoder_triton as kernels

    (channels, width), count = weights[4].shape, tokens.numel() // tokens.shape[-1]
    parts = *affine(weights[:4], packed), Affine(*weights[4:])
    programs = tiles_of("decoder_backward", count)
    grad_tokens, standard = two_like(tokens)
    grad_inner, token_sums = torch.empty_like(tokens), floats(tokens, programs, channels * (width + 1))
    launch_fetching(
        kernels.decoder_backward, programs, grad, tokens, *parts, grad_tokens, standard, grad_inner, token_sums,
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
