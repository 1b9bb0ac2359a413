"""Mixing of neighbours on grids of tokens as a kernel, whose twin is in `plain`: out_i = Σ_k w_k ∘ z_(i + o_k)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.weights import Tiling

IN_FLIGHT = 64 * 96 * 7
"""Numbers that a program of four warps loads before it adds them up: more would not stay in registers."""

MOST_TAPS = 64
"""Of a stencil that kernels serve: the code of every tap is written out."""


class Stencil(NamedTuple):
    """Of a grid with these sides in tokens: offsets o along its axes, weights w.

    Beyond its ends a grid goes on from the other one, or with its last tokens.
    """

    sides: tuple[int, ...]
    offsets: tuple[tuple[int, ...], ...]
    weight: Float[Tensor, "k d"]
    periodic: bool

    def in_volume(self) -> Stencil:
        """Of the same grid with three axes, which is what kernels know."""
        missing = 3 - len(self.sides)
        offsets = tuple((0,) * missing + offset for offset in self.offsets)
        return self._replace(sides=(1,) * missing + self.sides, offsets=offsets)

    def table(self) -> Tensor:
        """The offsets where the weights are."""
        return _on_device(self.offsets, self.weight.device)


def mix_neighbours(
    tokens: Float[Tensor, "*b s d"], stencils: Sequence[Stencil], operands: torch.dtype
) -> Float[Tensor, "*b s d"]:
    """In the operands' type, summed in fp32; the stencils are those of the grids whose tokens stand in one row."""
    from vcnef.kernels import local_triton as kernels

    points, width = tokens.shape[-2:]
    tokens = tokens.contiguous()
    out = torch.empty_like(tokens, dtype=operands)
    with torch.cuda.device_of(tokens):
        for first, stencil in enumerate_volumes(stencils):
            tiling = local_tiling(*stencil.weight.shape)
            tiles = -(-prod(stencil.sides) // tiling.tokens)
            kernels.mix_neighbours[(tokens.numel() // (points * width) * tiles,)](
                *(tokens, out, stencil.table(), stencil.weight, points, first, *stencil.sides),
                TAPS=len(stencil.offsets),
                PERIODIC=stencil.periodic,
                D=width,
                BLOCK_S=tiling.tokens,
                **tiling.launch,
            )
    return out


def local_tiling(taps: int, width: int) -> Tiling:
    """Fewer tokens of more features and taps, but from 8 to 64."""
    fit = IN_FLIGHT // (taps * width)
    return Tiling(1 << min(max(fit.bit_length() - 1, 3), 6), 0, 4, 1)


def enumerate_volumes(stencils: Sequence[Stencil]) -> Iterator[tuple[int, Stencil]]:
    """Each as one of a grid with three axes, and the place of this grid's first token in the row."""
    first = 0
    for stencil in stencils:
        yield first, stencil.in_volume()
        first += prod(stencil.sides)


@cache
def _on_device(offsets: tuple[tuple[int, ...], ...], device: torch.device) -> Tensor:
    return torch.tensor(offsets, dtype=torch.int32, device=device)
