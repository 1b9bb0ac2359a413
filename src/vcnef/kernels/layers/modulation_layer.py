"""Modulation with its norm, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.launch import Weights, affine, floats, launch, like, pack, summed, tiles_of, weight_grad


def modulation(
    tokens: Float[Tensor, "b t_or_1 s d"],
    factor: Float[Tensor, "b 1 s d"] | None,
    field: Float[Tensor, "b_or_1 t s d"],
    weights: Weights,
    eps: float,
) -> Float[Tensor, "b t s d"]:
    """`weights` of scale, out and the norm; without those of scale where the factor F is given."""
    packed = pack(tokens, weights)
    return _modulation(tokens.contiguous(), like(factor, tokens), like(field, tokens), weights, packed, eps)[0]


@torch.library.custom_op("vcnef::modulation_layer", mutates_args=())
def _modulation(
    tokens: Tensor, factor: Tensor | None, field: Tensor, weights: list[Tensor], packed: list[Tensor], eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    from vcnef.kernels.layers import modulation_triton as kernels

    found = _empty_modulation(tokens, factor, field)
    batch, frames, points, width = found[0].shape
    *scale, out_map, norm = affine(weights, packed)
    launch(
        kernels.modulation, batch * frames * tiles_of("modulation", points), tokens, factor, field, *found,
        *(scale or [None]), out_map, norm, frames, points, eps, D=width, SHARED_FIELD=len(field) == 1,
    )  # fmt: skip
    return found


@_modulation.register_fake
def _empty_modulation(tokens: Tensor, factor: Tensor | None, field: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    shape = len(tokens), *field.shape[1:]
    return tokens.new_empty(shape), tokens.new_empty(shape), floats(tokens, *shape[:-1])


@torch.library.custom_op("vcnef::modulation_layer_backward", mutates_args=())
def _modulation_backward(
    grad: Tensor,
    tokens: Tensor,
    factor: Tensor | None,
    field: Tensor,
    standard: Tensor,
    inverse: Tensor,
    weights: list[Tensor],
    packed: list[Tensor],
) -> list[Tensor]:
    from vcnef.kernels.layers import modulation_triton as kernels

    batch, frames, points, width = grad.shape
    *scale, out_map, norm = affine(weights, packed)
    grad_total, grad_factor, grad_field, modulated = (torch.empty_like(standard) for _ in range(4))
    grad_tokens = torch.empty_like(standard) if factor is None else grad_total
    programs = batch * frames * tiles_of("modulation_backward", points)
    token_sums = floats(tokens, programs, 4 * width)
    launch(
        kernels.modulation_backward, programs, grad, tokens, factor, field, standard, inverse, *(scale or [None]),
        out_map, norm, grad_tokens, grad_factor, grad_field, grad_total, modulated, token_sums,
        frames, points, D=width, SHARED_FIELD=len(field) == 1,
    )  # fmt: skip
    grad_field = grad_field.sum(0, keepdim=True) if len(field) == 1 else grad_field
    out_grad = weight_grad(modulated, grad_total)
    if factor is None:
        return [grad_tokens, grad_field, summed(token_sums), out_grad, weight_grad(tokens, grad_factor)]
    over_times = (each.sum(1, keepdim=True) for each in (grad_tokens, grad_factor))
    return [next(over_times), grad_field, summed(token_sums), out_grad, next(over_times)]


@_modulation_backward.register_fake
def _(grad: Tensor, tokens: Tensor, factor: Tensor | None, field: Tensor, *saved: Any) -> list[Tensor]:
    _, _, weights, _ = saved
    last = torch.empty_like(weights[0] if factor is None else factor)
    sums = floats(tokens, 4 * tokens.shape[-1])
    return [torch.empty_like(tokens), torch.empty_like(field), sums, torch.empty_like(weights[-4]), last]


def _save_modulation(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    tokens, factor, field, weights, packed, _ = inputs
    ctx.save_for_backward(tokens, factor, field, *output[1:], *packed, *weights)


def _differentiate_modulation(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    tokens, factor, field, standard, inverse, *saved = ctx.saved_tensors
    matrices = 2 if factor is None else 1
    packed, weights = saved[:matrices], saved[matrices:]
    found = _modulation_backward(grad.contiguous(), tokens, factor, field, standard, inverse, weights, packed)
    grad_tokens, grad_field, sums, out, last = found
    scale, shift, out_bias, scale_bias = sums.chunk(4)
    grads = [out, out_bias, scale, shift]
    if factor is None:
        return grad_tokens, None, grad_field, [last, scale_bias, *grads], [None] * 2, None
    return grad_tokens, last, grad_field, grads, [None], None


_modulation.register_autograd(_differentiate_modulation, setup_context=_save_modulation)
