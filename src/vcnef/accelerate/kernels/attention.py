"""Attention with its residual sum and norm, with gradients.

With φ = ELU + 1, s tokens X of one sample and time, and m the matrix of ones within a head, zeros between heads:

    K = φ(X Wk + bk),  k̄ = mean K,  G = KᵀX/s,  S = (G Wv + k̄ bvᵀ) ∘ m,  M = S Wo,
    Q = φ(X Wq + bq),  LN(X + (Q / (Q (k̄ ∘ m))) M + bo + extra)

`mix` computes M and k̄; they are means where the attention has sums, which makes the same quotient.

Of this and the other operations with gradients (`modulation`, `mlp`, `residual`, `activation`, `mixing`, `decoder`,
`neighbours`), each is a custom operator, which compilers leave as it is. Tokens come and go in the type of the operands
of products; norms, sums, the last map of a decoder and the gradients of weights are in fp32. For the backward pass an
operation keeps its input and the normalised input of its norm (mean 0, variance 1); an attention also keeps
Q / (Q (k̄ ∘ m)), its normaliser, G and S, M and k̄, and `mixing` keeps S. Everything else is computed again.
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

from vcnef.accelerate.kernels import formulas
from vcnef.accelerate.kernels.beside import Beside
from vcnef.accelerate.kernels.heads import gather, head_values, inverse_head_sums, put_heads, spread, within_heads
from vcnef.accelerate.kernels.launch import (
    Weights,
    affine,
    floats,
    launch,
    launch_in_turn,
    like,
    pack,
    shares_of,
    tiles_of,
    two_like,
)
from vcnef.accelerate.kernels.mix import mix_kernel
from vcnef.accelerate.kernels.norms import ALIKE, ones, positive_slope, put_column, put_norm, put_total
from vcnef.accelerate.kernels.operation import EPS, TRAINING_TOLERANCE, Example, Operation, Sizes
from vcnef.accelerate.kernels.parts import (
    add,
    as_columns,
    cast,
    columns,
    dot,
    matrix,
    positive,
    put,
    reverse,
    scaled,
    smaller,
    sums,
    times,
    vector,
    weight,
    zeros,
)
from vcnef.accelerate.kernels.requirements import obstacle
from vcnef.accelerate.kernels.residual import through_norm
from vcnef.accelerate.kernels.sums import map_grad, summed, weight_grads
from vcnef.accelerate.kernels.tiles import own_tiles, place
from vcnef.accelerate.kernels.weights import head_maps, padded


def attention(
    tokens: Float[Tensor, "*b s d"], extra: Float[Tensor, "*b s d"] | None, weights: Weights, heads: int, eps: float
) -> Float[Tensor, "*b s d"]:
    """`weights` of query, key, value, join and the norm; `extra` joins the attention's output."""
    return _attention(tokens.contiguous(), like(extra, tokens), weights, pack(tokens, weights), heads, eps)[0]


