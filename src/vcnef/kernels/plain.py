"""The kernels' twins in plain PyTorch, which define what is right and run anywhere; equations in `modulation`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.local import Stencil
from vcnef.kernels.weights import Affine, BlockWeights, DecoderWeights

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def mix(
    tokens: Float[Tensor, "b t s d"], weights: BlockWeights
) -> tuple[Float[Tensor, "b t d d"], Float[Tensor, "b t d"]]:
    tokens = tokens.float()
    member = _membership(weights)
    keys = _positive(_affine(tokens, weights.key))
    key_mean = keys.mean(-2)
    gram = keys.mT @ tokens / tokens.shape[-2]
    state = _affine(gram, Affine(weights.value.weight, key_mean.unsqueeze(-1) * weights.value.bias))
    mixing = (state * (member @ member.mT)) @ weights.join.weight.float()
    return mixing.to(weights.join.weight.dtype), key_mean


def attend(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
) -> tuple[Float[Tensor, "b t s d"], Float[Tensor, "b t s d"]]:
    attended = _attend(tokens, mixing, key_mean, weights, extra)
    return attended.to(weights.operands), _positive(_affine(attended, weights.scale)).to(weights.operands)


def apply(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    field: Float[Tensor, "b_or_1 t s d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
    decoder: DecoderWeights | None = None,
) -> Float[Tensor, "b t s d_or_c"]:
    attended = _attend(tokens, mixing, key_mean, weights, extra)
    modulated = modulate(attended, _positive(_affine(attended, weights.scale)), field, weights)
    return modulated if decoder is None else decode(modulated, decoder)


def modulate(
    attended: Float[Tensor, "b t_or_1 s d"],
    scale: Float[Tensor, "b t_or_1 s d"],
    field: Float[Tensor, "b_or_1 t s d"],
    weights: BlockWeights,
) -> Float[Tensor, "b t s d"]:
    modulated = _affine(scale.float() * field.float(), weights.out)
    return _finish(_norm(attended.float() + modulated, weights.modulation_norm, weights.eps), weights)


def transform(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
) -> Float[Tensor, "b t s d"]:
    return _finish(_attend(tokens, mixing, key_mean, weights, extra), weights)


def decode(tokens: Float[Tensor, "*b d"], weights: DecoderWeights) -> Float[Tensor, "*b c"]:
    return _affine(F.gelu(_affine(_norm(tokens.float(), weights.norm, weights.eps), weights.first)), weights.second)


def mix_neighbours(
    tokens: Float[Tensor, "*b s d"], stencils: Sequence[Stencil], operands: torch.dtype
) -> Float[Tensor, "*b s d"]:
    rows = tokens.float().split([prod(each.sides) for each in stencils], dim=-2)
    return torch.cat([_mix_grid(*each) for each in zip(rows, stencils, strict=True)], dim=-2).to(operands)


def _mix_grid(tokens: Float[Tensor, "*b s d"], stencil: Stencil) -> Float[Tensor, "*b s d"]:
    field, total = tokens.unflatten(-2, stencil.sides), 0
    for offset, weight in zip(stencil.offsets, stencil.weight, strict=True):
        moved = field
        for axis, (step, side) in enumerate(zip(offset, stencil.sides, strict=True)):
            places = torch.arange(step, side + step, device=field.device)
            places = places % side if stencil.periodic else places.clamp(0, side - 1)
            moved = moved.index_select(axis - len(stencil.sides) - 1, places)
        total = total + moved * weight
    return total.flatten(-1 - len(stencil.sides), -2)


def orthogonalise(
    matrices: Float[Tensor, "n rows columns"], coefficients: tuple[float, float, float], steps: int
) -> Float[Tensor, "n rows columns"]:
    """In half precision on a GPU: the answer is rough anyway."""
    a, b, c = coefficients
    x = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    x = x.bfloat16() if x.is_cuda else x
    for _ in range(steps):
        square = x @ x.mT
        polynomial = torch.baddbmm(square, square, square, beta=b, alpha=c)
        x = torch.baddbmm(x, polynomial, x, beta=a)
    return x


def _attend(
    tokens: Tensor, mixing: Tensor, key_mean: Tensor, weights: BlockWeights, extra: Tensor | None
) -> Float[Tensor, "b t s d"]:
    member, inputs = _membership(weights), tokens.float()
    queries = _positive(_affine(inputs, weights.query))
    normaliser = queries @ (key_mean.unsqueeze(-1) * member @ member.mT) + 1e-6 / tokens.shape[-2]
    attended = inputs + (queries / normaliser) @ mixing.float() + weights.join.bias
    return _norm(attended if extra is None else attended + extra, weights.attention_norm, weights.eps)


def _finish(tokens: Float[Tensor, "b t s d"], weights: BlockWeights) -> Float[Tensor, "b t s d"]:
    hidden = ACTIVATIONS[weights.activation](_affine(tokens, weights.widen))
    return _norm(tokens + _affine(hidden, weights.narrow), weights.mlp_norm, weights.eps).to(weights.operands)


def _membership(weights: BlockWeights) -> Tensor:
    """Which head a feature belongs to, as a matrix of zeros and ones `d h`."""
    ones = torch.eye(weights.heads, device=weights.key.bias.device)
    return ones.repeat_interleave(len(weights.key.bias) // weights.heads, dim=0)


def _affine(x: Tensor, affine: Affine) -> Tensor:
    return x @ affine.weight.float() + affine.bias


def _norm(x: Tensor, affine: Affine, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], affine.weight, affine.bias, eps)


def _positive(x: Tensor) -> Tensor:
    return x.clamp(max=0).exp() + F.relu(x)
