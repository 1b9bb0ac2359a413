"""The kernel of the gradient of a stencil's weights; imported only where it runs."""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["points"])
@no_type_check
def neighbours_backward(
    grad,
    tokens,
    weight_sums,
    offsets,
    points,
    TAPS: tl.constexpr,
    BLOCK_TAPS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Σ_j z_j ∘ g_(j − o) of each tap, one program per row of tokens and some of their features."""
    parts = tl.cdiv(D, BLOCK_D)
    row = (tl.program_id(0) // parts).to(tl.int64)
    feature = tl.program_id(0) % parts * BLOCK_D + tl.arange(0, BLOCK_D)
    tap = tl.arange(0, BLOCK_TAPS)
    offset = tl.load(offsets + tap, mask=tap < TAPS, other=0) % points
    there = (tap < TAPS)[:, None, None] & (feature < D)[None, None, :]
    grad, tokens = grad + row * points * D, tokens + row * points * D

    total = tl.zeros((BLOCK_TAPS, BLOCK_S, BLOCK_D), tl.float32)
    for first in range(0, points, BLOCK_S):
        point = first + tl.arange(0, BLOCK_S)
        place = (point[None, :] - offset[:, None] + points) % points
        inside = (point < points)[None, :, None] & there
        g = tl.load(grad + place[:, :, None] * D + feature[None, None, :], mask=inside, other=0.0)
        mask = (point < points)[:, None] & (feature < D)[None, :]
        z = tl.load(tokens + point[:, None] * D + feature[None, :], mask=mask, other=0.0)
        total += g.to(tl.float32) * z.to(tl.float32)[None, :, :]
    where = row * TAPS * D + tap[:, None] * D + feature[None, :]
    tl.store(weight_sums + where, tl.sum(total, 1), mask=(tap < TAPS)[:, None] & (feature < D)[None, :])
