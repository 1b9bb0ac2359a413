"""Mixing of neighbours in periodic rows of tokens, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.launch import floats, launch, summed, tiles_of

FEATURES = 32
"""Of a program that sums the gradients of weights: those of all taps stay in registers."""


def neighbours(
    tokens: Float[Tensor, "*b s d"], weight: Float[Tensor, "k d"], offsets: list[int]
) -> Float[Tensor, "*b s d"]:
    return _neighbours(tokens.contiguous(), weight, offsets)


@torch.library.custom_op("vcnef::neighbours_layer", mutates_args=())
def _neighbours(tokens: Tensor, weight: Tensor, offsets: list[int]) -> Tensor:
    return _mixed(tokens, weight, offsets)


@_neighbours.register_fake
def _(tokens: Tensor, weight: Tensor, offsets: list[int]) -> Tensor:
    return torch.empty_like(tokens)


@torch.library.custom_op("vcnef::neighbours_layer_backward", mutates_args=())
def _neighbours_backward(grad: Tensor, tokens: Tensor, weight: Tensor, offsets: list[int]) -> tuple[Tensor, Tensor]:
    from vcnef.kernels.layers import neighbours_triton as kernels

    points, (taps, width) = tokens.shape[-2], weight.shape
    rows = tokens.numel() // (points * width)
    weight_sums = floats(tokens, rows, taps, width)
    programs, places = rows * -(-width // FEATURES), _on_device(tuple(offsets), tokens.device)
    launch(
        kernels.neighbours_backward, programs, grad, tokens, weight_sums, places, points,
        TAPS=taps, BLOCK_TAPS=1 << (taps - 1).bit_length(), D=width, BLOCK_D=FEATURES,
    )  # fmt: skip
    # z_(i + o) reaches out_i, so what comes back to z_j is from j − o.
    grad_tokens = _mixed(grad, weight, [-offset for offset in offsets])
    return grad_tokens, summed(weight_sums.flatten(1)).view(taps, width)


@_neighbours_backward.register_fake
def _(grad: Tensor, tokens: Tensor, weight: Tensor, offsets: list[int]) -> tuple[Tensor, Tensor]:
    return torch.empty_like(tokens), torch.empty_like(weight)


def _mixed(tokens: Tensor, weight: Tensor, offsets: list[int]) -> Tensor:
    from vcnef.kernels import local_triton as kernels

    points, (taps, width) = tokens.shape[-2], weight.shape
    out = torch.empty_like(tokens)
    programs = tokens.numel() // (points * width) * tiles_of("mix_neighbours", points)
    places = _on_device(tuple(offsets), tokens.device)
    launch(kernels.mix_neighbours, programs, tokens, out, places, weight, points, TAPS=taps, PERIODIC=True, D=width)
    return out


@cache
def _on_device(offsets: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(offsets, dtype=torch.int32, device=device)


def _save(ctx: Any, inputs: tuple, output: Tensor) -> None:
    tokens, weight, ctx.offsets = inputs
    ctx.save_for_backward(tokens, weight)


def _differentiate(ctx: Any, grad: Tensor) -> tuple:
    return *_neighbours_backward(grad.contiguous(), *ctx.saved_tensors, ctx.offsets), None


_neighbours.register_autograd(_differentiate, setup_context=_save)
