"""What a wide attention mixes values by, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.launch import TILINGS, Weights, floats, launch, pack, shares_of
from vcnef.kernels.layers.sums import summed
from vcnef.kernels.weights import Affine

WIDEST = 256
"""Width up to which the weights of a head and two tiles find room on chip."""
HEADS = (16, 32, 64)
"""Features of a head: as many as tensor cores take, and no more than a tile has rows."""


def serves_mixing(width: int, heads: int) -> bool:
    """Whether the kernels have heads of this width."""
    return width <= WIDEST and width // heads in HEADS


def mixing(
    gram: Float[Tensor, "*b d d"], key_sum: Float[Tensor, "*b d"], weights: Weights, heads: int
) -> Float[Tensor, "*b d d"]:
    """`weights` of value, and that of join without its bias."""
    given = gram.contiguous(), key_sum.float().contiguous(), weights, pack(gram, weights)
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return _mixing(*given, heads)[0]
    # An operator would cost the host more than the kernel costs the GPU.
    out = torch.empty_like(given[0])
    _launch(*given, None, out, heads)
    return out


def _launch(
    gram: Tensor,
    key_sum: Tensor,
    weights: list[Tensor],
    packed: list[Tensor],
    state: Tensor | None,
    out: Tensor,
    heads: int,
) -> None:
    from vcnef.kernels.layers import mixing_triton as kernels

    value, join = _maps(weights, packed)
    sets, tiles, parts, share = _tiles("wide_mixing", gram, heads)
    launch(
        kernels.wide_mixing, parts * heads, gram, key_sum, value, join, state, out, sets, tiles, share,
        **_sizes("wide_mixing", gram, heads),
    )  # fmt: skip


@torch.library.custom_op("vcnef::wide_mixing", mutates_args=())
def _mixing(
    gram: Tensor, key_sum: Tensor, weights: list[Tensor], packed: list[Tensor], heads: int
) -> tuple[Tensor, Tensor]:
    out, state = _empty(gram, key_sum, weights, packed, heads)
    _launch(gram, key_sum, weights, packed, state, out, heads)
    return out, state


@_mixing.register_fake
def _empty(gram: Tensor, key_sum: Any, weights: Any, packed: Any, heads: int) -> tuple[Tensor, Tensor]:
    *rows, width = gram.shape
    return torch.empty_like(gram), gram.new_empty(*rows, width // heads)


@torch.library.custom_op("vcnef::wide_mixing_backward", mutates_args=())
def _mixing_backward(
    grad: Tensor,
    gram: Tensor,
    key_sum: Tensor,
    state: Tensor,
    weights: list[Tensor],
    packed: list[Tensor],
    heads: int,
) -> tuple[Tensor, Tensor, Tensor]:
    from vcnef.kernels.layers import mixing_triton as kernels

    value, join = _maps(weights, packed)
    sets, tiles, parts, share = _tiles("wide_mixing_backward", gram, heads)
    grad_gram, grad_key_sum = torch.empty_like(gram), torch.empty_like(key_sum)
    weight_sums = floats(gram, parts, _learnt(gram))
    launch(
        kernels.wide_mixing_backward, parts * heads, grad, gram, key_sum, state, value, join, grad_gram, grad_key_sum,
        weight_sums, sets, tiles, share, **_sizes("wide_mixing_backward", gram, heads),
    )  # fmt: skip
    return grad_gram, grad_key_sum, summed(weight_sums)


@_mixing_backward.register_fake
def _(grad: Tensor, gram: Tensor, key_sum: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(gram), torch.empty_like(key_sum), floats(gram, _learnt(gram))


def _maps(weights: list[Tensor], packed: list[Tensor]) -> tuple[Affine, Tensor]:
    value, join = packed
    return Affine(value, weights[1]), join


def _tiles(kernel: str, gram: Tensor, heads: int) -> tuple[int, int, int, int]:
    """Sets of tokens, tiles of several of them, and how many programs of each head take how many tiles."""
    sets = prod(gram.shape[:-2])
    tiles = -(-sets // (TILINGS[kernel].tokens * heads // gram.shape[-1]))
    return sets, tiles, *shares_of(kernel, tiles, gram.device, heads)


def _sizes(kernel: str, gram: Tensor, heads: int) -> dict[str, int]:
    return {"D": gram.shape[-1], "HEADS": heads, "STAGES": TILINGS[kernel].stages}


def _learnt(gram: Tensor) -> int:
    """Numbers of the values' weight, the join's and the values' bias, which lie in this order."""
    return gram.shape[-1] * (2 * gram.shape[-1] + 1)


def _save(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    gram, key_sum, weights, packed, ctx.heads = inputs
    ctx.save_for_backward(gram, key_sum, output[1], *weights, *packed)


def _differentiate(ctx: Any, grad: Tensor, _: Any) -> tuple:
    gram, key_sum, state, *saved = ctx.saved_tensors
    grad_gram, grad_key_sum, sums = _mixing_backward(
        grad.contiguous(), gram, key_sum, state, saved[:3], saved[3:], ctx.heads
    )
    width = gram.shape[-1]
    value, join, bias = sums.split([width * width, width * width, width])
    return grad_gram, grad_key_sum, [value.view(width, width), bias, join.view(width, width)], [None] * 2, None


_mixing.register_autograd(_differentiate, setup_context=_save)
