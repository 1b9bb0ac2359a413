"""What the kernels are put together from; imported only where one of them runs.

Widths are padded to a power of two. Padding is zero in tokens, weights, biases and MLP(C), so every sum over features
is right as it stands; φ makes ones of it, which meet zeros in the next product. The layer norm alone must look.
"""

from typing import no_type_check

import triton
import triton.language as tl

# `no_type_check`: the tests' shape checker must not wrap what Triton compiles from source.


@triton.jit
@no_type_check
def product(x, affine, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """x W + b in fp32, with operands of W's type, for those rows and columns of W."""
    weight = matrix(affine.weight, rows, columns, ROWS, COLUMNS, COLUMNS)
    return tl.dot(x.to(weight.dtype), weight) + vector(affine.bias, columns, COLUMNS)[None, :]


@triton.jit
@no_type_check
def norm(x, affine, feature, eps, D: tl.constexpr):
    mean = tl.sum(x, 1) / D
    centred = tl.where(feature[None, :] < D, x - mean[:, None], 0.0)
    inverse = tl.rsqrt(tl.sum(centred * centred, 1) / D + eps)
    return (
        centred * inverse[:, None] * vector(affine.weight, feature, D)[None, :]
        + vector(affine.bias, feature, D)[None, :]
    )


@triton.jit
@no_type_check
def positive(x):
    return tl.exp(tl.minimum(x, 0.0)) + tl.maximum(x, 0.0)


@triton.jit
@no_type_check
def matrix(pointer, rows, columns, ROWS, COLUMNS, stride):
    inside = (rows[:, None] < ROWS) & (columns[None, :] < COLUMNS)
    return tl.load(pointer + rows[:, None] * stride + columns[None, :], mask=inside, other=0.0)


@triton.jit
@no_type_check
def vector(pointer, index, size):
    return tl.load(pointer + index, mask=index < size, other=0.0)


@triton.jit
@no_type_check
def gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
@no_type_check
def put(pointer, x, rows, columns, ROWS, COLUMNS):
    inside = (rows[:, None] < ROWS) & (columns[None, :] < COLUMNS)
    tl.store(pointer + rows[:, None] * COLUMNS + columns[None, :], x.to(pointer.dtype.element_ty), mask=inside)
