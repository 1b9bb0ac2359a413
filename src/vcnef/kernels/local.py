"""Mixing of neighbours in rows of tokens as a kernel, whose twin is in `plain`: out_i = Σ_k w_k ∘ z_(i + o_k)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.kernels.weights import Tiling

LOCAL_TILINGS = (Tiling(64, 0, 4, 1), Tiling(32, 0, 4, 1), Tiling(128, 0, 8, 1))
"""The tilings worth trying, the one in use first."""


class Stencil(NamedTuple):
    """Offsets o in points, weights w in fp32; beyond its ends a row goes on from the other, or with its last token."""

    offsets: Int[Tensor, " k"]
    weight: Float[Tensor, "k d"]
    periodic: bool


def mix_neighbours(
    tokens: Float[Tensor, "*b s d"], stencil: Stencil, operands: torch.dtype, tiling: Tiling | None = None
) -> Float[Tensor, "*b s d"]:
    """In the operands' type, summed in fp32."""
    from vcnef.kernels import local_triton as kernels

    points, width = tokens.shape[-2:]
    rows = tokens.reshape(-1, points, width)
    tiling = tiling or LOCAL_TILINGS[0]
    out = torch.empty_like(rows, dtype=operands, memory_format=torch.contiguous_format)
    with torch.cuda.device_of(rows):
        kernels.mix_neighbours[(len(rows) * -(-points // tiling.tokens),)](
            *(rows.contiguous(), out, stencil.offsets, stencil.weight, points),
            TAPS=len(stencil.offsets),
            PERIODIC=stencil.periodic,
            D=width,
            BLOCK_S=tiling.tokens,
            **tiling.launch,
        )
    return out.view(tokens.shape)
