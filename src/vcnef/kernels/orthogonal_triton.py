"""The kernel of `orthogonal`, which says what it computes; imported only where it runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.assembler import avoid_broken

avoid_broken()


@triton.jit
@no_type_check
def orthogonalise(
    matrices,
    out,
    columns,
    a,
    b,
    c,
    ROWS: tl.constexpr,
    STEPS: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
):
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
