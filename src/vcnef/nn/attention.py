"""Self-attention over tokens, at linear and at quadratic cost."""

from __future__ import annotations

from contextlib import nullcontext

import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from vcnef.kernels import layers
from vcnef.kernels.autocast import half_precision
from vcnef.nn.linear import Linear, positive_map, transformed


class LinearAttention(nn.Module):
    """Multi-head attention with the kernel φ(q)·φ(k) (the paper's appendix B.3, after Katharopoulos et al. 2020).

    Per head, out_i = φ(q_i)ᵀ S / φ(q_i)ᵀ k̄ with S = Σ_j φ(k_j) v_jᵀ and k̄ = Σ_j φ(k_j); heads are joined and projected.

    Values and the output projection are folded: with v_j = W x_j + b, S = (Σ_j φ(k_j) x_jᵀ) Wᵀ + k̄ bᵀ, and S times the
    output projection is one d × d matrix per set of tokens. Same weights, same function, but every product over tokens
    is d wide instead of d / heads wide, and neither values nor joined heads are ever stored.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        check_heads(width, heads)
        self.heads = heads
        self.query = Linear(width, width)
        self.key = Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        # Which head a feature belongs to, as a matrix of zeros and ones `d h`.
        membership = torch.eye(heads).repeat_interleave(width // heads, dim=0)
        self.register_buffer("membership", membership, persistent=False)

    @property
    def bias(self) -> Tensor:
        return self.out.bias

    def forward(self, tokens: Float[Tensor, "*b s d"]) -> Float[Tensor, "*b s d"]:
        return self.unbiased(tokens) + self.bias

    def unbiased(self, tokens: Float[Tensor, "*b s d"]) -> Float[Tensor, "*b s d"]:
        """All but the last bias."""
        # Sums over any number of tokens stay within half precision's range; the normaliser takes the factor out again.
        share = max(tokens.shape[-2], 1) ** -0.5
        keys = positive_map(self.key, tokens).mul_(share)
        key_sum = keys.sum(-2)
        mixing = self._mixing(keys.mT @ tokens, key_sum)

        queries = positive_map(self.query, tokens)
        # φ(q_i)ᵀ k̄ of all heads as one product, which is wider than a sum within each head.
        normaliser = queries @ (key_sum.unsqueeze(-1) * self.membership) + 1e-6 * share
        by_head = rearrange(queries, "... (h e) -> ... h e", h=self.heads)
        weights = rearrange(by_head / normaliser.unsqueeze(-1), "... h e -> ... (h e)")
        return weights @ mixing

    def _mixing(self, gram: Float[Tensor, "*b d d"], key_sum: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d d"]:
        """The d × d matrix that takes normalised queries to outputs, from Σ_j φ(k_j) x_jᵀ and Σ_j φ(k_j).

        In half precision on a GPU it is one kernel each way: libraries have products of one head's rows in all sets of
        tokens only after these are copied next to each other.
        """
        if half_precision(gram) is not None and layers.serves_mixing(gram.shape[-1], self.heads):
            return layers.mixing(gram, key_sum, [self.value.weight, self.value.bias, self.out.weight], self.heads)
        key_sum = rearrange(key_sum, "... (h e) -> ... h e", h=self.heads)
        value, bias = (rearrange(w, "(h e) ... -> h e ...", h=self.heads) for w in (self.value.weight, self.value.bias))
        out = rearrange(self.out.weight, "d (h e) -> h e d", h=self.heads)
        gram = rearrange(gram, "... (h k) d -> ... h k d", h=self.heads)
        state = einsum(gram, value, "... h k d, h e d -> ... h k e") + key_sum.unsqueeze(-1) * bias.unsqueeze(-2)
        # Not `state @ out`, which would repeat the weights for every set of tokens.
        return rearrange(einsum(state, out, "... h k e, h e d -> ... h k d"), "... h k d -> ... (h k) d")


class SoftmaxAttention(nn.Module):
    """Scaled dot-product attention, softmax(QKᵀ/√e) V, the paper's "vanilla" attention; quadratic in tokens.

    Torch's fused operators, which never store the s × s weights, take one batch axis and have no forward derivatives.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        check_heads(width, heads)
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = Linear(width, width)

    @property
    def bias(self) -> Tensor:
        return self.out.bias

    def forward(self, tokens: Float[Tensor, "*b s d"]) -> Float[Tensor, "*b s d"]:
        return self.out(self.joined(tokens))

    def unbiased(self, tokens: Float[Tensor, "*b s d"]) -> Float[Tensor, "*b s d"]:
        """All but the last bias."""
        return self.out.unbiased(self.joined(tokens))

    def joined(self, tokens: Float[Tensor, "*b s d"]) -> Float[Tensor, "*b s d"]:
        """The heads' outputs, side by side."""
        sets = tokens.reshape(-1, *tokens.shape[-2:])
        queries, keys, values = (
            rearrange(project(sets), "b s (h e) -> b h s e", h=self.heads)
            for project in (self.query, self.key, self.value)
        )
        with sdpa_kernel(SDPBackend.MATH) if transformed() else nullcontext():
            mixed = F.scaled_dot_product_attention(queries, keys, values)
        return rearrange(mixed, "b h s e -> b s (h e)").view_as(tokens)


ATTENTION: dict[str, type[nn.Module]] = {"linear": LinearAttention, "softmax": SoftmaxAttention}


def check_heads(width: int, heads: int) -> None:
    if heads < 1 or width % heads:
        raise ValueError(f"Width {width} cannot be divided among {heads} heads. Choose a width that is a multiple.")
