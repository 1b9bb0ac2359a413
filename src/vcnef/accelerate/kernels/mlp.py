"""The MLP of a block with its residual sum and norm, with gradients: LN(Z + W₂ act(W₁ Z + b₁) + b₂)."""

# No postponed annotations here: custom operators read their signatures from them.

from collections.abc import Iterator
from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels import formulas
from vcnef.accelerate.kernels.beside import Beside
from vcnef.accelerate.kernels.launch import (
    TILINGS,
    Weights,
    affine,
    floats,
    launch,
    launch_fetching,
    pack,
    shares_of,
    tiles_of,
    two_like,
)
from vcnef.accelerate.kernels.norms import gelu_slope, put_norm, relu_slope
from vcnef.accelerate.kernels.operation import EPS, TRAINING_TOLERANCE, Example, Operation, Sizes
from vcnef.accelerate.kernels.parts import (
    add,
    as_columns,
    cast,
    columns,
    dot,
    gelu,
    hold,
    matrix,
    product,
    put,
    put_reversed,
    relu,
    reverse,
    times,
    vector,
    weight,
    zeros,
)
from vcnef.accelerate.kernels.requirements import obstacle
from vcnef.accelerate.kernels.residual import through_norm
from vcnef.accelerate.kernels.sums import summed
from vcnef.accelerate.kernels.tiles import fetch
from vcnef.accelerate.kernels.weights import Affine, padded


def mlp(tokens: Float[Tensor, "*b d"], weights: Weights, activation: str, eps: float) -> Float[Tensor, "*b d"]:
    """`weights` of widen, narrow and the norm."""
    return _mlp(tokens.contiguous(), weights, pack(tokens, weights), activation, eps)[0]


