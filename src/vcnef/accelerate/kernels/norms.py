"""What kernels with gradients share in Triton: the norm at the end of a layer, and sums over tokens.

A backward kernel computes again what is cheaper to compute than to store. The gradients of weights are products over
tokens of what it writes, or a kernel of their own computes again what they are made of. Sums over tokens are written in
parts.

Loops with `disable_licm` have products: what compilers take out of a loop, since it is the same every time, takes up
registers that these need.
"""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.accelerate.kernels.parts import (
    add,
    dot,
    inside,
    normal_density,
    normal_tail,
    pairs,
    put,
    sums,
    times,
    vector,
)

ALIKE = tl.constexpr(16)
"""The fewest rows that tensor cores take."""


@triton.jit
@no_type_check
def put_norm(x, out, standard, inverse, affine, rows, left, feature, eps, D: tl.constexpr):
    """LN(x), and what its gradient needs, if there is room for it: `standardise`."""
    unit, scale = standardise(x, feature, eps, D)
    if standard is not None:
        tl.store(inverse + rows, scale, mask=rows < left)
        put(standard, unit, rows, feature, left, D)
    affine_out = add(times(unit, vector(affine.weight, feature, D)), vector(affine.bias, feature, D))
    put(out, affine_out, rows, feature, left, D)


@triton.jit
@no_type_check
def standardise(x, feature, eps, D: tl.constexpr):
    """x with mean 0 and variance 1 in every row, and 1 over the deviation."""
    mean = sums(x) * (1.0 / D)
    centred = _only_inside([each - mean[:, None] for each in x], feature, D)
    scale = tl.rsqrt(sums(times(centred, centred)) * (1.0 / D) + eps)
    return [each * scale[:, None] for each in centred], scale


@triton.jit
@no_type_check
def norm_backward(g, unit, scale, weight, feature, D: tl.constexpr):
    """The gradient of LN's input from that of its output."""
    g = times(g, weight)
    mean, slope = sums(g) * (1.0 / D), sums(times(g, unit)) * (1.0 / D)
    back = [(pair[0] - mean[:, None] - pair[1] * slope[:, None]) * scale[:, None] for pair in pairs(g, unit)]
    return _only_inside(back, feature, D)


@triton.jit
@no_type_check
def _only_inside(x, feature, D: tl.constexpr):
    return [tl.where(pair[1][None, :], pair[0], 0.0) for pair in pairs(x, inside(feature, D))]


@triton.jit
@no_type_check
def put_sums(pointer, x, feature, SIZE: tl.constexpr):
    """Sums over the rows of a tile, once in a program: threads exchange what they have."""
    within = inside(feature, SIZE)
    for part in tl.static_range(len(x)):
        tl.store(pointer + feature[part], tl.sum(x[part], 0), mask=within[part])


@triton.jit
@no_type_check
def put_total(pointer, x, feature, SIZE: tl.constexpr, share=None):
    """The sum over the rows of x, or of so much of each, where every tile has one: a product, which is faster than what
    threads exchange."""
    if share is None:
        ones = tl.full((ALIKE, x[0].shape[0]), 1.0, x[0].dtype)
    else:
        ones = tl.broadcast_to(share[None, :], (ALIKE, x[0].shape[0]))
    # All rows of it are alike.
    put(pointer, dot((ones,), (x,)), tl.arange(0, ALIKE), feature, 1, SIZE)


@triton.jit
@no_type_check
def ones(ROWS: tl.constexpr, dtype: tl.constexpr):
    """x times this is the sum over its columns, so many times; a product leaves all as it lies in registers."""
    return ((tl.full((ROWS, ALIKE), 1.0, dtype),),)


@triton.jit
@no_type_check
def put_column(pointer, x, rows, SIZE: tl.constexpr):
    """What `ones` have made, once."""
    put(pointer, x, rows, (tl.arange(0, ALIKE),), SIZE, 1)


@triton.jit
@no_type_check
def positive_slope(value):
    """φ' in terms of φ."""
    return [tl.minimum(each, 1.0) for each in value]


@triton.jit
@no_type_check
def relu_slope(x):
    return [tl.where(each > 0, 1.0, 0.0) for each in x]


@triton.jit
@no_type_check
def gelu_slope(x):
    """Φ(x) + x φ(x)."""
    return [tl.where(each > 0, 1 - normal_tail(each), normal_tail(each)) + each * normal_density(each) for each in x]
