"""A residual sum with its norm, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.launch import TILINGS, Weights, floats, launch, like, shares_of, tiles_of, two_like
from vcnef.kernels.layers.sums import summed
from vcnef.kernels.weights import Affine, padded


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
    from vcnef.kernels.layers import residual_triton as kernels

    *out, scale, shift, eps = given
    count, norm = tokens.numel() // len(scale), Affine(scale, shift)
    launch(kernels.residual, tiles_of("residual", count), tokens, update, bias, *out, norm, count, eps, D=len(scale))


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
    """The gradient of a norm's input and, as sums of every program, those of its scale, its shift and, if there are
    three, a bias before it."""
    from vcnef.kernels.layers import residual_triton as kernels

    width, count = len(norm.bias), inverse.numel()
    tiles = tiles_of("residual_backward", count)
    programs, share = shares_of("residual_backward", tiles, grad.device)
    grad_total, token_sums = torch.empty_like(standard), floats(grad, programs, sums * width)
    launch(
        kernels.residual_backward, programs, grad, standard, inverse, norm, grad_total, token_sums, count, tiles, share,
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
