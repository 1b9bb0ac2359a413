"""The kernel of `local`, which says what it computes; imported only where it runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.parts_triton import add, columns, matrix, put, times, vector, zeros
from vcnef.kernels.tiles_triton import own_tile

SIZES = ["points", "first", "planes", "lines", "length"]
"""Other ones do not want another kernel."""


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def mix_neighbours(
    tokens,
    out,
    offsets,
    weights,
    points,
    first,
    planes,
    lines,
    length,
    TAPS: tl.constexpr,
    PERIODIC: tl.constexpr,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """One program per row and tile of the grid's tokens, which begin with the row's `first`."""
    count = planes * lines * length
    row, begin = own_tile(count, BLOCK_S)
    point = begin + tl.arange(0, BLOCK_S)
    feature = columns(D)
    start = (row * points + first) * D
    total = zeros(BLOCK_S, feature)
    for tap in tl.static_range(TAPS):
        place = neighbour(point, offsets + 3 * tap, planes, lines, length, PERIODIC)
        there = matrix(tokens + start, place, feature, count, D)
        total = add(total, times(there, vector(weights + tap * D, feature, D)))
    put(out + start, total, point, feature, count, D)


@triton.jit
@no_type_check
def neighbour(point, offset, planes, lines, length, PERIODIC: tl.constexpr):
    """The places on the grid that are so far away from these."""
    plane = moved(point // (lines * length), tl.load(offset), planes, PERIODIC)
    line = moved(point // length % lines, tl.load(offset + 1), lines, PERIODIC)
    return (plane * lines + line) * length + moved(point % length, tl.load(offset + 2), length, PERIODIC)


@triton.jit
@no_type_check
def moved(place, offset, side, PERIODIC: tl.constexpr):
    if PERIODIC:
        place += (offset % side + side) % side
        return tl.where(place < side, place, place - side)
    else:
        return tl.minimum(tl.maximum(place + offset, 0), side - 1)
