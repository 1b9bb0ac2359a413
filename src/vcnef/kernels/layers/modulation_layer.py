"""Modulation with its norm, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.beside import Beside
from vcnef.kernels.layers.launch import Weights, affine, floats, launch, like, pack, shares_of, stages_of, tiles_of
from vcnef.kernels.layers.residual_layer import through_norm
from vcnef.kernels.layers.sums import summed
from vcnef.kernels.weights import Affine, padded

MOST_IN_TURN = {"modulation": 8, "modulation_backward": 8, "modulation_weights_backward": 16}
"""Samples that a program takes one after the other, as measured on an H200: with more of them and fewer programs, some
multiprocessors are done before others."""


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


@torch.library.custom_op("vcnef::modulation_by_frames", mutates_args=())
def _modulation(
    tokens: Tensor, factor: Tensor | None, field: Tensor, weights: list[Tensor], packed: list[Tensor], eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    from vcnef.kernels.layers import modulation_triton as kernels

    found = _empty_modulation(tokens, factor, field)
    batch, frames, points, width = found[0].shape
    *scale, out_map, norm = affine(weights, packed)
    each, _, sets = _in_turn("modulation", found[0])
    launch(
        kernels.modulation, sets, tokens, factor, field, *found, *(scale or [None]), out_map, norm, batch, frames,
        points, each, eps, D=width, SHARED_FIELD=len(field) == 1, STAGES=stages_of("modulation", width),
    )  # fmt: skip
    return found


@_modulation.register_fake
def _empty_modulation(tokens: Tensor, factor: Tensor | None, field: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    shape = len(tokens), *field.shape[1:]
    return tokens.new_empty(shape), tokens.new_empty(shape), floats(tokens, *shape[:-1])


@torch.library.custom_op("vcnef::modulation_by_frames_backward", mutates_args=())
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
    maps = *(scale or [None]), out_map
    with Beside(tokens) as beside:
        grad_total, token_sums = through_norm(grad, standard, inverse, norm)
        map_sums = beside(_learn_maps, tokens, factor, field, grad_total, maps)
        norm_sums = beside(summed, token_sums)
        each, parts, sets = _in_turn("modulation_backward", grad)
        grad_own = torch.empty_like(standard)
        field_sums = field.new_empty(parts, *field.shape[1:]) if len(field) == 1 else torch.empty_like(field)
        # A factor that is given leaves room on chip for another tile.
        stages = stages_of("modulation_backward", width) + (factor is not None)
        launch(
            kernels.modulation_backward, sets, grad_total, tokens, factor, field, *maps, grad_own, field_sums, batch,
            frames, points, each, D=width, SHARED_FIELD=len(field) == 1, STAGES=stages,
        )  # fmt: skip
        grad_field = beside(_sum_over, 0, field_sums) if len(field) == 1 else field_sums
        if factor is None:
            return [grad_own, grad_field, norm_sums, map_sums]
        return [beside(_sum_over, 1, grad_total), grad_field, norm_sums, map_sums, _sum_over(1, grad_own)]


def _sum_over(axis: int, x: Tensor) -> Tensor:
    return x.sum(axis, keepdim=True)


def _learn_maps(
    tokens: Tensor, factor: Tensor | None, field: Tensor, grad_total: Tensor, maps: tuple[Affine | None, Affine]
) -> Tensor:
    """The gradients of the outer weight and, where the factor is not given, of the inner weight and bias."""
    from vcnef.kernels.layers import modulation_triton as kernels

    batch, frames, points, width = grad_total.shape
    each, _, sets = _in_turn("modulation_weights_backward", grad_total)
    programs, share = shares_of("modulation_weights_backward", sets, tokens.device)
    weight_sums = floats(tokens, programs, _weights_learnt(width, factor))
    launch(
        kernels.modulation_weights_backward, programs, tokens, factor, field, grad_total, *maps, weight_sums,
        batch, frames, points, each, sets, share, D=width, SHARED_FIELD=len(field) == 1, BLOCK_D=padded(width),
    )  # fmt: skip
    return summed(weight_sums)


def _in_turn(kernel: str, rows: Tensor) -> tuple[int, int, int]:
    """How many samples a program of that kernel takes one after the other, in how many parts they come then, and how
    many such sets of the same points and frame there are."""
    samples, frames, points, _ = rows.shape
    tiles = frames * tiles_of(kernel, points)
    _, each = shares_of(kernel, tiles * samples, rows.device)
    each = min(each, MOST_IN_TURN[kernel])
    parts = -(-samples // each)
    return each, parts, parts * tiles


@_modulation_backward.register_fake
def _(grad: Tensor, tokens: Tensor, factor: Tensor | None, field: Tensor, *_: Any) -> list[Tensor]:
    width = tokens.shape[-1]
    sums = floats(tokens, 3 * width), floats(tokens, _weights_learnt(width, factor))
    return [
        torch.empty_like(tokens),
        torch.empty_like(field),
        *sums,
        *([] if factor is None else [torch.empty_like(factor)]),
    ]


def _weights_learnt(width: int, factor: Tensor | None) -> int:
    """How many are in the outer weight and, where the factor is not given, in the inner weight and bias."""
    return width * (2 * width + 1) if factor is None else width * width


def _save_modulation(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    tokens, factor, field, weights, packed, _ = inputs
    ctx.save_for_backward(tokens, factor, field, *output[1:], *packed, *weights)


def _differentiate_modulation(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    tokens, factor, field, standard, inverse, *saved = ctx.saved_tensors
    matrices = 2 if factor is None else 1
    packed, weights = saved[:matrices], saved[matrices:]
    found = _modulation_backward(grad.contiguous(), tokens, factor, field, standard, inverse, weights, packed)
    grad_tokens, grad_field, sums, maps, *grad_factor = found
    scale, shift, out_bias = sums.chunk(3)
    width = len(scale)
    out, *inner = maps.split([width * width] * matrices + [width] * (matrices - 1))
    grads = [out.view(width, width), out_bias, scale, shift]
    if factor is None:
        scaling, scaling_bias = inner
        return grad_tokens, None, grad_field, [scaling.view(width, width), scaling_bias, *grads], [None] * 2, None
    return grad_tokens, *grad_factor, grad_field, grads, [None], None


_modulation.register_autograd(_differentiate_modulation, setup_context=_save_modulation)
