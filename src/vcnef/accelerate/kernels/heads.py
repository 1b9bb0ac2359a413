"""What kernels do within the heads of an attention, in Triton.

A sum over a head is a product with ones, as narrow as there are heads, and what is made of it reaches the head's
features by a second one. `Heads` in `weights` holds both maps.
"""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.accelerate.kernels.parts import dot, pairs, weight


@triton.constexpr_function
def slots(heads):
    """Two for each head, and as many as tensor cores take: `padded`, which Triton may not call."""
    return max(16, 1 << (2 * heads - 1).bit_length())


@triton.jit
@no_type_check
def within_heads(x, rows, feature, HEAD: tl.constexpr):
    """x where its row and column are of one head, else zero."""
    return [tl.where(rows[:, None] // HEAD == pair[1][None, :] // HEAD, pair[0], 0.0) for pair in pairs(x, feature)]


@triton.jit
@no_type_check
def inverse_head_sums(x, heads, feature, points, D: tl.constexpr, HEADS: tl.constexpr):
    """1 / Σ over each head, kept from infinity: an attention's normaliser."""
    return 1.0 / (gather(x, heads, feature, D, HEADS) + 1e-6 / points)


@triton.jit
@no_type_check
def gather(x, heads, feature, D: tl.constexpr, HEADS: tl.constexpr):
    """Σ over the features of each head, twice."""
    slot = tl.arange(0, slots(HEADS))
    return dot(x, weight(heads.gather, feature, (slot,), D, slots(HEADS)))[0]


@triton.jit
@no_type_check
def spread(value, heads, feature, D: tl.constexpr, HEADS: tl.constexpr):
    """A head's value for each of its features: as the sum of two numbers of half precision, which together have most
    of it."""
    slot = tl.arange(0, slots(HEADS))
    dtype = heads.spread.dtype.element_ty
    high = value.to(dtype)
    halves = tl.where((slot < HEADS)[None, :], high, (value - high.to(tl.float32)).to(dtype))
    return dot((halves,), weight(heads.spread, (slot,), feature, slots(HEADS), D))


@triton.jit
@no_type_check
def put_heads(pointer, value, rows, left, HEADS: tl.constexpr):
    """One number of each head; `gather` gives it twice."""
    slot = tl.arange(0, slots(HEADS))
    at = pointer + rows[:, None] * HEADS + slot[None, :]
    tl.store(at, value, mask=(rows < left)[:, None] & (slot < HEADS)[None, :])


@triton.jit
@no_type_check
def head_values(pointer, rows, left, HEADS: tl.constexpr):
    """What `put_heads` has put, twice."""
    slot = tl.arange(0, slots(HEADS))
    at = pointer + rows[:, None] * HEADS + (slot % HEADS)[None, :]
    return tl.load(at, mask=(rows < left)[:, None] & (slot < 2 * HEADS)[None, :], other=0.0)
