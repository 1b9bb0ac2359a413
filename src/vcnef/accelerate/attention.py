"""Self-attention with less work than `models/vcnef.py` states it, from the same weights."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.arithmetic import Arithmetic
from vcnef.models.vcnef import LinearAttention, SoftmaxAttention


def unbiased_linear_attention(
    attention: LinearAttention, z: Float[Tensor, "*b s d"], arithmetic: Arithmetic, member: Float[Tensor, "d h"]
) -> Float[Tensor, "*b s d"]:
    """Linear attention without the last bias, values and output projection folded into one matrix M.

    With v_j = W x_j + b, S = (Σ_j φ(k_j) x_jᵀ) Wᵀ + k̄ bᵀ, and S times the output projection is one d × d matrix per set
    of tokens. Every product over tokens is then d wide instead of d / heads, and no values or joined heads are stored.
    """
    # Sums over any number of tokens stay within half precision's range; the normaliser takes the factor out again.
    share = max(z.shape[-2], 1) ** -0.5
    keys = arithmetic.sigma_map(z, attention.key) * share
    key_sum = keys.sum(-2)
    mixing = arithmetic.mixing(keys.mT @ z, key_sum, attention)
    queries = arithmetic.sigma_map(z, attention.query)
    # φ(q_i)ᵀ k̄ of all heads as one product, which is wider than a sum within each head.
    normaliser = queries @ (key_sum.unsqueeze(-1) * member) + 1e-6 * share
    by_head = rearrange(queries, "... (h e) -> ... h e", h=attention.heads)
    weights = rearrange(by_head / normaliser.unsqueeze(-1), "... h e -> ... (h e)")
    return weights @ mixing


def membership(attention: LinearAttention) -> Float[Tensor, "d h"]:
    """Return which head a feature belongs to, as a matrix of zeros and ones."""
    weight, heads = attention.key.weight, attention.heads
    ones = torch.eye(heads, device=weight.device, dtype=weight.dtype)
    return ones.repeat_interleave(len(weight) // heads, dim=0)


def joined_softmax_attention(attention: SoftmaxAttention, z: Float[Tensor, "*b s d"]) -> Float[Tensor, "*b s d"]:
    """Softmax attention before its last map, by torch's fused operators, which never store the s × s weights."""
    sets = z.reshape(-1, *z.shape[-2:])  # they take one batch axis
    by_head = partial(rearrange, pattern="b s (h e) -> b h s e", h=attention.heads)
    q, k, v = by_head(attention.query(sets)), by_head(attention.key(sets)), by_head(attention.value(sets))
    return rearrange(F.scaled_dot_product_attention(q, k, v), "b h s e -> b s (h e)").view_as(z)
