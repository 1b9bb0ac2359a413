"""What kernels are given: weights in their layout, and tilings. Nothing here imports Triton."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from vcnef.accelerate.kernels.requirements import WIDEST_CAPPED

SPREAD = torch.bfloat16
"""The type in which a head's value is spread over its features: it has the range of fp32, which quotients need."""


class Affine(NamedTuple):
    """x W + b with W stored `in out`, or scale and shift of a LayerNorm."""

    weight: Tensor
    bias: Tensor


def pack(operands: torch.dtype, parts: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, Affine]:
    """Pack weight and bias of `nn.Linear`, which stores `out in`, or `nn.LayerNorm`: matrices as operands, the rest in
    fp32.

    Matrices of one shape are turned together: to ask for it takes the host longer than the GPU to do it.
    """
    alike: dict[torch.Size, list[str]] = {}
    for name, (weight, _) in parts.items():
        alike.setdefault(weight.shape, []).append(name)
    packed = {}
    for shape, names in alike.items():
        weights = [parts[name][0] for name in names]
        if len(shape) == 2:
            # A copy in any case: weights go on learning.
            weights = torch.stack(weights).mT.to(operands, copy=True, memory_format=torch.contiguous_format).unbind()
        for name, weight in zip(names, weights, strict=True):
            packed[name] = Affine(weight if len(shape) == 2 else weight.float(), parts[name][1].float())
    return packed


@dataclass(frozen=True)
class BlockWeights:
    """What a block has learnt. A transformer block has no `scale`, `out` and `modulation_norm`."""

    query: Affine
    key: Affine
    value: Affine
    join: Affine
    attention_norm: Affine
    widen: Affine
    narrow: Affine
    mlp_norm: Affine
    heads: int
    activation: str
    eps: float
    scale: Affine | None = None
    out: Affine | None = None
    modulation_norm: Affine | None = None

    @classmethod
    def pack(
        cls, operands: torch.dtype, *, heads: int, activation: str, eps: float, **parts: tuple[Tensor, Tensor]
    ) -> BlockWeights:
        return cls(heads=heads, activation=activation, eps=eps, **pack(operands, parts))

    @property
    def operands(self) -> torch.dtype:
        return self.key.weight.dtype


class DecoderWeights(NamedTuple):
    """LN, a linear map to the same width, GELU, and one to the channels."""

    norm: Affine
    first: Affine
    second: Affine
    eps: float

    @classmethod
    def pack(cls, operands: torch.dtype, *, eps: float, **parts: tuple[Tensor, Tensor]) -> DecoderWeights:
        return cls(eps=eps, **pack(operands, parts))

    @property
    def channels(self) -> int:
        return len(self.second.bias)


class Tiling(NamedTuple):
    """How a kernel cuts its work: tokens of a tile, hidden features at a time, warps, depth of the pipelined loop.

    `registers` is the most a thread may have, where the compiler would take more: tiles then share a multiprocessor.
    `together` is how many programs do, where each takes tile after tile. `features` are those that the warps are for,
    where wider tokens have as many more.
    """

    tokens: int
    hidden: int
    warps: int
    stages: int
    registers: int | None = None
    together: int = 1
    features: int | None = None

    def widened(self, width: int) -> Tiling:
        """Return the tiling for tokens of that width."""
        times = 1 if self.features is None else max(1, padded(width) // self.features)
        return self._replace(warps=self.warps * times)

    @property
    def launch(self) -> dict[str, int | None]:
        return {"num_warps": self.warps, "num_stages": self.stages, "maxnreg": self.registers}


def first_for(width: int, tilings: tuple[Tiling, ...], points: int = 0) -> Tiling:
    """Return the first tiling that serves a width, among those whose tiles reach least beyond so many points."""
    serving = [each for each in tilings if each.registers is None or width <= WIDEST_CAPPED]
    return min(serving, key=lambda each: -points % each.tokens)


class Heads(NamedTuple):
    """Which features belong to a head: maps of zeros and ones from features to heads, each of them twice, and back."""

    gather: Tensor
    spread: Tensor


@cache
def head_maps(width: int, heads: int, dtype: torch.dtype, device: torch.device) -> Heads:
    """Return the maps of heads for operands of that type."""
    slot = torch.arange(padded(2 * heads), device=device)
    head = torch.arange(width, device=device) // (width // heads)
    member = (head[:, None] == slot % heads) & (slot < 2 * heads)
    return Heads(member.to(dtype), member.mT.contiguous().to(SPREAD))


def padded(size: int) -> int:
    """Return the power of two that holds `size`, and the least that tensor cores take."""
    return max(16, 1 << (size - 1).bit_length())
