"""GELU with the bias before it, with gradients: GELU(H + b). It also serves tokens too wide for other kernels."""

# No postponed annotations here: custom operators read their signatures from them.

from collections.abc import Iterator
from typing import Any, no_type_check

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels.launch import TILINGS, floats, launch, shares_of, tiles_of
from vcnef.accelerate.kernels.norms import gelu_slope, put_sums
from vcnef.accelerate.kernels.operation import TRAINING_TOLERANCE, Example, Operation, Sizes
from vcnef.accelerate.kernels.parts import add, cast, matrix, put, times, vector, zeros
from vcnef.accelerate.kernels.parts import gelu as gelu_of
from vcnef.accelerate.kernels.requirements import norm_obstacle
from vcnef.accelerate.kernels.sums import summed
from vcnef.accelerate.kernels.tiles import own_tiles


def gelu(x: Float[Tensor, "*b h"], bias: Float[Tensor, " h"]) -> Float[Tensor, "*b h"]:
    return _gelu(x.contiguous(), bias)


@torch.library.custom_op("vcnef::gelu_layer", mutates_args=())
def _gelu(x: Tensor, bias: Tensor) -> Tensor:
    out, (count, sizes) = torch.empty_like(x), _sizes("activation", x)
    programs = tiles_of("activation", count) * _chunks(sizes)
    launch(activation_kernel, programs, x, bias, out, count, **sizes)
    return out


@_gelu.register_fake
def _(x: Tensor, bias: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("vcnef::gelu_layer_backward", mutates_args=())
def _gelu_backward(grad: Tensor, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    count, sizes = _sizes("activation_backward", x)
    tiles, chunks = tiles_of("activation_backward", count), _chunks(sizes)
    parts, share = shares_of("activation_backward", tiles, x.device, chunks)
    grad_x, bias_sums = torch.empty_like(x), floats(x, parts, len(bias))
    launch(
        activation_backward_kernel, parts * chunks, grad, x, bias, grad_x, bias_sums, count, tiles, share,
        STAGES=TILINGS["activation_backward"].stages, **sizes,
    )  # fmt: skip
    return grad_x, summed(bias_sums)


@_gelu_backward.register_fake
def _(grad: Tensor, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), floats(x, len(bias))


def _sizes(kernel: str, x: Tensor) -> tuple[int, dict[str, int]]:
    width = x.shape[-1]
    return x.numel() // width, {"D": width, "BLOCK_H": TILINGS[kernel].hidden}


def _chunks(sizes: dict[str, int]) -> int:
    return -(-sizes["D"] // sizes["BLOCK_H"])


def _save(ctx: Any, inputs: tuple, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    return _gelu_backward(grad.contiguous(), *ctx.saved_tensors)


_gelu.register_autograd(_differentiate, setup_context=_save)


@triton.jit(do_not_specialize=["count"])
@no_type_check
def activation_kernel(x, bias, out, count, D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr):
    """One program per tile of rows and chunk of features."""
    tile, chunk = _own(D, BLOCK_H)
    start = tile * BLOCK_S
    rows, left, at = tl.arange(0, BLOCK_S), count - start, start * D
    before = add(cast(matrix(x + at, rows, chunk, left, D), tl.float32), vector(bias, chunk, D))
    put(out + at, gelu_of(before), rows, chunk, left, D)


@triton.jit(do_not_specialize=["count", "tiles", "share"])
@no_type_check
def activation_backward_kernel(
    grad, x, bias, grad_x, bias_sums, count, tiles, share,
    D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A program takes several tiles: the sum over rows, the gradient of the bias, is joined between threads once."""
    part, chunk = _own(D, BLOCK_H)
    rows, shift, sums = tl.arange(0, BLOCK_S), vector(bias, chunk, D), zeros(BLOCK_S, chunk)
    begin, end = own_tiles(part, tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES):
        start = tile * BLOCK_S
        left, at = count - start, start * D
        before = add(cast(matrix(x + at, rows, chunk, left, D), tl.float32), shift)
        back = times(cast(matrix(grad + at, rows, chunk, left, D), tl.float32), gelu_slope(before))
        put(grad_x + at, back, rows, chunk, left, D)
        sums = add(sums, back)
    put_sums(bias_sums + part * D, sums, chunk, D)


@triton.jit
@no_type_check
def _own(D: tl.constexpr, BLOCK_H: tl.constexpr):
    """Which rows and features are this program's."""
    CHUNKS: tl.constexpr = (D + BLOCK_H - 1) // BLOCK_H
    program = tl.program_id(0)
    return (program // CHUNKS).to(tl.int64), (program % CHUNKS * BLOCK_H + tl.arange(0, BLOCK_H),)


def gelu_baseline(x: Float[Tensor, "*b h"], bias: Float[Tensor, " h"]) -> Float[Tensor, "*b h"]:
    return F.gelu(x + bias)


def examples(sizes: Sizes) -> Iterator[Example]:
    hidden = 5 * sizes.width
    yield Example(
        "", [sizes.draw(sizes.batch, sizes.times, sizes.points, hidden)], [sizes.draw(hidden)], lambda x, b: (x, b)
    )


GELU = Operation(
    "gelu", gelu, gelu_baseline, norm_obstacle, examples, differentiable=True, tolerance=TRAINING_TOLERANCE
)
