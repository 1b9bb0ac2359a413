"""A residual sum with its norm, with gradients: LN(Z + U + b). It also serves tokens too wide for other kernels."""

# No postponed annotations here: custom operators read their signatures from them.

from collections.abc import Iterator
from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels import formulas
from vcnef.accelerate.kernels.launch import TILINGS, Weights, floats, launch, like, shares_of, tiles_of, two_like
from vcnef.accelerate.kernels.norms import norm_backward, put_norm, put_sums
from vcnef.accelerate.kernels.operation import EPS, TRAINING_TOLERANCE, Example, Operation, Sizes
from vcnef.accelerate.kernels.parts import add, cast, columns, matrix, put, times, vector, zeros
from vcnef.accelerate.kernels.requirements import norm_obstacle
from vcnef.accelerate.kernels.sums import summed
from vcnef.accelerate.kernels.tiles import own_tiles
from vcnef.accelerate.kernels.weights import Affine, padded


def residual(
    tokens: Float[Tensor, "*b d"],
    update: Float[Tensor, "*b d"] | None,
    bias: Float[Tensor, " d"] | None,
    weights: Weights,
    eps: float,
) -> Float[Tensor, "*b d"]:
    """`weights` of the norm."""
    given = tokens.contiguous(), like(update, tokens), bias
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return _residual(*given, *weights, eps)[0]
    # An operator would cost the host more than the kernel costs the GPU.
    out = torch.empty_like(given[0])
    _launch(*given, out, None, None, *weights, eps)
    return out


def _launch(tokens: Tensor, update: Tensor | None, bias: Tensor | None, *given: Any) -> None:
    *out, scale, shift, eps = given
    count, norm = tokens.numel() // len(scale), Affine(scale, shift)
    launch(residual_kernel, tiles_of("residual", count), tokens, update, bias, *out, norm, count, eps, D=len(scale))


