"""The formulas of which the operations' baselines consist, in plain PyTorch; they define what is right.

Weights are stored `in out` here. Products are in the type of the tokens, or in the one that autocasting has chosen.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from vcnef.accelerate.kernels.weights import Affine

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def pairs(weights: Sequence[Tensor]) -> list[Affine]:
    """Pair weight and bias, weight and bias, … of `nn.Linear`, which stores `out in`, and `nn.LayerNorm`."""
    matrices = [weight.mT if weight.ndim == 2 else weight for weight in weights[::2]]
    return [Affine(matrix, bias) for matrix, bias in zip(matrices, weights[1::2], strict=True)]


def positive(x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
    """φ(x) = ELU(x) + 1."""
    return x.clamp(max=0).exp() + F.relu(x)


def affine(x: Float[Tensor, "*b i"], part: Affine) -> Float[Tensor, "*b o"]:
    return x @ part.weight.float() + part.bias


def norm(x: Float[Tensor, "*b d"], part: Affine, eps: float) -> Float[Tensor, "*b d"]:
    return F.layer_norm(x, x.shape[-1:], part.weight, part.bias, eps)


def same_head(width: int, heads: int, device: torch.device) -> Bool[Tensor, "d d"]:
    """Return whether two features are of one head."""
    head = torch.arange(width, device=device) // (width // heads)
    return head[:, None] == head


def mixing(
    gram: Float[Tensor, "*b d d"], key_sum: Float[Tensor, "*b d"], value: Affine, join_weight: Tensor, heads: int
) -> Float[Tensor, "*b d d"]:
    """M = ((G Wv + k̄ bvᵀ) ∘ m) Wo."""
    state = gram @ value.weight.float() + key_sum.unsqueeze(-1) * value.bias
    return (state * same_head(gram.shape[-1], heads, gram.device)) @ join_weight.float()


def mix(
    tokens: Float[Tensor, "*b s d"], key: Affine, value: Affine, join_weight: Tensor, heads: int
) -> tuple[Float[Tensor, "*b d d"], Float[Tensor, "*b d"]]:
    """M and k̄ of tokens: K = φ(X Wk + bk), k̄ = mean K, G = KᵀX/s."""
    keys = positive(affine(tokens, key))
    key_mean = keys.mean(-2)
    gram = keys.mT @ tokens.to(keys.dtype) / tokens.shape[-2]
    return mixing(gram, key_mean, value, join_weight, heads), key_mean


def attend(
    tokens: Float[Tensor, "*b s d"],
    matrix: Float[Tensor, "*b d d"],
    key_mean: Float[Tensor, "*b d"],
    query: Affine,
    join_bias: Tensor,
    heads: int,
) -> Float[Tensor, "*b s d"]:
    """X + (Q / (Q (k̄ ∘ m))) M + bo with Q = φ(X Wq + bq)."""
    queries = positive(affine(tokens, query))
    same = same_head(tokens.shape[-1], heads, tokens.device)
    normaliser = queries @ (key_mean.unsqueeze(-1) * same) + 1e-6 / tokens.shape[-2]
    return tokens + (queries / normaliser) @ matrix.float() + join_bias


def mlp(tokens: Float[Tensor, "*b d"], widen: Affine, narrow: Affine, activation: str) -> Float[Tensor, "*b d"]:
    """Z + W₂ act(W₁ Z + b₁) + b₂."""
    return tokens + affine(ACTIVATIONS[activation](affine(tokens, widen)), narrow)


def decode(
    tokens: Float[Tensor, "*b d"], layer_norm: Affine, first: Affine, second: Affine, eps: float
) -> Float[Tensor, "*b c"]:
    """W₂ GELU(W₁ LN(X) + b₁) + b₂."""
    return affine(F.gelu(affine(norm(tokens, layer_norm, eps), first)), second)
