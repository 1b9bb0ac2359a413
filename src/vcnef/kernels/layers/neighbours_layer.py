"""Mixing of neighbours on periodic grids of tokens, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from collections.abc import Sequence
from itertools import islice
from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.launch import floats, launch
from vcnef.kernels.layers.sums import summed
from vcnef.kernels.local import Stencil, enumerate_volumes, mix_neighbours

FEATURES = 32
"""Of a program that sums the gradients of weights: those of all taps stay in registers."""

PIECE = 512
"""Tokens of such a program."""


def neighbours(tokens: Float[Tensor, "*b s d"], stencils: Sequence[Stencil]) -> Float[Tensor, "*b s d"]:
    """By the stencils of the grids whose tokens stand in one row."""
    volumes = [each.in_volume() for each in stencils]
    offsets = [step for each in volumes for offset in each.offsets for step in offset]
    sides, taps = [side for each in volumes for side in each.sides], [len(each.offsets) for each in volumes]
    return _neighbours(tokens.contiguous(), torch.cat([each.weight for each in volumes]), offsets, sides, taps)


@torch.library.custom_op("vcnef::neighbours_layer", mutates_args=())
def _neighbours(tokens: Tensor, weight: Tensor, offsets: list[int], sides: list[int], taps: list[int]) -> Tensor:
    return mix_neighbours(tokens, _stencils(weight, offsets, sides, taps), tokens.dtype)


@_neighbours.register_fake
def _(tokens: Tensor, weight: Tensor, offsets: list[int], sides: list[int], taps: list[int]) -> Tensor:
    return torch.empty_like(tokens)


@torch.library.custom_op("vcnef::neighbours_layer_backward", mutates_args=())
def _neighbours_backward(
    grad: Tensor, tokens: Tensor, weight: Tensor, offsets: list[int], sides: list[int], taps: list[int]
) -> tuple[Tensor, Tensor]:
    stencils = _stencils(weight, offsets, sides, taps)
    grad_weight = torch.cat([_weight_grad(grad, tokens, *each) for each in enumerate_volumes(stencils)])
    # z_(i + o) reaches out_i, so what comes back to z_j is from j − o.
    back = _stencils(weight, [-offset for offset in offsets], sides, taps)
    return mix_neighbours(grad, back, grad.dtype), grad_weight


@_neighbours_backward.register_fake
def _(
    grad: Tensor, tokens: Tensor, weight: Tensor, offsets: list[int], sides: list[int], taps: list[int]
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(tokens), torch.empty_like(weight)


def _stencils(weight: Tensor, offsets: list[int], sides: list[int], taps: list[int]) -> list[Stencil]:
    places = iter(_threes(offsets))
    return [
        Stencil(volume, tuple(islice(places, count)), part, periodic=True)
        for volume, count, part in zip(_threes(sides), taps, weight.split(taps), strict=True)
    ]


def _threes(values: list[int]) -> list[tuple[int, ...]]:
    return [tuple(values[start : start + 3]) for start in range(0, len(values), 3)]


def _weight_grad(grad: Tensor, tokens: Tensor, first: int, stencil: Stencil) -> Tensor:
    from vcnef.kernels.layers import neighbours_triton as kernels

    points, (taps, width) = tokens.shape[-2], stencil.weight.shape
    pieces = tokens.numel() // (points * width) * -(-prod(stencil.sides) // PIECE)
    weight_sums = floats(tokens, pieces, taps, width)
    launch(
        kernels.neighbours_backward, pieces * -(-width // FEATURES),
        *(grad, tokens, weight_sums, stencil.table(), points, first, *stencil.sides),
        TAPS=taps, BLOCK_TAPS=1 << (taps - 1).bit_length(), D=width, BLOCK_D=FEATURES, PIECE=PIECE,
    )  # fmt: skip
    return summed(weight_sums.flatten(1)).view(taps, width)


def _save(ctx: Any, inputs: tuple, output: Tensor) -> None:
    tokens, weight, *ctx.sizes = inputs
    ctx.save_for_backward(tokens, weight)


def _differentiate(ctx: Any, grad: Tensor) -> tuple:
    return *_neighbours_backward(grad.contiguous(), *ctx.saved_tensors, *ctx.sizes), None, None, None


_neighbours.register_autograd(_differentiate, setup_context=_save)
