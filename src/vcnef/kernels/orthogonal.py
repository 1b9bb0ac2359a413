"""Newton–Schulz steps of a stack of small matrices as one kernel, whose twin is in `plain`.

Of each matrix X, divided by its norm: X ← a X + (b S + c S²) X with S = X Xᵀ, again and again. The library's products
make some fifty launches of it, each shorter than what it takes to begin.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.weights import Tiling, padded, usable

TILING = Tiling(64, 0, 8, 2)
"""Columns at a time."""
MOST_ROWS = 128
"""All rows of S stay in registers."""


def serves(matrices: Float[Tensor, "n rows columns"]) -> bool:
    return usable(matrices.mT, widest=MOST_ROWS)


def orthogonalise(
    matrices: Float[Tensor, "n rows columns"],
    coefficients: tuple[float, float, float],
    steps: int,
    operands: torch.dtype = torch.bfloat16,
) -> Float[Tensor, "n rows columns"]:
    """In the operands' type, with sums in fp32."""
    from vcnef.kernels import orthogonal_triton as kernels

    count, rows, columns = matrices.shape
    out = torch.empty_like(matrices, dtype=operands, memory_format=torch.contiguous_format)
    with torch.cuda.device_of(out):
        kernels.orthogonalise[(count,)](
            *(matrices.contiguous(), out, columns, *coefficients),
            ROWS=rows,
            STEPS=steps,
            BLOCK_ROWS=padded(rows),
            BLOCK_COLUMNS=TILING.tokens,
            **TILING.launch,
        )
    return out
