"""The kernel of the gradient of a stencil's weights; imported only where it runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.local_triton import SIZES, neighbour


@triton.constexpr_function
def tokens_at_once(places, taps):
    return max(1, places // taps)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def neighbours_backward(
    grad,
    tokens,
    weight_sums,
    offsets,
    points,
    first,
    planes,
    lines,
    length,
    TAPS: tl.constexpr,
    BLOCK_TAPS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
    PIECE: tl.constexpr,
):
    """Σ_i g_i ∘ z_(i + o) of each tap, one program per piece of a row's grid and some of its features.

    `BLOCK_S` counts a token once for every tap: all of those are in registers.
    """
    count = planes * lines * length
    parts, pieces = tl.cdiv(D, BLOCK_D), tl.cdiv(count, PIECE)
    piece = tl.program_id(0) // parts
    start = ((piece // pieces).to(tl.int64) * points + first) * D
    feature = tl.program_id(0) % parts * BLOCK_D + tl.arange(0, BLOCK_D)
    tap = tl.arange(0, BLOCK_TAPS)
    offset = offsets + 3 * tl.minimum(tap, TAPS - 1)[:, None]

    AT_ONCE: tl.constexpr = tokens_at_once(BLOCK_S, BLOCK_TAPS)
    total = tl.zeros((BLOCK_TAPS, AT_ONCE, BLOCK_D), tl.float32)
    begin = piece % pieces * PIECE
    for nearest in range(begin, tl.minimum(begin + PIECE, count), AT_ONCE):
        point = nearest + tl.arange(0, AT_ONCE)
        inside = (point < count)[:, None] & (feature < D)[None, :]
        g = tl.load(grad + start + point[:, None] * D + feature[None, :], mask=inside, other=0.0)
        place = neighbour(point[None, :], offset, planes, lines, length, True)
        z = tl.load(tokens + start + place[:, :, None] * D + feature[None, None, :], mask=inside[None, :, :], other=0.0)
        total += g.to(tl.float32)[None, :, :] * z.to(tl.float32)
    where = piece.to(tl.int64) * TAPS * D + tap[:, None] * D + feature[None, :]
    tl.store(weight_sums + where, tl.sum(total, 1), mask=(tap < TAPS)[:, None] & (feature < D)[None, :])
