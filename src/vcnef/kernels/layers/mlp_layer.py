"""The MLP with its norm, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.launch import (
    TILINGS,
    Weights,
    affine,
    floats,
    launch,
    pack,
    summed,
    tiles_of,
    two_like,
    weight_grad,
)
from vcnef.kernels.weights import padded


def mlp(tokens: Float[Tensor, "*b d"], weights: Weights, activation: str, eps: float) -> Float[Tensor, "*b d"]:
    """`weights` of widen, narrow and the norm."""
    return _mlp(tokens.contiguous(), weights, pack(tokens, weights), activation, eps)[0]


@torch.library.custom_op("vcnef::mlp_layer", mutates_args=())
def _mlp(
    tokens: Tensor, weights: list[Tensor], packed: list[Tensor], activation: str, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    from vcnef.kernels.layers import mlp_triton as kernels

    found = _empty_mlp(tokens)
    count = found[-1].numel()
    sizes = _mlp_sizes("mlp", weights, activation)
    launch(kernels.mlp, tiles_of("mlp", count), tokens, *found, *affine(weights, packed), count, eps, **sizes)
    return found


@_mlp.register_fake
def _empty_mlp(tokens: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return *two_like(tokens), floats(tokens, *tokens.shape[:-1])


@torch.library.custom_op("vcnef::mlp_layer_backward", mutates_args=())
def _mlp_backward(
    grad: Tensor,
    tokens: Tensor,
    standard: Tensor,
    inverse: Tensor,
    weights: list[Tensor],
    packed: list[Tensor],
    activation: str,
) -> list[Tensor]:
    from vcnef.kernels.layers import mlp_triton as kernels

    hidden, width = weights[0].shape
    count = inverse.numel()
    programs = tiles_of("mlp_backward", count)
    grad_tokens, grad_total = two_like(tokens)
    inner, grad_inner = (tokens.new_empty(count, hidden) for _ in range(2))
    token_sums = floats(tokens, programs, 3 * width + hidden)
    launch(
        kernels.mlp_backward, programs, grad, tokens, standard, inverse, *affine(weights, packed), grad_tokens,
        grad_total, inner, grad_inner, token_sums, count, **_mlp_sizes("mlp_backward", weights, activation),
    )  # fmt: skip
    return [grad_tokens, summed(token_sums), weight_grad(tokens, grad_inner), weight_grad(inner, grad_total)]


@_mlp_backward.register_fake
def _(grad: Tensor, tokens: Tensor, standard: Tensor, inverse: Tensor, weights: list[Tensor], *_: Any) -> list[Tensor]:
    widen, widen_bias, narrow, narrow_bias, *_ = map(torch.empty_like, weights)
    return [torch.empty_like(tokens), floats(tokens, 3 * len(narrow_bias) + len(widen_bias)), widen, narrow]


def _mlp_sizes(kernel: str, weights: list[Tensor], activation: str) -> dict[str, Any]:
    hidden, width = weights[0].shape
    at_a_time = min(TILINGS[kernel].hidden, padded(hidden))
    return {"D": width, "HIDDEN": hidden, "GELU": activation == "gelu", "BLOCK_H": at_a_time}


def _save_mlp(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    tokens, weights, packed, ctx.activation, _ = inputs
    ctx.save_for_backward(tokens, *output[1:], *packed, *weights)


def _differentiate_mlp(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    tokens, standard, inverse, *saved = ctx.saved_tensors
    packed, weights = saved[:2], saved[2:]
    found = _mlp_backward(grad.contiguous(), tokens, standard, inverse, weights, packed, ctx.activation)
    grad_tokens, sums, widen, narrow = found
    hidden, width = widen.shape
    scale, shift, narrow_bias, widen_bias = sums.split([width, width, width, hidden])
    return grad_tokens, [widen, widen_bias, narrow, narrow_bias, scale, shift], [None] * 2, None, None


_mlp.register_autograd(_differentiate_mlp, setup_context=_save_mlp)
