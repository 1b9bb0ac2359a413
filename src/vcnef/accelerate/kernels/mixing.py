"""The matrix by which the attention of wide tokens mixes values, with gradients: M = ((G Wv + k̄ bvᵀ) ∘ m) Wo.

G, k̄ and m are those of `attention`; here they come from plain code.

A program has one head and takes tile after tile: the rows of that head in several sets of tokens, which are as many
rows as tensor cores want. Its weights stay on chip.
"""

# No postponed annotations here: custom operators read their signatures from them.

from collections.abc import Iterator
from math import prod
from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels import formulas, requirements
from vcnef.accelerate.kernels.launch import TILINGS, Weights, floats, launch, pack, shares_of
from vcnef.accelerate.kernels.operation import TRAINING_TOLERANCE, Example, Operation, Sizes
from vcnef.accelerate.kernels.parts import add, cast, columns, dot, matrix, put, put_reversed, reverse, weight, zeros
from vcnef.accelerate.kernels.sums import summed
from vcnef.accelerate.kernels.tiles import own_tiles
from vcnef.accelerate.kernels.weights import Affine

WIDEST = 256
"""Width up to which the weights of a head and two tiles find room on chip."""

HEADS = (16, 32, 64)
"""Features of a head: as many as tensor cores take, and no more than a tile has rows."""


