"""The kernel of `local`, which says what it computes; imported only where it runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.parts_triton import add, columns, matrix, own_tile, put, times, vector, zeros


@triton.jit(do_not_specialize=["points"])
@no_type_check
def mix_neighbours(
    tokens,
    out,
    offsets,
    weights,
    points,
    TAPS: tl.constexpr,
    PERIODIC: tl.constexpr,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """One program per row and tile of its tokens."""
    row, first = own_tile(points, BLOCK_S)
    point = first + tl.arange(0, BLOCK_S)
    feature = columns(D)
    total = zeros(BLOCK_S, feature)
    for tap in tl.static_range(TAPS):
        offset = tl.load(offsets + tap)
        if PERIODIC:
            place = point + (offset % points + points) % points
            place = tl.where(place < points, place, place - points)
        else:
            place = tl.minimum(tl.maximum(point + offset, 0), points - 1)
        neighbour = matrix(tokens + row * points * D, place, feature, points, D)
        total = add(total, times(neighbour, vector(weights + tap * D, feature, D)))
    put(out + row * points * D, total, point, feature, points, D)
