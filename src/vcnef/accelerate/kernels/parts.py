"""What kernels are put together from, in Triton: reading, writing, products and functions of tiles of tokens.

Features stand in parts whose widths are powers of two, as a tuple of one or two tensors: 96 is 64 + 32, and a product
does the work of 96, not of 128. A weight has its rows in parts too, and is a tuple of such tuples.

Where such parts do not hold a width exactly, the last one is padded. Padding is zero in tokens, weights, biases and
MLP(C), so every sum over features is right as it stands; φ makes ones of it, which meet zeros in the next product. The
layer norm alone must look.
"""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.accelerate.kernels.assembler import avoid_broken

avoid_broken()

# `no_type_check`: the tests' shape checker must not wrap what Triton compiles from source.


@triton.constexpr_function
def widths(size):
    """The largest power of two in `size` and one that holds the rest, both at least 16."""
    first = max(16, 1 << (size.bit_length() - 1))
    if size <= first:
        return (first,)
    rest = max(16, 1 << (size - first - 1).bit_length())
    return (2 * first,) if rest == first else (first, rest)


@triton.constexpr_function
def exact(index, size):
    """Whether these parts, or as many more of their length, end where the features do."""
    return size % sum(int(each.shape[0]) for each in index) == 0


@triton.jit
@no_type_check
def columns(SIZE: tl.constexpr):
    """The indices of that many features."""
    WIDTHS: tl.constexpr = widths(SIZE)
    if len(WIDTHS) == 1:
        return (tl.arange(0, WIDTHS[0]),)
    else:
        return (tl.arange(0, WIDTHS[0]), WIDTHS[0] + tl.arange(0, WIDTHS[1]))


@triton.jit
@no_type_check
def inside(index, SIZE: tl.constexpr):
    """Which are no padding. Where none can be, the compiler drops the mask."""
    if exact(index, SIZE):
        return [tl.full(each.shape, True, tl.int1) for each in index]
    else:
        return [each < SIZE for each in index]


# Memory: what lies beyond a matrix reads as zero.


@triton.jit
@no_type_check
def matrix(pointer, rows, columns, ROWS, COLUMNS: tl.constexpr):
    """A tile of tokens: those rows, in parts of columns."""
    return _row(pointer, rows, rows < ROWS, columns, COLUMNS)


