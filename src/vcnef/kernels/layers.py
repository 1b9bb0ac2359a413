"""The layers of a block as fused kernels with gradients, for training.

With φ = ELU + 1, tokens X of one sample and time, and m the matrix of ones within a head, zeros between heads:

    attention    K = φ(X Wk + bk),  k̄ = mean K,  G = KᵀX/s,  S = (G Wv + k̄ bvᵀ) ∘ m,  M = S Wo,
                 Q = φ(X Wq + bq),  LN(X + (Q / (Q (k̄ ∘ m))) M + bo + extra)
    modulation   LN(Y + (F ∘ C) W + b),  F = φ(Y Ws + bs), or given with Y for all times at once
    mlp          LN(Z + W₂ act(W₁ Z + b₁) + b₂)

Each is an operator of its own, which compilers leave as it is. Tokens come and go in the operands' type; norms, sums
and the gradients of weights are in fp32. What is kept for the backward pass is, beside a layer's input, the input of
its norm with mean 0 and variance 1; everything else is computed again there. What is right is what the modules of `nn`
compute, and their gradients.
"""

from functools import cache
from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.weights import Affine, padded

TILES = {
    "mix": (64, 8, 128),
    "attention": (64, 4, 168),
    "attention_backward": (64, 4, None),
    "mixing_backward": (128, 4, None),
    "keys_backward": (64, 4, 168),
    "modulation": (64, 4, 168),
    "modulation_backward": (64, 4, None),
    "mlp": (128, 8, 128),
    "mlp_backward": (64, 4, None),
}
"""Tokens of a tile, warps, and the most registers of a thread, as measured on an H200 at width 96."""
HIDDEN = 64
"""Hidden features at a time."""

Weights = list[Tensor]
"""Weight and bias, weight and bias, … of `nn.Linear` and `nn.LayerNorm`, as they are stored there."""


def attention(
    tokens: Float[Tensor, "*b s d"], extra: Float[Tensor, "*b s d"] | None, weights: Weights, heads: int, eps: float
) -> Float[Tensor, "*b s d"]:
    """`weights` of query, key, value, join and the norm; `extra` joins the attention's output."""
    return _attention(tokens.contiguous(), _like(extra, tokens), weights, _pack(tokens, weights), heads, eps)[0]


def modulation(
    tokens: Float[Tensor, "b t_or_1 s d"],
    factor: Float[Tensor, "b 1 s d"] | None,
    field: Float[Tensor, "b_or_1 t s d"],
    weights: Weights,
    eps: float,
) -> Float[Tensor, "b t s d"]:
    """`weights` of scale, out and the norm; without those of scale where the factor F is given."""
    packed = _pack(tokens, weights)
    return _modulation(tokens.contiguous(), _like(factor, tokens), _like(field, tokens), weights, packed, eps)[0]


def mlp(tokens: Float[Tensor, "*b d"], weights: Weights, activation: str, eps: float) -> Float[Tensor, "*b d"]:
    """`weights` of widen, narrow and the norm."""
    return _mlp(tokens.contiguous(), weights, _pack(tokens, weights), activation, eps)[0]


# The operators: what each computes, its shapes, and its gradient.


