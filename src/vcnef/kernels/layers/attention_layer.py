"""Attention with its norm, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.beside import Beside
from vcnef.kernels.layers.launch import (
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
from vcnef.kernels.layers.residual_layer import through_norm
from vcnef.kernels.layers.sums import map_grad, summed, weight_grads
from vcnef.kernels.weights import head_maps, padded


def attention(
    tokens: Float[Tensor, "*b s d"], extra: Float[Tensor, "*b s d"] | None, weights: Weights, heads: int, eps: float
) -> Float[Tensor, "*b s d"]:
    """`weights` of query, key, value, join and the norm; `extra` joins the attention's output."""
    return _attention(tokens.contiguous(), like(extra, tokens), weights, pack(tokens, weights), heads, eps)[0]


@torch.library.custom_op("vcnef::token_attention", mutates_args=())
def _attention(
    tokens: Tensor, extra: Tensor | None, weights: list[Tensor], packed: list[Tensor], heads: int, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    from vcnef.kernels import modulation_triton as inference
    from vcnef.kernels.layers import attention_triton as kernels

    found = _empty_attention(tokens, extra, weights, packed, heads)
    out, standard, inverse, normalised, normaliser, gram_and_state, mixing, key_mean = found
    query, key, value, join, norm = affine(weights, packed)
    points, width, rows = *tokens.shape[-2:], len(key_mean)
    launch(
        inference.mix, rows, tokens, *gram_and_state, mixing, key_mean, key, value, join.weight, points,
        D=width, HEAD=width // heads, BLOCK_D=padded(width),
    )  # fmt: skip
    launch_in_turn(
        kernels.attention, rows * tiles_of("attention", points), tokens, mixing, key_mean, extra, out, standard,
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
    from vcnef.kernels.layers import attention_triton as kernels

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
            kernels.attention_backward, rows * per_row, grad_total, normalised, normaliser, mixing, key_mean,
            query.weight, head_maps(width, heads, tokens.dtype, tokens.device), grad_queries, grad_tokens, mean_sums,
            points, HEADS=heads, D=width,
        )  # fmt: skip
        of_queries = beside(map_grad, tokens, grad_queries)

        of_state_and_mixing, grad_gram = torch.empty_like(gram_and_state), torch.empty_like(mixing)
        grad_state, grad_mixing = of_state_and_mixing
        grad_key_sum, value_sums = two_like(key_mean)
        launch(
            kernels.mixing_backward, rows, normalised, grad_total, mean_sums, key_mean, value, join.weight, grad_mixing,
            grad_state, grad_gram, grad_key_sum, value_sums, per_row, points,
            D=width, HEAD=width // heads, BLOCK_D=padded(width),
        )  # fmt: skip
        of_values_and_join = beside(weight_grads, gram_and_state, of_state_and_mixing)
        of_values_bias = beside(summed, value_sums)

        tiles = rows * tiles_of("keys_backward", points)
        programs, _ = shares_of("keys_backward", tiles, tokens.device)
        key_sums = floats(tokens, programs, width * (width + 1))
        launch_in_turn(
            kernels.keys_backward, tiles, tokens, grad_gram, grad_key_sum, key, grad_tokens, key_sums, points,
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
