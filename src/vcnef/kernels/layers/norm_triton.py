"""What the kernels of all layers share: the norm at their end, and sums over tokens; imported only where one runs.

A backward kernel computes again what is cheaper to compute than to store. The gradients of weights are products over
tokens of what it writes, or a kernel of their own computes again what they are made of. Sums over tokens are written in
parts.
"""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.parts_triton import add, inside, pairs, put, sums, times, vector


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
def through_norm(g, unit, scale, weight, feature, D: tl.constexpr):
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
    """Sums over the rows of a tile; of halves as a product with ones, which is faster than what threads exchange."""
    within = inside(feature, SIZE)
    for part in tl.static_range(len(x)):
        if x[part].dtype == tl.float32:
            tl.store(pointer + feature[part], tl.sum(x[part], 0), mask=within[part])
        else:
            # Sixteen rows are the fewest that tensor cores take. All are alike.
            alike = tl.arange(0, 16)[:, None]
            total = tl.dot(tl.full((16, x[part].shape[0]), 1.0, x[part].dtype), x[part])
            at = pointer + feature[part][None, :] + 0 * alike
            tl.store(at, total, mask=(alike == 0) & within[part][None, :])


@triton.jit
@no_type_check
def positive_slope(value):
    """φ' in terms of φ."""
    return [tl.minimum(each, 1.0) for each in value]