@torch.library.custom_op("vcnef::residual_layer", mutates_args=())
def _residual(
    tokens: Tensor, update: Tensor | None, bias: Tensor | None, scale: Tensor, shift: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    found = _empty_residual(tokens)
    _launch(tokens, update, bias, *found, scale, shift, eps)
    return found


@_residual.register_fake
def _empty_residual(tokens: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return *two_like(tokens), floats(tokens, *tokens.shape[:-1])


@torch.library.custom_op("vcnef::residual_layer_backward", mutates_args=())
def _residual_backward(
    grad: Tensor, standard: Tensor, inverse: Tensor, scale: Tensor, shift: Tensor, sums: int
) -> tuple[Tensor, Tensor]:
    grad_total, token_sums = through_norm(grad, standard, inverse, Affine(scale, shift), sums)
    return grad_total, summed(token_sums)


def through_norm(grad: Tensor, standard: Tensor, inverse: Tensor, norm: Affine, sums: int = 3) -> tuple[Tensor, Tensor]:
    """Return the gradient of a norm's input and, as sums of every program, those of its scale, its shift and, if there
    are three, a bias before it."""
    width, count = len(norm.bias), inverse.numel()
    tiles = tiles_of("residual_backward", count)
    programs, share = shares_of("residual_backward", tiles, grad.device)
    grad_total, token_sums = torch.empty_like(standard), floats(grad, programs, sums * width)
    launch(
        residual_backward_kernel, programs, grad, standard, inverse, norm, grad_total, token_sums, count, tiles, share,
        D=width, SUMS=sums, BLOCK_D=padded(width), STAGES=TILINGS["residual_backward"].stages,
    )  # fmt: skip
    return grad_total, token_sums


@_residual_backward.register_fake
def _(
    grad: Tensor, standard: Tensor, inverse: Tensor, scale: Tensor, shift: Tensor, sums: int
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(standard), floats(grad, sums * len(scale))


def _save_residual(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    _, update, bias, scale, shift, _ = inputs
    ctx.update, ctx.biased = update is not None, bias is not None
    ctx.save_for_backward(*output[1:], scale, shift)


def _differentiate_residual(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    count = 3 if ctx.biased else 2
    grad_total, sums = _residual_backward(grad.contiguous(), *ctx.saved_tensors, count)
    scale, shift, *bias = sums.chunk(count)
    return grad_total, grad_total if ctx.update else None, *(bias or [None]), scale, shift, None


_residual.register_autograd(_differentiate_residual, setup_context=_save_residual)


@triton.jit(do_not_specialize=["count", "eps"])
@no_type_check
def residual_kernel(
    tokens, update, bias, out, standard, inverse, layer_norm, count, eps,
    D: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    total = cast(matrix(tokens + start * D, rows, feature, left, D), tl.float32)
    if update is not None:
        total = add(total, cast(matrix(update + start * D, rows, feature, left, D), tl.float32))
    if bias is not None:
        total = add(total, vector(bias, feature, D))
    if standard is not None:
        standard += start * D
        inverse += start
    put_norm(total, out + start * D, standard, inverse, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["count", "tiles", "share"])
@no_type_check
def residual_backward_kernel(
    grad, standard, inverse, layer_norm, grad_total, token_sums, count, tiles, share,
    D: tl.constexpr, SUMS: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Sums over tokens are joined between threads once, at the end of a program's tiles; there are three of them where
    a bias is in the sum.

    Features stand in one part: two would lie in registers in two ways, which a sum over both has to bring together."""
    rows, feature = tl.arange(0, BLOCK_S), (tl.arange(0, BLOCK_D),)
    weight = vector(layer_norm.weight, feature, D)
    scale_sums, shift_sums, bias_sums = zeros(BLOCK_S, feature), zeros(BLOCK_S, feature), zeros(BLOCK_S, feature)
    begin, end = own_tiles(tl.program_id(0), tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES):
        start = tl.cast(tile, tl.int64) * BLOCK_S
        left, at = count - start, start * D
        g = cast(matrix(grad + at, rows, feature, left, D), tl.float32)
        unit = cast(matrix(standard + at, rows, feature, left, D), tl.float32)
        scale = tl.load(inverse + start + rows, mask=rows < left, other=0.0)
        total = norm_backward(g, unit, scale, weight, feature, D)
        put(grad_total + at, total, rows, feature, left, D)
        scale_sums, shift_sums = add(scale_sums, times(g, unit)), add(shift_sums, g)
        if SUMS == 3:
            bias_sums = add(bias_sums, total)
    token_sums += tl.program_id(0) * SUMS * D
    put_sums(token_sums, scale_sums, feature, D)
    put_sums(token_sums + D, shift_sums, feature, D)
    if SUMS == 3:
        put_sums(token_sums + 2 * D, bias_sums, feature, D)


def residual_baseline(
    tokens: Float[Tensor, "*b d"],
    update: Float[Tensor, "*b d"] | None,
    bias: Float[Tensor, " d"] | None,
    weights: Weights,
    eps: float,
) -> Float[Tensor, "*b d"]:
    total = tokens + sum(each for each in (update, bias) if each is not None)
    return formulas.norm(total, Affine(*weights), eps)


def examples(sizes: Sizes) -> Iterator[Example]:
    data, bias, norm = [sizes.tokens(), sizes.tokens()], sizes.draw(sizes.width), sizes.norm()
    yield Example("alone", data, norm, lambda x, u, *w: (x, u, None, list(w), EPS))
    yield Example("with a bias", data, [bias, *norm], lambda x, u, b, *w: (x, u, b, list(w), EPS))
    yield Example("without an update", data[:1], norm, lambda x, *w: (x, None, None, list(w), EPS))


RESIDUAL = Operation(
    "residual", residual, residual_baseline, norm_obstacle, examples, differentiable=True, tolerance=TRAINING_TOLERANCE
)