@torch.library.custom_op("vcnef::token_attention", mutates_args=())
def _attention(
    tokens: Tensor, extra: Tensor | None, weights: list[Tensor], packed: list[Tensor], heads: int, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    found = _empty_attention(tokens, extra, weights, packed, heads)
    out, standard, inverse, normalised, normaliser, gram_and_state, mixing, key_mean = found
    query, key, value, join, norm = affine(weights, packed)
    points, width, rows = *tokens.shape[-2:], len(key_mean)
    launch(
        mix_kernel, rows, tokens, *gram_and_state, mixing, key_mean, key, value, join.weight, points,
        D=width, HEAD=width // heads, BLOCK_D=padded(width),
    )  # fmt: skip
    launch_in_turn(
        attention_kernel, rows * tiles_of("attention", points), tokens, mixing, key_mean, extra, out, standard,
        inverse, normalised, normaliser, query, join.bias, norm,
        head_maps(width, heads, tokens.dtype, tokens.device), points, eps, HEADS=heads, D=width,
    )  # fmt: skip
    return found


@_attention.register_fake
def _empty_attention(tokens: Tensor, extra: Any, weights: Any, packed: Any, heads: int, *_: Any) -> tuple[Tensor, ...]:
    *batch, points, width = tokens.shape
    rows, square = prod(batch), (prod(batch), width, width)
    norm = *two_like(tokens), floats(tokens, *batch, points)
    shares = torch.empty_like(tokens), floats(tokens, *batch, points, heads)
    return *norm, *shares, tokens.new_empty(2, *square), tokens.new_empty(square), floats(tokens, rows, width)


@torch.library.custom_op("vcnef::token_attention_backward", mutates_args=())
def _attention_backward(
    grad: Tensor, tokens: Tensor, weights: list[Tensor], packed: list[Tensor], saved: list[Tensor], heads: int
) -> list[Tensor]:
    standard, inverse, normalised, normaliser, gram_and_state, mixing, key_mean = saved
    query, key, value, join, norm = affine(weights, packed)
    points, width, rows = *tokens.shape[-2:], len(key_mean)
    with Beside(tokens) as beside:
        grad_total, token_sums = through_norm(grad, standard, inverse, norm)
        norm_sums = beside(summed, token_sums)
        grad_queries, grad_tokens = two_like(tokens)
        per_row = tiles_of("attention_backward", points)
        mean_sums = floats(tokens, rows * per_row, width)
        launch_in_turn(
            attention_backward_kernel, rows * per_row, grad_total, normalised, normaliser, mixing, key_mean,
            query.weight, head_maps(width, heads, tokens.dtype, tokens.device), grad_queries, grad_tokens, mean_sums,
            points, HEADS=heads, D=width,
        )  # fmt: skip
        of_queries = beside(map_grad, tokens, grad_queries)

        of_state_and_mixing, grad_gram = torch.empty_like(gram_and_state), torch.empty_like(mixing)
        grad_state, grad_mixing = of_state_and_mixing
        grad_key_sum, value_sums = two_like(key_mean)
        launch(
            mixing_backward_kernel, rows, normalised, grad_total, mean_sums, key_mean, value, join.weight, grad_mixing,
            grad_state, grad_gram, grad_key_sum, value_sums, per_row, points,
            D=width, HEAD=width // heads, BLOCK_D=padded(width),
        )  # fmt: skip
        of_values_and_join = beside(weight_grads, gram_and_state, of_state_and_mixing)
        of_values_bias = beside(summed, value_sums)

        tiles = rows * tiles_of("keys_backward", points)
        programs, _ = shares_of("keys_backward", tiles, tokens.device)
        key_sums = floats(tokens, programs, width * (width + 1))
        launch_in_turn(
            keys_backward_kernel, tiles, tokens, grad_gram, grad_key_sum, key, grad_tokens, key_sums, points,
            D=width, BLOCK_D=padded(width),
        )  # fmt: skip
        of_keys = summed(key_sums).view(width + 1, width)
        return [grad_tokens, grad_total, norm_sums, of_queries, of_keys, of_values_and_join, of_values_bias]


@_attention_backward.register_fake
def _(grad: Tensor, tokens: Tensor, weights: list[Tensor], *_: Any) -> list[Tensor]:
    width = tokens.shape[-1]
    queries, keys = (floats(tokens, width + 1, width) for _ in range(2))
    values_and_join = floats(tokens, 2, width, width), floats(tokens, width)
    return [*two_like(tokens), floats(tokens, 3 * width), queries, keys, *values_and_join]


def _save_attention(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    tokens, extra, weights, packed, ctx.heads, _ = inputs
    ctx.extra = extra is not None
    ctx.save_for_backward(tokens, *weights, *packed, *output[1:])


def _differentiate_attention(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    tokens, *saved = ctx.saved_tensors
    weights, packed, saved = saved[:10], saved[10:14], saved[14:]
    found = _attention_backward(grad.contiguous(), tokens, weights, packed, saved, ctx.heads)
    grad_tokens, grad_extra, norm_sums, query, key, (value, join), value_bias = found
    scale, shift, join_bias = norm_sums.chunk(3)
    grads = [query[:-1], query[-1], key[:-1], key[-1], value, value_bias, join, join_bias, scale, shift]
    return grad_tokens, grad_extra if ctx.extra else None, grads, [None] * 4, None, None


_attention.register_autograd(_differentiate_attention, setup_context=_save_attention)


@triton.jit(do_not_specialize=["points", "eps", "tiles", "share"])
@no_type_check
def attention_kernel(
    tokens, mixing, key_mean, extra, out, standard, inverse, normalised, normaliser, query, join_bias, layer_norm,
    heads, points, eps, tiles, share,
    HEADS: tl.constexpr, D: tl.constexpr, BLOCK_S: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    rows, feature = tl.arange(0, BLOCK_S), columns(D)
    query_weight = weight(query.weight, feature, feature, D, D)
    begin, end = own_tiles(tl.program_id(0), tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES):
        row, first = place(tile, points, BLOCK_S)
        left, where = points - first, row * points + first
        at = where * D
        x = matrix(tokens + at, rows, feature, left, D)
        queries = positive(add(dot(x, query_weight), vector(query.bias, feature, D)))
        weighted = times(queries, vector(key_mean + row * D, feature, D))
        inverse_sum = inverse_head_sums(weighted, heads, feature, points, D, HEADS)
        put_heads(normaliser + where * HEADS, inverse_sum, rows, left, HEADS)
        weights = cast(times(queries, spread(inverse_sum, heads, feature, D, HEADS)), x[0].dtype)
        put(normalised + at, weights, rows, feature, left, D)
        total = dot(weights, weight(mixing + row * D * D, feature, feature, D, D), cast(x, tl.float32))
        total = add(total, vector(join_bias, feature, D))
        if extra is not None:
            total = add(total, cast(matrix(extra + at, rows, feature, left, D), tl.float32))
        put_norm(total, out + at, standard + at, inverse + where, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["points", "tiles", "share"])
@no_type_check
def attention_backward_kernel(
    grad_total, normalised, normaliser, mixing, key_mean, query_weight, heads, grad_queries, grad_tokens, mean_sums,
    points, tiles, share,
    HEADS: tl.constexpr, D: tl.constexpr, BLOCK_S: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """As far as M and k̄, from w = Q / (Q (k̄ ∘ m)) and r, 1 over that sum: with b the gradient of w and h = Σ b ∘ w
    over a head, that of the queries' logits is (b − h k̄) ∘ min(w, r), and that of k̄ is −Σ h w over tokens.

    `grad_queries` has these; `grad_tokens` is that of the tokens but for what comes through the keys."""
    rows, feature = tl.arange(0, BLOCK_S), columns(D)
    operands = mixing.dtype.element_ty
    query_back = reverse(weight(query_weight, feature, feature, D, D))
    begin, end = own_tiles(tl.program_id(0), tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES, disable_licm=True):
        row, first = place(tile, points, BLOCK_S)
        left, where = points - first, row * points + first
        at = where * D
        total = matrix(grad_total + at, rows, feature, left, D)
        w = cast(matrix(normalised + at, rows, feature, left, D), tl.float32)
        inverse_sum = head_values(normaliser + where * HEADS, rows, left, HEADS)
        back = dot(total, reverse(weight(mixing + row * D * D, feature, feature, D, D)))
        # The gradient of the normaliser is the same for all features of a head.
        shared = spread(gather(times(back, w), heads, feature, D, HEADS), heads, feature, D, HEADS)
        put_total(mean_sums + tl.cast(tile, tl.int64) * D, cast(scaled(times(w, shared), -1.0), operands), feature, D)
        back = add(back, scaled(times(vector(key_mean + row * D, feature, D), shared), -1.0))
        slope = smaller(w, spread(inverse_sum, heads, feature, D, HEADS))
        back = cast(times(back, slope), operands)
        put(grad_queries + at, back, rows, feature, left, D)
        put(grad_tokens + at, dot(back, query_back, cast(total, tl.float32)), rows, feature, left, D)


@triton.jit(do_not_specialize=["tiles", "points"])
@no_type_check
def mixing_backward_kernel(
    normalised, grad_total, mean_sums, key_mean, value, join_weight, grad_mixing, grad_state, grad_gram, grad_key_sum,
    bias_sums, tiles, points,
    D: tl.constexpr, HEAD: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One program per sample and time: the gradient of M and, from it and that of k̄, those of Kᵀ X and the sum of K.

    `mean_sums` are what each of its tiles has of k̄'s gradient; `bias_sums` is that of the values' bias."""
    row = tl.program_id(0).to(tl.int64)
    feature, whole = columns(D), tl.arange(0, BLOCK_D)
    operands = value.weight.dtype.element_ty
    square = row * D * D
    mean = tl.load(key_mean + row * D + whole, mask=whole < D, other=0.0)
    grad_mean = tl.zeros((BLOCK_D,), tl.float32)
    for tile in range(tiles):
        grad_mean += tl.load(mean_sums + (row * tiles + tile) * D + whole, mask=whole < D, other=0.0)
    grad = zeros(BLOCK_D, feature)
    for first in range(0, points, BLOCK_S):
        rows, left, at = tl.arange(0, BLOCK_S), points - first, (row * points + first) * D
        w = matrix(normalised + at, rows, (whole,), left, D)
        grad = dot(as_columns(w)[0], (matrix(grad_total + at, rows, feature, left, D),), grad)
    grad = cast(grad, operands)
    put(grad_mixing + square, grad, whole, feature, D, D)
    state = dot(grad, reverse(weight(join_weight, feature, feature, D, D)))
    state = within_heads(state, whole, feature, HEAD)
    grad_mean += sums(times(state, vector(value.bias, feature, D)))
    tl.store(grad_key_sum + row * D + whole, grad_mean / points, mask=whole < D)
    state = cast(state, operands)
    put(grad_state + square, state, whole, feature, D, D)
    put_total(bias_sums + row * D, state, feature, D, mean)
    gram = dot(state, reverse(weight(value.weight, feature, feature, D, D)))
    put(grad_gram + square, scaled(gram, 1.0 / points), whole, feature, D, D)


@triton.jit(do_not_specialize=["points", "tiles", "share"])
@no_type_check
def keys_backward_kernel(
    tokens, grad_gram, grad_key_sum, key, grad_tokens, key_sums, points, tiles, share,
    D: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_S: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Through Kᵀ X and the sum of K. `grad_tokens` has the rest already; `key_sums` of every program are the gradients
    of the keys' weight and bias.

    Keys and their gradients have features as rows, so that they are in registers where the weight's is made of them."""
    rows, feature, whole = tl.arange(0, BLOCK_S), columns(D), tl.arange(0, BLOCK_D)
    operands = tokens.dtype.element_ty
    key_weight = reverse(weight(key.weight, feature, (whole,), D, D))[0]
    key_bias = tl.load(key.bias + whole, mask=whole < D, other=0.0)[:, None]
    all_tokens = ones(BLOCK_S, operands)
    grad_weight, grad_bias = zeros(BLOCK_D, feature), zeros(BLOCK_D, columns(ALIKE))
    begin, end = own_tiles(tl.program_id(0), tiles, share)
    for tile in tl.range(begin, end, num_stages=STAGES, disable_licm=True):
        row, first = place(tile, points, BLOCK_S)
        left, at = points - first, (row * points + first) * D
        x = matrix(tokens + at, rows, feature, left, D)
        gram = weight(grad_gram + row * D * D, (whole,), feature, D, D)
        key_sum = tl.load(grad_key_sum + row * D + whole, mask=whole < D, other=0.0)[:, None]
        keys = positive(add(dot(key_weight, as_columns(x)), (key_bias,)))
        back = times(add(dot(gram[0], as_columns(x)), (key_sum,)), positive_slope(keys))
        # Tokens beyond the last have keys, but no gradient.
        back = (tl.where((rows < left)[None, :], back[0], 0.0).to(operands),)
        grad_bias = dot(back, all_tokens, grad_bias)
        grad_weight = dot(back, (x,), grad_weight)
        total = cast(matrix(grad_tokens + at, rows, feature, left, D), tl.float32)
        total = dot((tl.trans(back[0]),), (key_weight,), total)
        total = dot((tl.trans(keys[0].to(operands)),), gram, total)
        put(grad_tokens + at, total, rows, feature, left, D)
    key_sums += tl.program_id(0) * D * (D + 1)
    put(key_sums, grad_weight, whole, feature, D, D)
    put_column(key_sums + D * D, grad_bias, whole, D)


def attention_baseline(
    tokens: Float[Tensor, "*b s d"], extra: Float[Tensor, "*b s d"] | None, weights: Weights, heads: int, eps: float
) -> Float[Tensor, "*b s d"]:
    query, key, value, join, norm = formulas.pairs(weights)
    mixing, key_mean = formulas.mix(tokens, key, value, join.weight, heads)
    total = formulas.attend(tokens, mixing, key_mean, query, join.bias, heads)
    return formulas.norm(total if extra is None else total + extra, norm, eps)


def examples(sizes: Sizes) -> Iterator[Example]:
    weights = [*sizes.square(), *sizes.square(), *sizes.square(), *sizes.square(), *sizes.norm()]
    yield Example("alone", [sizes.tokens()], weights, lambda x, *w: (x, None, list(w), sizes.heads, EPS))
    data = [sizes.tokens(), sizes.tokens()]
    yield Example("with extra", data, weights, lambda x, extra, *w: (x, extra, list(w), sizes.heads, EPS))


ATTENTION = Operation(
    "attention", attention, attention_baseline, obstacle, examples, differentiable=True, tolerance=TRAINING_TOLERANCE
)
