"""Sums over tokens and over programs, which the gradients of weights are."""

from __future__ import annotations

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.launch import floats, launch, shares_of, stages_of, tiles_of
from vcnef.kernels.weights import padded

FEWEST_TILES = 4
"""Of a program that multiplies: with fewer, its own sum takes longer to add to those of others than to make."""


def weight_grads(inputs: Float[Tensor, "k *s d"], grads: Float[Tensor, "k *s d"]) -> Float[Tensor, "k d d"]:
    """Σ over tokens of grad inputsᵀ for each pair, as `nn.Linear` stores its weight, in fp32."""
    return _products(inputs, grads, biased=False)


def map_grad(inputs: Float[Tensor, "*s d"], grad: Float[Tensor, "*s d"]) -> Float[Tensor, "weight_and_bias d"]:
    """The same of one pair, and as its last row the sum of the gradients, which is that of a bias."""
    return _products(inputs.unsqueeze(0), grad.unsqueeze(0), biased=True)[0]


def _products(inputs: Tensor, grads: Tensor, *, biased: bool) -> Tensor:
    """By a kernel of our own: those of the GPU's libraries are not made for so many tokens of so few features."""
    from vcnef.kernels.layers import sums_triton as kernels

    pairs, width = len(inputs), inputs.shape[-1]
    count = inputs.numel() // (pairs * width)
    tiles = tiles_of("products", count)
    share = max(FEWEST_TILES, shares_of("products", tiles, inputs.device, pairs)[1])
    parts = -(-tiles // share)
    sums = floats(inputs, parts, pairs * width * (width + biased))
    launch(
        kernels.products, parts * pairs, inputs, grads, sums, count, pairs, tiles, share,
        BIASED=biased, D=width, BLOCK_D=padded(width), STAGES=stages_of("products", width),
    )  # fmt: skip
    return summed(sums).view(pairs, width + biased, width)


def summed(partial: Tensor) -> Tensor:
    """Σ over programs; as a product, which is faster than a sum over rows."""
    return _ones(len(partial), partial.device) @ partial


@cache
def _ones(count: int, device: torch.device) -> Tensor:
    """Sent from the host, which waits for it: whichever stream asks next finds it."""
    return torch.ones(count).to(device)
