"""Sums over tokens and over programs, which the gradients of weights are."""

from functools import cache
from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels.launch import floats, launch, shares_of, stages_of, tiles_of
from vcnef.accelerate.kernels.norms import ALIKE, ones, put_column
from vcnef.accelerate.kernels.parts import as_columns, columns, dot, matrix, put, zeros
from vcnef.accelerate.kernels.tiles import own_tiles
from vcnef.accelerate.kernels.weights import padded

FEWEST_TILES = 4
"""Of a program that multiplies: with fewer, its own sum takes longer to add to those of others than to make."""


def weight_grads(inputs: Float[Tensor, "k *s d"], grads: Float[Tensor, "k *s d"]) -> Float[Tensor, "k d d"]:
    """Σ over tokens of grad inputsᵀ for each pair, as `nn.Linear` stores its weight, in fp32."""
    return _products(inputs, grads, biased=False)


def map_grad(inputs: Float[Tensor, "*s d"], grad: Float[Tensor, "*s d"]) -> Float[Tensor, "weight_and_bias d"]:
    """Return the same for one pair; the last row is the sum of `grad`, the gradient of a bias."""
    return _products(inputs.unsqueeze(0), grad.unsqueeze(0), biased=True)[0]


def _products(inputs: Tensor, grads: Tensor, *, biased: bool) -> Tensor:
    """By a kernel of our own: the GPU's libraries are not made for so many tokens of so few features."""
    pairs, width = len(inputs), inputs.shape[-1]
    count = inputs.numel() // (pairs * width)
    tiles = tiles_of("products", count)
    share = max(FEWEST_TILES, shares_of("products", tiles, inputs.device, pairs)[1])
    parts = -(-tiles // share)
    sums = floats(inputs, parts, pairs * width * (width + biased))
    launch(
        products_kernel, parts * pairs, inputs, grads, sums, count, pairs, tiles, share,
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


@triton.jit(do_not_specialize=["count", "pairs", "tiles", "share"])
@no_type_check
def products_kernel(
    inputs, grads, sums, count, pairs, tiles, share,
    BIASED: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_S: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Σ grad inputsᵀ over a share of the tiles, of one of the pairs, and Σ grad after it where there is a bias; `sums`
    has all pairs of the first share first."""
    pair, part = tl.program_id(0).to(tl.int64) % pairs, tl.program_id(0) // pairs
    rows, feature, whole = tl.arange(0, BLOCK_S), columns(D), tl.arange(0, BLOCK_D)
    all_tokens = ones(BLOCK_S, grads.dtype.element_ty)
    of_weight, of_bias = zeros(BLOCK_D, feature), zeros(BLOCK_D, columns(ALIKE))
    begin, end = own_tiles(part, tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES):
        start = tile * BLOCK_S
        left, at = count - start, (pair * count + start) * D
        g = as_columns(matrix(grads + at, rows, (whole,), left, D))[0]
        of_weight = dot(g, (matrix(inputs + at, rows, feature, left, D),), of_weight)
        if BIASED:
            of_bias = dot(g, all_tokens, of_bias)
    sums += tl.program_id(0).to(tl.int64) * D * (D + BIASED)
    put(sums, of_weight, whole, feature, D, D)
    if BIASED:
        put_column(sums + D * D, of_bias, whole, D)