@triton.jit
@no_type_check
def weight(pointer, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A matrix whose rows are features too: its parts as [rows][columns]."""
    return [_row(pointer, pair[0], pair[1], columns, COLUMNS) for pair in pairs(rows, inside(rows, ROWS))]


@triton.jit
@no_type_check
def _row(pointer, rows, rows_inside, columns, COLUMNS: tl.constexpr):
    return [
        tl.load(
            pointer + rows[:, None] * COLUMNS + pair[0][None, :],
            mask=rows_inside[:, None] & pair[1][None, :],
            other=0.0,
        )
        for pair in pairs(columns, inside(columns, COLUMNS))
    ]


@triton.jit
@no_type_check
def vector(pointer, columns, COLUMNS: tl.constexpr):
    """One row, to be added to or multiplied with every row of a tile."""
    return [
        tl.load(pointer + pair[0], mask=pair[1], other=0.0)[None, :]
        for pair in pairs(columns, inside(columns, COLUMNS))
    ]


@triton.jit
@no_type_check
def put(pointer, x, rows, columns, ROWS, COLUMNS: tl.constexpr):
    within = inside(columns, COLUMNS)
    for part in tl.static_range(len(x)):
        tl.store(
            pointer + rows[:, None] * COLUMNS + columns[part][None, :],
            x[part].to(pointer.dtype.element_ty),
            mask=(rows < ROWS)[:, None] & within[part][None, :],
        )


@triton.jit
@no_type_check
def put_reversed(pointer, x, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """xᵀ, whose rows are the columns of x."""
    within = inside(columns, COLUMNS)
    for part in tl.static_range(len(x)):
        tl.store(
            pointer + columns[part][None, :] * ROWS + rows[:, None],
            x[part].to(pointer.dtype.element_ty),
            mask=(rows < ROWS)[:, None] & within[part][None, :],
        )


@triton.jit
@no_type_check
def hold(x, left):
    """x as it is, by a product with one.

    What goes from memory straight to a product is waited for before anything else is read. With this step between,
    all that is read before it is under way at once."""
    return [each * (left > 0).to(each.dtype) for each in x]


# Arithmetic, part by part. Triton 3.6 keeps a comprehension's name alive: in a kernel with a loop it has to be in a
# function of its own.


@triton.jit
@no_type_check
def pairs(x, y):
    if len(x) == 1:
        return ((x[0], y[0]),)
    else:
        return ((x[0], y[0]), (x[1], y[1]))


@triton.jit
@no_type_check
def zeros(ROWS: tl.constexpr, columns):
    return [tl.zeros((ROWS, each.shape[0]), tl.float32) for each in columns]


@triton.jit
@no_type_check
def add(x, y):
    return [pair[0] + pair[1] for pair in pairs(x, y)]


@triton.jit
@no_type_check
def times(x, y):
    return [pair[0] * pair[1] for pair in pairs(x, y)]


@triton.jit
@no_type_check
def cast(x, dtype: tl.constexpr):
    return [each.to(dtype) for each in x]


@triton.jit
@no_type_check
def scaled(x, factor):
    return [each * factor for each in x]


@triton.jit
@no_type_check
def smaller(x, y):
    return [tl.minimum(pair[0], pair[1]) for pair in pairs(x, y)]


@triton.jit
@no_type_check
def reverse(parts):
    """Wᵀ of W in parts [rows][columns]."""
    if len(parts[0]) == 1:
        return ([tl.trans(each[0]) for each in parts],)
    else:
        return ([tl.trans(each[0]) for each in parts], [tl.trans(each[1]) for each in parts])


@triton.jit
@no_type_check
def as_columns(x):
    """Tokens as columns of a right factor, whose rows are their features."""
    return [(tl.trans(each),) for each in x]


@triton.jit
@no_type_check
def dot(x, weight, onto=None):
    """x W in fp32, added to `onto` if given; x is cast to the weight's type."""
    if onto is None:
        total = [tl.dot(x[0].to(each.dtype), each) for each in weight[0]]
    else:
        total = [tl.dot(x[0].to(pair[0].dtype), pair[0], pair[1]) for pair in pairs(weight[0], onto)]
    if len(x) == 2:
        return [tl.dot(x[1].to(pair[0].dtype), pair[0], pair[1]) for pair in pairs(weight[1], total)]
    else:
        return total


@triton.jit
@no_type_check
def product(x, affine, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """x W + b in fp32 for those rows and columns of W."""
    wide = dot(x, weight(affine.weight, rows, columns, ROWS, COLUMNS))
    return add(wide, vector(affine.bias, columns, COLUMNS))


@triton.jit
@no_type_check
def norm(x, affine, columns, eps, D: tl.constexpr):
    mean = sums(x) * (1.0 / D)
    if exact(columns, D):
        centred = [each - mean[:, None] for each in x]
    else:
        centred = [tl.where(pair[1][None, :], pair[0] - mean[:, None], 0.0) for pair in pairs(x, inside(columns, D))]
    inverse = tl.rsqrt(sums(times(centred, centred)) * (1.0 / D) + eps)
    scaled = times([each * inverse[:, None] for each in centred], vector(affine.weight, columns, D))
    return add(scaled, vector(affine.bias, columns, D))


@triton.jit
@no_type_check
def sums(x):
    """Over the features of every row."""
    if len(x) == 1:
        return tl.sum(x[0], 1)
    else:
        return tl.sum(x[0], 1) + tl.sum(x[1], 1)


@triton.jit
@no_type_check
def positive(x):
    """φ(x) = ELU(x) + 1."""
    return [tl.exp2(tl.minimum(each, 0.0) * 1.4426950408889634) + tl.maximum(each, 0.0) for each in x]


@triton.jit
@no_type_check
def relu(x):
    return [tl.maximum(each, 0.0) for each in x]


@triton.jit
@no_type_check
def gelu(x):
    return [tl.maximum(each, 0.0) - tl.abs(each) * normal_tail(each) for each in x]


@triton.jit
@no_type_check
def normal_tail(x):
    """1 − Φ(|x|) to 7.5e-8, after Hastings: an exponential and a root, at half the cost of erf."""
    d = 1 + 0.2316419 * tl.abs(x)
    t = tl.rsqrt(d * d)
    series = 0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429)))
    return normal_density(x) * t * series


@triton.jit
@no_type_check
def normal_density(x):
    return 0.3989422804014327 * tl.exp2(-0.7213475204444817 * x * x)
