"""The kernels of a residual sum with its norm; imported only where one of them runs."""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.layers.norm_triton import norm_backward, put_norm
from vcnef.kernels.parts_triton import add, cast, columns, matrix, put


@triton.jit(do_not_specialize=["count", "eps"])
@no_type_check
def residual(
    tokens,
    update,
    out,
    standard,
    inverse,
    layer_norm,
    count,
    eps,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    total = cast(matrix(tokens + start * D, rows, feature, left, D), tl.float32)
    if update is not None:
        total = add(total, cast(matrix(update + start * D, rows, feature, left, D), tl.float32))
    put_norm(total, out + start * D, standard + start * D, inverse + start, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["count"])
@no_type_check
def residual_backward(
    grad,
    standard,
    inverse,
    layer_norm,
    grad_total,
    token_sums,
    count,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    start = program * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    total = norm_backward(
        grad + start * D, standard + start * D, inverse + start, layer_norm, token_sums + program * 3 * D,
        rows, left, feature, D,
    )  # fmt: skip
    put(grad_total + start * D, total, rows, feature, left, D)