@torch.library.custom_op("vcnef::attention_layer", mutates_args=())
def _attention(
    tokens: Tensor, extra: Tensor | None, weights: list[Tensor], packed: list[Tensor], heads: int, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    found = _empty_attention(tokens)
    out, standard, inverse, gram, state, mixing, key_mean = found
    query, key, value, join, norm = _affine(weights, packed)
    points, width, rows = *tokens.shape[-2:], len(key_mean)
    _launch(
        "mix", rows, tokens, gram, state, mixing, key_mean, key, value, join.weight, points,
        D=width, HEAD=width // heads, BLOCK_D=padded(width),
    )  # fmt: skip
    _launch(
        "attention", rows * _tiles("attention", points), tokens, mixing, key_mean, extra, out, standard, inverse,
        query, join.bias, norm, _same_head(width, heads, tokens.dtype, tokens.device), points, eps, D=width,
    )  # fmt: skip
    return found


@_attention.register_fake
def _(
    tokens: Tensor, extra: Tensor | None, weights: list[Tensor], packed: list[Tensor], heads: int, eps: float
) -> tuple[Tensor, ...]:
    return _empty_attention(tokens)


def _empty_attention(tokens: Tensor) -> tuple[Tensor, ...]:
    *batch, points, width = tokens.shape
    matrices = (tokens.new_empty(prod(batch), width, width) for _ in range(3))
    return *_two_like(tokens), _floats(tokens, *batch, points), *matrices, _floats(tokens, prod(batch), width)


@torch.library.custom_op("vcnef::attention_layer_backward", mutates_args=())
def _attention_backward(
    grad: Tensor, tokens: Tensor, weights: list[Tensor], packed: list[Tensor], saved: list[Tensor], heads: int
) -> list[Tensor]:
    standard, inverse, gram, state, mixing, key_mean = saved
    query, key, value, join, norm = _affine(weights, packed)
    points, width, rows = *tokens.shape[-2:], len(key_mean)
    tiles = _tiles("attention_backward", points)
    grad_total, grad_query, normalised = (torch.empty_like(tokens) for _ in range(3))
    token_sums, mean_sums = _floats(tokens, rows * tiles, 4 * width), _floats(tokens, rows * tiles, width)
    _launch(
        "attention_backward", rows * tiles, grad, tokens, mixing, key_mean, standard, inverse, query, norm,
        _same_head(width, heads, tokens.dtype, tokens.device), grad_total, grad_query, normalised,
        token_sums, mean_sums, points, D=width,
    )  # fmt: skip

    per_row = (rows, points, width)
    grad_mixing = normalised.view(per_row).mT @ grad_total.view(per_row)
    grad_key_mean = mean_sums.view(rows, tiles, width).sum(1)
    grad_state, grad_gram = torch.empty_like(mixing), torch.empty_like(mixing)
    _launch(
        "mixing_backward", rows, grad_mixing, grad_key_mean, value, join.weight, grad_state, grad_gram, points,
        D=width, HEAD=width // heads,
    )  # fmt: skip

    tiles = _tiles("keys_backward", points)
    grad_tokens, grad_key = _two_like(tokens)
    key_sums = _floats(tokens, rows * tiles, width)
    _launch(
        "keys_backward", rows * tiles, tokens, grad_gram, grad_key_mean, grad_total, grad_query, query.weight, key,
        grad_tokens, grad_key, key_sums, points, D=width,
    )  # fmt: skip
    grad_value_bias = _weight_grad(key_mean.to(tokens.dtype).unsqueeze(-1), grad_state).flatten()
    return [
        *(grad_tokens, grad_total, _summed(token_sums), _weight_grad(tokens, grad_query)),
        *(_weight_grad(tokens, grad_key), _summed(key_sums)),
        *(_weight_grad(gram, grad_state), grad_value_bias, _weight_grad(state, grad_mixing)),
    ]


@_attention_backward.register_fake
def _(
    grad: Tensor, tokens: Tensor, weights: list[Tensor], packed: list[Tensor], saved: list[Tensor], heads: int
) -> list[Tensor]:
    query, _, key, key_bias, value, value_bias, join, *_ = map(torch.empty_like, weights)
    sums = _floats(tokens, 4 * tokens.shape[-1])
    return [*_two_like(tokens), sums, query, key, key_bias, value, value_bias, join]


def _save_attention(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    tokens, extra, weights, packed, ctx.heads, _ = inputs
    ctx.extra = extra is not None
    ctx.save_for_backward(tokens, *weights, *packed, *output[1:])


def _differentiate_attention(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    tokens, *saved = ctx.saved_tensors
    weights, packed, saved = saved[:10], saved[10:14], saved[14:]
    found = _attention_backward(grad.contiguous(), tokens, weights, packed, saved, ctx.heads)
    grad_tokens, grad_extra, sums, query, key, key_bias, value, value_bias, join = found
    scale, shift, join_bias, query_bias = sums.chunk(4)
    grads = [query, query_bias, key, key_bias, value, value_bias, join, join_bias, scale, shift]
    return grad_tokens, grad_extra if ctx.extra else None, grads, [None] * 4, None, None


@torch.library.custom_op("vcnef::modulation_layer", mutates_args=())
def _modulation(
    tokens: Tensor, factor: Tensor | None, field: Tensor, weights: list[Tensor], packed: list[Tensor], eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    found = _empty_modulation(tokens, field)
    batch, frames, points, width = found[0].shape
    *scale, out_map, norm = _affine(weights, packed)
    _launch(
        "modulation", batch * frames * _tiles("modulation", points), tokens, factor, field, *found,
        *(scale or [None]), out_map, norm, frames, points, eps, D=width, SHARED_FIELD=len(field) == 1,
    )  # fmt: skip
    return found


@_modulation.register_fake
def _(
    tokens: Tensor, factor: Tensor | None, field: Tensor, weights: list[Tensor], packed: list[Tensor], eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return _empty_modulation(tokens, field)


def _empty_modulation(tokens: Tensor, field: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    shape = len(tokens), *field.shape[1:]
    return tokens.new_empty(shape), tokens.new_empty(shape), _floats(tokens, *shape[:-1])


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
    batch, frames, points, width = grad.shape
    *scale, out_map, norm = _affine(weights, packed)
    grad_total, grad_factor, grad_field, modulated = (torch.empty_like(standard) for _ in range(4))
    grad_tokens = torch.empty_like(standard) if factor is None else grad_total
    programs = batch * frames * _tiles("modulation_backward", points)
    token_sums = _floats(tokens, programs, 4 * width)
    _launch(
        "modulation_backward", programs, grad, tokens, factor, field, standard, inverse, *(scale or [None]), out_map,
        norm, grad_tokens, grad_factor, grad_field, grad_total, modulated, token_sums,
        frames, points, D=width, SHARED_FIELD=len(field) == 1,
    )  # fmt: skip
    grad_field = grad_field.sum(0, keepdim=True) if len(field) == 1 else grad_field
    out_grad = _weight_grad(modulated, grad_total)
    if factor is None:
        return [grad_tokens, grad_field, _summed(token_sums), out_grad, _weight_grad(tokens, grad_factor)]
    over_times = (each.sum(1, keepdim=True) for each in (grad_tokens, grad_factor))
    return [next(over_times), grad_field, _summed(token_sums), out_grad, next(over_times)]


@_modulation_backward.register_fake
def _(
    grad: Tensor,
    tokens: Tensor,
    factor: Tensor | None,
    field: Tensor,
    standard: Tensor,
    inverse: Tensor,
    weights: list[Tensor],
    packed: list[Tensor],
) -> list[Tensor]:
    last = torch.empty_like(weights[0] if factor is None else factor)
    sums = _floats(tokens, 4 * tokens.shape[-1])
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


@torch.library.custom_op("vcnef::mlp_layer", mutates_args=())
def _mlp(
    tokens: Tensor, weights: list[Tensor], packed: list[Tensor], activation: str, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    found = _empty_mlp(tokens)
    count = found[-1].numel()
    sizes = _mlp_sizes(weights, activation)
    _launch("mlp", _tiles("mlp", count), tokens, *found, *_affine(weights, packed), count, eps, **sizes)
    return found


@_mlp.register_fake
def _(
    tokens: Tensor, weights: list[Tensor], packed: list[Tensor], activation: str, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return _empty_mlp(tokens)


def _empty_mlp(tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return *_two_like(tokens), _floats(tokens, *tokens.shape[:-1])


@torch.library.custom_op("vcnef::mlp_layer_backward", mutates_args=())
def _mlp_backward(
    grad: Tensor,
    tokens: Tensor,
    standard: Tensor,
    inverse: Tensor,
    weights: list[Tensor],
    packed: list[Tensor],
    activation: str,
) -> list[Tensor]:
    hidden, width = weights[0].shape
    count = inverse.numel()
    programs = _tiles("mlp_backward", count)
    grad_tokens, grad_total = _two_like(tokens)
    inner, grad_inner = (tokens.new_empty(count, hidden) for _ in range(2))
    token_sums = _floats(tokens, programs, 3 * width + hidden)
    _launch(
        "mlp_backward", programs, grad, tokens, standard, inverse, *_affine(weights, packed),
        grad_tokens, grad_total, inner, grad_inner, token_sums, count, **_mlp_sizes(weights, activation),
    )  # fmt: skip
    return [grad_tokens, _summed(token_sums), _weight_grad(tokens, grad_inner), _weight_grad(inner, grad_total)]


@_mlp_backward.register_fake
def _(
    grad: Tensor,
    tokens: Tensor,
    standard: Tensor,
    inverse: Tensor,
    weights: list[Tensor],
    packed: list[Tensor],
    activation: str,
) -> list[Tensor]:
    widen, widen_bias, narrow, narrow_bias, *_ = map(torch.empty_like, weights)
    return [torch.empty_like(tokens), _floats(tokens, 3 * len(narrow_bias) + len(widen_bias)), widen, narrow]


def _mlp_sizes(weights: list[Tensor], activation: str) -> dict[str, Any]:
    hidden, width = weights[0].shape
    return {"D": width, "HIDDEN": hidden, "GELU": activation == "gelu", "BLOCK_H": min(HIDDEN, padded(hidden))}


def _save_mlp(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    tokens, weights, packed, ctx.activation, _ = inputs
    ctx.save_for_backward(tokens, *output[1:], *packed, *weights)


def _differentiate_mlp(ctx: Any, grad: Tensor, *_: Any) -> tuple:
    tokens, standard, inverse, *saved = ctx.saved_tensors
    packed, weights = saved[:2], saved[2:]
    found = _mlp_backward(grad.contiguous(), tokens, standard, inverse, weights, packed, ctx.activation)
    grad_tokens, sums, widen, narrow = found
    hidden, width = widen.shape
    scale, shift, narrow_bias, widen_bias = sums.split([width, width, width, hidden])
    return grad_tokens, [widen, widen_bias, narrow, narrow_bias, scale, shift], [None] * 2, None, None


_attention.register_autograd(_differentiate_attention, setup_context=_save_attention)
_modulation.register_autograd(_differentiate_modulation, setup_context=_save_modulation)
_mlp.register_autograd(_differentiate_mlp, setup_context=_save_mlp)


# What they share.


def _launch(name: str, programs: int, *given: Any, **sizes: Any) -> None:
    from vcnef.kernels import layers_triton

    tokens, warps, registers = TILES[name]
    tile = {"BLOCK_S": tokens, "num_warps": warps, "num_stages": 2, "maxnreg": registers}
    with torch.cuda.device_of(given[0]):
        getattr(layers_triton, name)[(programs,)](*given, **sizes, **tile)


def _tiles(name: str, points: int) -> int:
    return -(-points // TILES[name][0])


def _pack(tokens: Tensor, weights: list[Tensor]) -> list[Tensor]:
    """Matrices as operands, stored `in out`; once for both passes."""
    return [each.detach().to(tokens.dtype).mT.contiguous() for each in weights if each.ndim == 2]


def _affine(weights: list[Tensor], packed: list[Tensor]) -> list[Affine]:
    matrices = iter(packed)
    pairs = zip(weights[::2], weights[1::2], strict=True)
    return [Affine(next(matrices) if weight.ndim == 2 else weight, bias) for weight, bias in pairs]


@cache
def _same_head(width: int, heads: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """m: ones within a head, zeros between heads."""
    head = torch.arange(width, device=device) // (width // heads)
    return (head[:, None] == head).to(dtype)


def _weight_grad(inputs: Tensor, grad: Tensor) -> Tensor:
    """Σ over tokens of grad inputsᵀ, as `nn.Linear` stores its weight, in fp32."""
    rows, columns = grad.flatten(0, -2).mT, inputs.flatten(0, -2)
    return torch.mm(rows, columns, out_dtype=torch.float32) if grad.is_cuda else rows @ columns


def _summed(partial: Tensor) -> Tensor:
    """Σ over programs; as a product, which is faster than a sum over rows."""
    return _ones(len(partial), partial.device) @ partial


@cache
def _ones(count: int, device: torch.device) -> Tensor:
    return torch.ones(count, device=device)


def _like(x: Tensor | None, tokens: Tensor) -> Tensor | None:
    return None if x is None else x.to(tokens.dtype).contiguous()


def _two_like(tokens: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(tokens), torch.empty_like(tokens)


def _floats(like: Tensor, *shape: int) -> Tensor:
    return like.new_empty(shape, dtype=torch.float32)
