"""What the kernels are given: weights in their layout, tilings, and whether they can run at all."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

log = logging.getLogger(__name__)

WIDEST = 128
"""Width up to which a tile of tokens stays in registers; cuBLAS serves wider models well."""

WIDEST_NORM = 1024
"""The same where nothing but a norm is computed of it."""

WIDEST_CAPPED = 96
"""Width up to which a tile stays in registers that are capped."""

SPREAD = torch.bfloat16
"""The type in which a head's value is spread over its features: it has the range of fp32, which quotients need."""

SWITCH = "VCNEF_KERNELS"
"""The environment variable that is 0 where plain code is wanted, to compare or to look for a fault."""

CAPABILITIES = {(8, 0), (9, 0), (10, 0), (10, 3)}
"""NVIDIA's data-centre GPUs since A100; others have less shared memory than the tilings take."""


class Affine(NamedTuple):
    """x W + b with W stored `in out`, or scale and shift of a LayerNorm."""

    weight: Tensor
    bias: Tensor


def pack(operands: torch.dtype, parts: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, Affine]:
    """From weight and bias of `nn.Linear`, which stores `out in`, or `nn.LayerNorm`: matrices as operands, the rest in
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
        """For tokens of that width."""
        times = 1 if self.features is None else max(1, padded(width) // self.features)
        return self._replace(warps=self.warps * times)

    @property
    def launch(self) -> dict[str, int | None]:
        return {"num_warps": self.warps, "num_stages": self.stages, "maxnreg": self.registers}


def first_for(width: int, tilings: tuple[Tiling, ...], points: int = 0) -> Tiling:
    """The first tiling that serves a width, among those whose tiles reach least beyond so many points."""
    serving = [each for each in tilings if each.registers is None or width <= WIDEST_CAPPED]
    return min(serving, key=lambda each: -points % each.tokens)


class Heads(NamedTuple):
    """Which features belong to a head: maps of zeros and ones from features to heads, each of them twice, and back."""

    gather: Tensor
    spread: Tensor


@cache
def head_maps(width: int, heads: int, dtype: torch.dtype, device: torch.device) -> Heads:
    """For operands of that type."""
    slot = torch.arange(padded(2 * heads), device=device)
    head = torch.arange(width, device=device) // (width // heads)
    member = (head[:, None] == slot % heads) & (slot < 2 * heads)
    return Heads(member.to(dtype), member.mT.contiguous().to(SPREAD))


def switched_off() -> bool:
    return os.environ.get(SWITCH) == "0"


def usable(tokens: Tensor, heads: int = 1, widest: int = WIDEST) -> bool:
    """Whether the kernels can serve these tokens here; if not, the log says why, once, at level debug."""
    return tokens.numel() > 0 and _serves(tokens.device, tokens.dtype, tokens.shape[-1], heads, widest)


@torch.compiler.assume_constant_result
def _serves(device: torch.device, dtype: torch.dtype, width: int, heads: int, widest: int) -> bool:
    reason = _obstacle(device, dtype, width, heads, widest)
    if reason is not None:
        _say_once(reason)
    return reason is None


@cache
def _say_once(reason: str) -> None:
    log.debug("Plain code, no fused kernels: %s.", reason)


def padded(size: int) -> int:
    """The power of two that holds `size`, and the least that tensor cores take."""
    return max(16, 1 << (size - 1).bit_length())


def _obstacle(device: torch.device, dtype: torch.dtype, width: int, heads: int, widest: int) -> str | None:
    if switched_off():
        return f"{SWITCH} is 0"
    if (missing := lack(device)) is not None:
        return missing
    if dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return f"tokens are {dtype}"
    if width > widest or width % heads:
        return f"width {width} with {heads} heads, where at most {widest} and a multiple of the heads is served"
    return None


@cache
def lack(device: torch.device) -> str | None:
    """What a device lacks for the kernels, found out once: blocks ask for every chunk."""
    if device.type != "cuda":
        return f"tokens are on {device.type}, not on a GPU"
    capability = torch.cuda.get_device_capability(device)
    if torch.version.hip is not None or capability not in CAPABILITIES:
        return f"a GPU of compute capability {capability}, where one of {sorted(CAPABILITIES)} by NVIDIA is served"
    return None if find_spec("triton") else "Triton is not installed"
