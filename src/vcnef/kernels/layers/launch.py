"""What the layers share: how kernels are started, weights handed over, and sums over tokens taken."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from vcnef.kernels.weights import Affine

TILES = {
    "mix": (64, 8, 128),
    "attention": (64, 4, 168),
    "attention_backward": (64, 4, None),
    "mixing_backward": (128, 4, None),
    "keys_backward": (64, 4, 168),
    "modulation": (64, 4, 168),
    "modulation_backward": (64, 4, None),
    "mlp": (128, 8, 128),
    "mlp_backward": (64, 4, None),
}
"""Tokens of a tile, warps, and the most registers of a thread, as measured on an H200 at width 96."""
HIDDEN = 64
"""Hidden features at a time."""

Weights = list[Tensor]
"""Weight and bias, weight and bias, … of `nn.Linear` and `nn.LayerNorm`, as they are stored there."""


def launch(kernel: Any, programs: int, *given: Any, **sizes: Any) -> None:
    """Start a kernel in the tiles that suit it."""
    tokens, warps, registers = TILES[kernel.__name__]
    tile = {"BLOCK_S": tokens, "num_warps": warps, "num_stages": 2, "maxnreg": registers}
    with torch.cuda.device_of(given[0]):
        kernel[(programs,)](*given, **sizes, **tile)


def tiles_of(name: str, points: int) -> int:
    return -(-points // TILES[name][0])


def pack(tokens: Tensor, weights: list[Tensor]) -> list[Tensor]:
    """Matrices as operands, stored `in out`; once for both passes."""
    return [each.detach().to(tokens.dtype).mT.contiguous() for each in weights if each.ndim == 2]


def affine(weights: list[Tensor], packed: list[Tensor]) -> list[Affine]:
    matrices = iter(packed)
    pairs = zip(weights[::2], weights[1::2], strict=True)
    return [Affine(next(matrices) if weight.ndim == 2 else weight, bias) for weight, bias in pairs]


def weight_grad(inputs: Tensor, grad: Tensor) -> Tensor:
    """Σ over tokens of grad inputsᵀ, as `nn.Linear` stores its weight, in fp32."""
    rows, columns = grad.flatten(0, -2).mT, inputs.flatten(0, -2)
    return torch.mm(rows, columns, out_dtype=torch.float32) if grad.is_cuda else rows @ columns


def summed(partial: Tensor) -> Tensor:
    """Σ over programs; as a product, which is faster than a sum over rows."""
    return _ones(len(partial), partial.device) @ partial


@cache
def _ones(count: int, device: torch.device) -> Tensor:
    return torch.ones(count, device=device)


def like(x: Tensor | None, tokens: Tensor) -> Tensor | None:
    return None if x is None else x.to(tokens.dtype).contiguous()


def two_like(tokens: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(tokens), torch.empty_like(tokens)


def floats(like: Tensor, *shape: int) -> Tensor:
    return like.new_empty(shape, dtype=torch.float32)