@torch.library.custom_op("vcnef::mlp_layer", mutates_args=())
def _mlp(
    tokens: Tensor, weights: list[Tensor], packed: list[Tensor], activation: str, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    found = _empty_mlp(tokens)
    count = found[-1].numel()
    sizes = _mlp_sizes("mlp", weights, activation)
    launch(mlp_kernel, tiles_of("mlp", count), tokens, *found, *affine(weights, packed), count, eps, **sizes)
    return found


@_mlp.register_fake
def _empty_mlp(tokens: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return *two_like(tokens), floats(tokens, *tokens.shape[:-1])


@torch.library.custom_op("vcnef::mlp_layer_gradients", mutates_args=())
def _mlp_backward(
    grad: Tensor,
    tokens: Tensor,
    standard: Tensor,
    inverse: Tensor,
    weights: list[Tensor],
    packed: list[Tensor],
    activation: str,
) -> list[Tensor]:
    count = inverse.numel()
    *maps, norm = affine(weights, packed)
    with Beside(tokens) as beside:
        grad_total, token_sums = through_norm(grad, standard, inverse, norm)
        map_sums = beside(
            _learn_maps, tokens, grad_total, maps, _mlp_sizes("mlp_weights_backward", weights, activation)
        )
        norm_sums = beside(summed, token_sums)
        grad_tokens = torch.empty_like(tokens)
        launch_fetching(
            mlp_backward_kernel, tiles_of("mlp_backward", count), grad_total, tokens, *maps, grad_tokens, count,
            **_mlp_sizes("mlp_backward", weights, activation),
        )  # fmt: skip
        return [grad_tokens, norm_sums, map_sums]


def _learn_maps(tokens: Tensor, grad_total: Tensor, maps: list[Affine], sizes: dict[str, Any]) -> Tensor:
    """Return the gradients of the widening weight, the narrowing one and the widening bias, one after the other."""
    hidden, width = sizes["HIDDEN"], sizes["D"]
    count, chunks = tokens.numel() // width, -(-hidden // sizes["BLOCK_H"])
    tiles = tiles_of("mlp_weights_backward", count)
    parts, share = shares_of("mlp_weights_backward", tiles, tokens.device, chunks)
    sums = floats(tokens, parts, hidden * (2 * width + 1))
    launch(
        mlp_weights_backward_kernel, parts * chunks, tokens, grad_total, *maps, sums, count, share, **sizes
    )  # fmt: skip
    return summed(sums)


@_mlp_backward.register_fake
def _(grad: Tensor, tokens: Tensor, standard: Tensor, inverse: Tensor, weights: list[Tensor], *_: Any) -> list[Tensor]:
    hidden, width = weights[0].shape
    return [torch.empty_like(tokens), floats(tokens, 3 * width), floats(tokens, hidden * (2 * width + 1))]


def _mlp_sizes(kernel: str, weights: list[Tensor], activation: str) -> dict[str, Any]:
    hidden, width = weights[0].shape
    at_a_time = min(TILINGS[kernel].hidden, padded(hidden))
    return {"D": width, "HIDDEN": hidden, "GELU": activation == "gelu", "BLOCK_H": at_a_time}


def _save_mlp(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    tokens, weights, packed, ctx.activation, _ = inputs
    ctx.save_for_backward(tokens, *output[1:], *packed, *weights)


def _differentiate_mlp(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    tokens, standard, inverse, *saved = ctx.saved_tensors
    packed, weights = saved[:2], saved[2:]
    found = _mlp_backward(grad.contiguous(), tokens, standard, inverse, weights, packed, ctx.activation)
    grad_tokens, sums, maps = found
    hidden, width = weights[0].shape
    scale, shift, narrow_bias = sums.chunk(3)
    widen, narrow, widen_bias = maps.split([hidden * width, hidden * width, hidden])
    grads = [widen.view(hidden, width), widen_bias, narrow.view(width, hidden), narrow_bias, scale, shift]
    return grad_tokens, grads, [None] * 2, None, None


_mlp.register_autograd(_differentiate_mlp, setup_context=_save_mlp)


@triton.jit(do_not_specialize=["count", "eps"])
@no_type_check
def mlp_kernel(
    tokens, out, standard, inverse, widen, narrow, layer_norm, count, eps,
    D: tl.constexpr, HIDDEN: tl.constexpr, GELU: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    x = matrix(tokens + start * D, rows, feature, left, D)
    total = add(cast(x, tl.float32), vector(narrow.bias, feature, D))
    for first in range(0, HIDDEN, BLOCK_H):
        chunk = (first + tl.arange(0, BLOCK_H),)
        hidden = product(x, widen, feature, chunk, D, HIDDEN)
        hidden = gelu(hidden) if GELU else relu(hidden)
        total = dot(hidden, weight(narrow.weight, chunk, feature, HIDDEN, D), total)
    put_norm(total, out + start * D, standard + start * D, inverse + start, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["count", "ahead"])
@no_type_check
def mlp_backward_kernel(
    grad_total, tokens, widen, narrow, grad_tokens, count, ahead,
    D: tl.constexpr, HIDDEN: tl.constexpr, GELU: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    at = start * D
    fetch((grad_total, tokens), at + ahead * (BLOCK_S * D), tl.cast(count, tl.int64) * D, BLOCK_S * D)
    g = matrix(grad_total + at, rows, feature, left, D)
    x = matrix(tokens + at, rows, feature, left, D)
    total = cast(hold(g, left), tl.float32)
    for first in range(0, HIDDEN, BLOCK_H):
        chunk = (first + tl.arange(0, BLOCK_H),)
        widening = weight(widen.weight, feature, chunk, D, HIDDEN)
        before = add(dot(x, widening), vector(widen.bias, chunk, HIDDEN))
        back = dot(g, reverse(weight(narrow.weight, chunk, feature, HIDDEN, D)))
        back = times(back, gelu_slope(before) if GELU else relu_slope(before))
        total = dot(back, reverse(widening), total)
    put(grad_tokens + at, total, rows, feature, left, D)


@triton.jit(do_not_specialize=["count", "share"])
@no_type_check
def mlp_weights_backward_kernel(
    tokens, grad_total, widen, narrow, sums, count, share,
    D: tl.constexpr, HIDDEN: tl.constexpr, GELU: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """One program per `share` of the tiles and chunk of hidden features, whose weights stay on chip: to compute these
    features again is cheaper than to store them, four times as wide as tokens, and read them back.

    Features are rows here, so that products leave them where the next ones read their left side, in registers.
    `sums` of every share are the gradients of the widening map's weight and bias, and of the narrowing weight."""
    CHUNKS: tl.constexpr = (HIDDEN + BLOCK_H - 1) // BLOCK_H
    part = (tl.program_id(0) // CHUNKS).to(tl.int64)
    own, feature = tl.program_id(0) % CHUNKS * BLOCK_H + tl.arange(0, BLOCK_H), columns(D)
    operands = widen.weight.dtype.element_ty
    widening = reverse(weight(widen.weight, feature, (own,), D, HIDDEN))[0]
    narrowing = weight(narrow.weight, (own,), feature, HIDDEN, D)[0]
    bias = tl.load(widen.bias + own, mask=own < HIDDEN, other=0.0)[:, None]

    grad_widen, grad_narrow = zeros(BLOCK_H, feature), zeros(BLOCK_H, feature)
    grad_bias = tl.zeros((BLOCK_H,), tl.float32)
    end = tl.minimum((part + 1) * share * BLOCK_S, count)
    for start in range(part * share * BLOCK_S, end, BLOCK_S):
        rows, at = tl.arange(0, BLOCK_S), start * D
        x = matrix(tokens + at, rows, feature, end - start, D)
        g = matrix(grad_total + at, rows, feature, end - start, D)
        before = add(dot(widening, as_columns(x)), (bias,))
        back = dot(narrowing, as_columns(g))
        back = times(back, gelu_slope(before) if GELU else relu_slope(before))
        after = gelu(before) if GELU else relu(before)
        grad_bias += tl.sum(back[0], 1)
        grad_widen = dot(cast(back, operands), (x,), grad_widen)
        grad_narrow = dot(cast(after, operands), (g,), grad_narrow)

    sums += part * HIDDEN * (2 * D + 1)
    put(sums, grad_widen, own, feature, HIDDEN, D)
    put_reversed(sums + HIDDEN * D, grad_narrow, own, feature, HIDDEN, D)
    tl.store(sums + 2 * HIDDEN * D + own, grad_bias, mask=own < HIDDEN)


def mlp_baseline(tokens: Float[Tensor, "*b d"], weights: Weights, activation: str, eps: float) -> Float[Tensor, "*b d"]:
    widen, narrow, norm = formulas.pairs(weights)
    return formulas.norm(formulas.mlp(tokens, widen, narrow, activation), norm, eps)


def examples(sizes: Sizes) -> Iterator[Example]:
    width = sizes.width
    weights = [*sizes.linear(width, 4 * width), *sizes.linear(4 * width, width), *sizes.norm()]
    yield Example(sizes.activation, [sizes.tokens()], weights, lambda x, *w: (x, list(w), sizes.activation, EPS))


MLP = Operation("mlp", mlp, mlp_baseline, obstacle, examples, differentiable=True, tolerance=TRAINING_TOLERANCE)
