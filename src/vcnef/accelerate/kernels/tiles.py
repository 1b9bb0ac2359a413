"""Which tiles of tokens a program takes, and how it has tiles of later programs fetched into the cache, in Triton."""

from typing import no_type_check

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)
"""Without a GPU there is no cache to ask."""


@triton.jit
@no_type_check
def own_tile(points, BLOCK_S: tl.constexpr):
    """Where the tile of a program is that has just one."""
    return place(tl.program_id(0), points, BLOCK_S)


@triton.jit
@no_type_check
def own_tiles(part, tiles, share):
    """The first tile of the part that takes one after the other, and the one after its last."""
    first = part * share
    return first, tl.minimum(first + share, tiles)


@triton.jit
@no_type_check
def place(tile, points, BLOCK_S: tl.constexpr):
    """Which row of tokens a tile is of, and its first token there."""
    per_row = tl.cdiv(points, BLOCK_S)
    return (tile // per_row).to(tl.int64), tile % per_row * BLOCK_S


@triton.jit
@no_type_check
def fetch(pointers, at, count, SIZE: tl.constexpr):
    """Ask for a tile of each of these to be brought to the L2 cache, where whoever reads it next waits less long."""
    if not INTERPRETED:
        for each in tl.static_range(len(pointers)):
            _fetch(pointers[each], at, count, SIZE)


@triton.jit
@no_type_check
def _fetch(pointer, at, count, SIZE: tl.constexpr):
    LINES: tl.constexpr = SIZE * pointer.dtype.element_ty.primitive_bitwidth // (8 * 128)
    BLOCK: tl.constexpr = 1 << (LINES - 1).bit_length()
    line = at + tl.minimum(tl.arange(0, BLOCK), LINES - 1) * (SIZE // LINES)
    address = (pointer + tl.minimum(line, count - 1)).to(tl.int64)
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [address], dtype=tl.int32, is_pure=False, pack=1
    )
