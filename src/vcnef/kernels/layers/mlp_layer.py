"""The MLP with its norm, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.beside import Beside
from vcnef.kernels.layers.launch import (
    TILINGS,
    Weights,
    affine,
    floats,
    launch,
    launch_fetching,
    pack,
    shares_of,
    tiles_of,
    two_like,
)
from vcnef.kernels.layers.residual_layer import through_norm
from vcnef.kernels.layers.sums import summed
from vcnef.kernels.weights import Affine, padded


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


@torch.library.custom_op("vcnef::mlp_layer_gradients", mutates_args=())
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

    count = inverse.numel()
    *maps, norm = affine(weights, packed)
    with Beside(tokens) as beside:
        grad_total, token_sums = through_norm(grad, standard, inverse, norm)
        map_sums = beside(
            _learn_maps, tokens, grad_total, maps, _mlp_sizes("mlp_weights_backward", weights, activation)
        )
        norm_sums = beside(summed, token_sums)
        grad_tokens = torch.empty_like(tokens)
        launch_fetching(
            kernels.mlp_backward, tiles_of("mlp_backward", count), grad_total, tokens, *maps, grad_tokens, count,
            **_mlp_sizes("mlp_backward", weights, activation),
        )  # fmt: skip
        return [grad_tokens, norm_sums, map_sums]


def _learn_maps(tokens: Tensor, grad_total: Tensor, maps: list[Affine], sizes: dict[str, Any]) -> Tensor:
    """The gradients of the widening weight, the narrowing one and the widening bias, one after the other."""
    from vcnef.kernels.layers import mlp_triton as kernels

    hidden, width = sizes["HIDDEN"], sizes["D"]
    count, chunks = tokens.numel() // width, -(-hidden // sizes["BLOCK_H"])
    tiles = tiles_of("mlp_weights_backward", count)
    parts, share = shares_of("mlp_weights_backward", tiles, tokens.device, chunks)
    sums = floats(tokens, parts, hidden * (2 * width + 1))
    launch(
        kernels.mlp_weights_backward, parts * chunks, tokens, grad_total, *maps, sums, count, share, **sizes
    )  # fmt: skip
    return summed(sums)


@_mlp_backward.register_fake
def _(grad: Tensor, tokens: Tensor, standard: Tensor, inverse: Tensor, weights: list[Tensor], *_: Any) -> list[Tensor]:
    hidden, width = weights[0].shape
    return [torch.empty_like(tokens), floats(tokens, 3 * width), floats(tokens, hidden * (2 * width + 1))]


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
    grad_tokens, sums, maps = found
    hidden, width = weights[0].shape
    scale, shift, narrow_bias = sums.chunk(3)
    widen, narrow, widen_bias = maps.split([hidden * width, hidden * width, hidden])
    grads = [widen.view(hidden, width), widen_bias, narrow.view(width, hidden), narrow_bias, scale, shift]
    return grad_tokens, grads, [None] * 2, None, None


_mlp.register_autograd(_differentiate_mlp, setup_context=_save_mlp)