def obstacle(device: torch.device, dtype: torch.dtype, width: int, heads: int) -> str | None:
    """Return why the kernels cannot serve heads of this width, or None."""
    if width > WIDEST or width // heads not in HEADS:
        return f"width {width} with {heads} heads, where at most {WIDEST} in heads of {HEADS} features is served"
    return requirements.obstacle(device, dtype, width, heads, WIDEST)


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
    value, join = _maps(weights, packed)
    sets, tiles, parts, share = _tiles("wide_mixing", gram, heads)
    launch(
        wide_mixing_kernel, parts * heads, gram, key_sum, value, join, state, out, sets, tiles, share,
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
    value, join = _maps(weights, packed)
    sets, tiles, parts, share = _tiles("wide_mixing_backward", gram, heads)
    grad_gram, grad_key_sum = torch.empty_like(gram), torch.empty_like(key_sum)
    weight_sums = floats(gram, parts, _learnt(gram))
    launch(
        wide_mixing_backward_kernel, parts * heads, grad, gram, key_sum, state, value, join, grad_gram, grad_key_sum,
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
    """Return sets of tokens, tiles of several of them, and how many programs of each head take how many tiles."""
    sets = prod(gram.shape[:-2])
    tiles = -(-sets // (TILINGS[kernel].tokens * heads // gram.shape[-1]))
    return sets, tiles, *shares_of(kernel, tiles, gram.device, heads)


def _sizes(kernel: str, gram: Tensor, heads: int) -> dict[str, int]:
    return {"D": gram.shape[-1], "HEADS": heads, "STAGES": TILINGS[kernel].stages}


def _learnt(gram: Tensor) -> int:
    """Return how many numbers there are in the values' weight, the join's and the values' bias, which lie in this
    order."""
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


@triton.jit(do_not_specialize=["sets", "tiles", "share"])
@no_type_check
def wide_mixing_kernel(
    gram, key_sum, value, join_weight, state, mixing, sets, tiles, share,
    D: tl.constexpr, HEADS: tl.constexpr, BLOCK_S: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    HEAD: tl.constexpr = D // HEADS
    head, rows, own, feature = tl.program_id(0) % HEADS, _rows(D, HEAD, BLOCK_S), tl.arange(0, HEAD), columns(D)
    values = weight(value.weight + head * HEAD, feature, (own,), D, D)
    joining = weight(join_weight + head * HEAD * D, (own,), feature, HEAD, D)
    bias = tl.load(value.bias + head * HEAD + own)[None, :]
    begin, end = own_tiles(tl.program_id(0) // HEADS, tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES):
        first, left = _find(tile, head, sets, D, HEAD, BLOCK_S)
        g = matrix(gram + first * D, rows, feature, left, D)
        of_keys = tl.load(key_sum + first + rows, mask=rows < left, other=0.0)[:, None]
        s = cast(add(dot(g, values), (of_keys * bias,)), gram.dtype.element_ty)
        if state is not None:
            put(state + first * HEAD, s, rows, (own,), left, HEAD)
        put(mixing + first * D, dot(s, joining), rows, feature, left, D)


@triton.jit(do_not_specialize=["sets", "tiles", "share"])
@no_type_check
def wide_mixing_backward_kernel(
    grad, gram, key_sum, state, value, join_weight, grad_gram, grad_key_sum, weight_sums, sets, tiles, share,
    D: tl.constexpr, HEADS: tl.constexpr, BLOCK_S: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """`weight_sums` of every part of the tiles are the gradients of the values' weight, the join's and the values'
    bias."""
    HEAD: tl.constexpr = D // HEADS
    head, rows, own, feature = tl.program_id(0) % HEADS, _rows(D, HEAD, BLOCK_S), tl.arange(0, HEAD), columns(D)
    values_back = reverse(weight(value.weight + head * HEAD, feature, (own,), D, D))
    joining_back = reverse(weight(join_weight + head * HEAD * D, (own,), feature, HEAD, D))
    bias = tl.load(value.bias + head * HEAD + own)[None, :]
    of_values, of_join, of_bias = zeros(HEAD, feature), zeros(HEAD, feature), tl.zeros((BLOCK_S, HEAD), tl.float32)
    part = tl.program_id(0) // HEADS
    begin, end = own_tiles(part, tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES, disable_licm=True):
        first, left = _find(tile, head, sets, D, HEAD, BLOCK_S)
        m = matrix(grad + first * D, rows, feature, left, D)
        g = matrix(gram + first * D, rows, feature, left, D)
        s = matrix(state + first * HEAD, rows, (own,), left, HEAD)
        of_keys = tl.load(key_sum + first + rows, mask=rows < left, other=0.0)[:, None]
        back = dot(m, joining_back)
        tl.store(grad_key_sum + first + rows, tl.sum(back[0] * bias, 1), mask=rows < left)
        of_bias += of_keys * back[0]
        back = cast(back, gram.dtype.element_ty)
        put(grad_gram + first * D, dot(back, values_back), rows, feature, left, D)
        of_values = dot((tl.trans(back[0]),), (g,), of_values)
        of_join = dot((tl.trans(s[0]),), (m,), of_join)
    weight_sums += part * D * (2 * D + 1)
    put(weight_sums + head * HEAD * D, of_values, own, feature, HEAD, D)
    put_reversed(weight_sums + D * D + head * HEAD, of_join, own, feature, D, D)
    tl.store(weight_sums + 2 * D * D + head * HEAD + own, tl.sum(of_bias, 0))


@triton.jit
@no_type_check
def _rows(D: tl.constexpr, HEAD: tl.constexpr, BLOCK_S: tl.constexpr):
    """Those of one head in a tile's sets, which have D rows each, counted from the first of them."""
    row = tl.arange(0, BLOCK_S)
    return row // HEAD * D + row % HEAD


@triton.jit
@no_type_check
def _find(tile, head, sets, D: tl.constexpr, HEAD: tl.constexpr, BLOCK_S: tl.constexpr):
    """The first row of a tile, and how many rows there are from there on."""
    first = tl.cast(tile, tl.int64) * (BLOCK_S // HEAD)
    return first * D + head * HEAD, (sets - first) * D


def mixing_baseline(
    gram: Float[Tensor, "*b d d"], key_sum: Float[Tensor, "*b d"], weights: Weights, heads: int
) -> Float[Tensor, "*b d d"]:
    value, bias, join = weights
    return formulas.mixing(gram, key_sum, Affine(value.mT, bias), join.mT, heads)


def examples(sizes: Sizes) -> Iterator[Example]:
    gram = sizes.draw(sizes.batch, sizes.times, sizes.width, sizes.width)
    key_sum = sizes.draw(sizes.batch, sizes.times, sizes.width).abs()
    weights = [*sizes.square(), sizes.square()[0]]
    yield Example("", [gram, key_sum], weights, lambda g, k, *w: (g, k, list(w), sizes.heads))


MIXING = Operation(
    "mixing", mixing, mixing_baseline, obstacle, examples, differentiable=True, tolerance=TRAINING_TOLERANCE
)
