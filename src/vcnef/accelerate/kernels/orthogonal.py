"""Newton–Schulz steps of a stack of small matrices as one kernel; the baseline is `newton_schulz`.

Each matrix X, divided by its norm, becomes a X + (b S + c S²) X with S = X Xᵀ, again and again. The library's products
make some fifty launches of it, each shorter than what it takes to begin.
"""

from collections.abc import Iterator
from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels import requirements
from vcnef.accelerate.kernels.assembler import avoid_broken
from vcnef.accelerate.kernels.newton_schulz import newton_schulz
from vcnef.accelerate.kernels.operation import Example, Operation, Sizes
from vcnef.accelerate.kernels.weights import Tiling, padded

avoid_broken()

TILING = Tiling(64, 0, 8, 2)
"""Columns at a time."""

MOST_ROWS = 128
"""Of a matrix: all rows of S stay in registers."""


def obstacle(device: torch.device, dtype: torch.dtype, width: int) -> str | None:
    """Return why the kernel cannot serve matrices with so many rows, or None."""
    return requirements.obstacle(device, dtype, width, widest=MOST_ROWS)


def orthogonalise(
    matrices: Float[Tensor, "n rows columns"],
    coefficients: tuple[float, float, float],
    steps: int,
    operands: torch.dtype = torch.bfloat16,
) -> Float[Tensor, "n rows columns"]:
    """Orthogonalise in the operands' type, with sums in fp32."""
    count, rows, columns = matrices.shape
    out = torch.empty_like(matrices, dtype=operands, memory_format=torch.contiguous_format)
    with torch.cuda.device_of(out):
        orthogonalise_kernel[(count,)](
            *(matrices.contiguous(), out, columns, *coefficients),
            ROWS=rows,
            STEPS=steps,
            BLOCK_ROWS=padded(rows),
            BLOCK_COLUMNS=TILING.tokens,
            **TILING.launch,
        )
    return out


@triton.jit
@no_type_check
def orthogonalise_kernel(
    matrices, out, columns, a, b, c,
    ROWS: tl.constexpr, STEPS: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):  # fmt: skip
    """One program per matrix. X lies in `out` between the passes over its columns."""
    operands = out.dtype.element_ty
    start = tl.program_id(0).to(tl.int64) * ROWS * columns
    matrices, out = matrices + start, out + start
    row, column = tl.arange(0, BLOCK_ROWS), tl.arange(0, BLOCK_COLUMNS)
    place = row[:, None] * columns + column[None, :]

    squares = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), tl.float32)
    for first in range(0, columns, BLOCK_COLUMNS):
        inside = (row < ROWS)[:, None] & (first + column < columns)[None, :]
        x = tl.load(matrices + first + place, mask=inside, other=0.0)
        squares += x * x
    scale = 1.0 / tl.maximum(tl.sqrt(tl.sum(tl.sum(squares, 1), 0)), 1e-7)
    for first in range(0, columns, BLOCK_COLUMNS):
        inside = (row < ROWS)[:, None] & (first + column < columns)[None, :]
        x = tl.load(matrices + first + place, mask=inside, other=0.0)
        tl.store(out + first + place, (x * scale).to(operands), mask=inside)

    for _ in range(STEPS):
        tl.debug_barrier()
        square = tl.zeros((BLOCK_ROWS, BLOCK_ROWS), tl.float32)
        for first in range(0, columns, BLOCK_COLUMNS):
            inside = (row < ROWS)[:, None] & (first + column < columns)[None, :]
            x = tl.load(out + first + place, mask=inside, other=0.0)
            square = tl.dot(x, tl.trans(x), square)
        half = square.to(operands)
        polynomial = (b * half.to(tl.float32) + c * tl.dot(half, half)).to(operands)
        tl.debug_barrier()
        for first in range(0, columns, BLOCK_COLUMNS):
            inside = (row < ROWS)[:, None] & (first + column < columns)[None, :]
            x = tl.load(out + first + place, mask=inside, other=0.0)
            moved = a * x.to(tl.float32) + tl.dot(polynomial, x)
            tl.store(out + first + place, moved.to(operands), mask=inside)


def orthogonalise_baseline(
    matrices: Float[Tensor, "n rows columns"],
    coefficients: tuple[float, float, float],
    steps: int,
    operands: torch.dtype = torch.bfloat16,
) -> Float[Tensor, "n rows columns"]:
    return newton_schulz(matrices, coefficients, steps).to(operands)


def examples(sizes: Sizes) -> Iterator[Example]:
    """Yield matrices with fewer columns than the kernel takes at a time, and with more."""
    coefficients = 3.4445, -4.7750, 2.0315
    for columns in (sizes.width, 70 + 3 * sizes.width):
        scale = torch.logspace(-3, 3, sizes.batch, device=sizes.device)[:, None, None]
        matrices = sizes.draw(sizes.batch, sizes.width, columns) * scale
        yield Example(f"{columns} columns", [matrices], [], lambda x: (x, coefficients, 5, sizes.dtype))


ORTHOGONALISE = Operation(
    "orthogonalise",
    orthogonalise,
    orthogonalise_baseline,
    obstacle,
    examples,
    differentiable=False,
    # On a GPU both are rough, each in its own way.
    tolerance={torch.float32: 1e-4, torch.bfloat16: 6e-2},
)
