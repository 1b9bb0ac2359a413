"""How the products, norms and activations of a block are computed layer by layer: in training, and without gradients.

Each `Arithmetic` is a table of five functions with one meaning; what is right is the first one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.models.vcnef import LinearAttention

ONE_PASS = {type(None): "none", nn.ReLU: "relu", nn.GELU: "gelu"}
"""Activation -> its name in oneDNN, which applies it to a product before the result is written."""


@dataclass(frozen=True)
class Arithmetic:
    linear: Callable[[Tensor, nn.Linear, nn.Module | None], Tensor]
    """act(x W + b), or x W + b without an activation."""
    gelu_map: Callable[[Tensor, Tensor, Tensor], Tensor]
    """GELU(x W + b) from the weight and the bias."""
    sigma_map: Callable[[Tensor, nn.Linear], Tensor]
    """σ(x W + b)."""
    add_norm: Callable[[Tensor, Tensor | None, Tensor | None, nn.LayerNorm], Tensor]
    """LN(z + update + bias); without an update, LN(z)."""
    mixing: Callable[[Tensor, Tensor, LinearAttention], Tensor]
    """The matrix that takes an attention's normalised queries to its outputs."""
    norm_adds_bias: bool = False
    """Whether `add_norm` is given the last bias of a layer on its own: a kernel has its gradient at hand."""


def sigma(x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """σ(x) = ELU(x) + 1 of a modulation block, and the feature map φ of linear attention.

    As exp(min(x, 0)) + max(x, 0), whose gradients a compiler finds from fewer stored tensors than those of an ELU.
    """
    return x.clamp(max=0).exp() + x.relu()


# --- With gradients, on any device ----------------------------------------------------------------------------------


def linear(x: Float[Tensor, "*b i"], layer: nn.Linear, activation: nn.Module | None = None) -> Float[Tensor, "*b o"]:
    out = F.linear(x, layer.weight, layer.bias)
    if activation is None:
        return out
    return activation(out)


def gelu_map(x: Float[Tensor, "*b i"], weight: Tensor, bias: Tensor) -> Float[Tensor, "*b o"]:
    return F.gelu(F.linear(x, weight, bias))


def sigma_map(x: Float[Tensor, "*b i"], layer: nn.Linear) -> Float[Tensor, "*b o"]:
    return sigma(F.linear(x, layer.weight, layer.bias))


def add_norm(
    z: Float[Tensor, "b *t_or_1 s d"],
    update: Float[Tensor, "b *t s d"] | None,
    bias: Float[Tensor, " d"] | None,
    norm: nn.LayerNorm,
) -> Float[Tensor, "b *t s d"]:
    if update is not None:
        z = z + update
    if bias is not None:
        z = z + bias
    return norm(z.to(norm.weight.dtype))


def mixing(gram: Float[Tensor, "*b d d"], key_sum: Float[Tensor, "*b d"], attention: LinearAttention) -> Tensor:
    """M = ((G Wv + k̄ bvᵀ) ∘ m) Wo from G = Σ_j φ(k_j) x_jᵀ and k̄ = Σ_j φ(k_j); m keeps heads apart."""
    heads = attention.heads
    key_sum = rearrange(key_sum, "... (h e) -> ... h e", h=heads)
    value = rearrange(attention.value.weight, "(h e) d -> h e d", h=heads)
    bias = rearrange(attention.value.bias, "(h e) -> h e", h=heads)
    out = rearrange(attention.out.weight, "d (h e) -> h e d", h=heads)
    gram = rearrange(gram, "... (h k) d -> ... h k d", h=heads)
    state = einsum(gram, value, "... h k d, h e d -> ... h k e") + key_sum.unsqueeze(-1) * bias.unsqueeze(-2)
    # Not `state @ out`, which would repeat the weights for every set of tokens.
    return rearrange(einsum(state, out, "... h k e, h e d -> ... h k d"), "... h k d -> ... (h k) d")


TRAINING = Arithmetic(linear, gelu_map, sigma_map, add_norm, mixing)


# --- Without gradients: in place, and in one pass on a CPU ----------------------------------------------------------


def inference(device: torch.device, half: torch.dtype | None) -> Arithmetic:
    """Return the table for a device; `half` is the type that autocasting has been given, if any."""
    dtype = half or torch.float32
    one_pass = device.type == "cpu" and has_onednn(dtype)

    def chosen_linear(x: Tensor, layer: nn.Linear, activation: nn.Module | None = None) -> Tensor:
        served = one_pass and layer.weight.dtype == torch.float32 and x.dtype in (torch.float32, dtype) and x.numel()
        if served and type(activation) in ONE_PASS:
            return _onednn(x.to(dtype), layer.weight.to(dtype), layer.bias.to(dtype), activation)
        return linear(x, layer, activation)

    def chosen_sigma_map(x: Tensor, layer: nn.Linear) -> Tensor:
        y = chosen_linear(x, layer)
        # σ in y's own memory: exp(min(y, 0)) + max(y, 0).
        below = y.clamp(max=0).exp_()
        return y.clamp_(min=0).add_(below)

    def chosen_add_norm(z: Tensor, update: Tensor | None, bias: Tensor | None, norm: nn.LayerNorm) -> Tensor:
        # The update is a layer's fresh output, so the sum may take its memory; z may have a time axis of size one.
        if update is not None and update.dtype == z.dtype and update.shape[1] >= z.shape[1]:
            return norm(update.add_(z))
        return add_norm(z, update, bias, norm)

    return Arithmetic(chosen_linear, gelu_map, chosen_sigma_map, chosen_add_norm, mixing)


def _onednn(x: Tensor, weight: Tensor, bias: Tensor, activation: nn.Module | None) -> Tensor:
    name, algorithm = ONE_PASS[type(activation)], getattr(activation, "approximate", "")
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, name, [], algorithm)


@cache
def has_onednn(dtype: torch.dtype) -> bool:
    """Return whether oneDNN's product with an activation works here, tried once: torch keeps the operator for its
    compiler and promises it to nobody, and processors without AVX-512 have none for bf16."""
    x, weight, bias = torch.tensor([[1.0, -2.0]]), torch.eye(2), torch.zeros(2)
    try:
        found = _onednn(x.to(dtype), weight.to(dtype), bias.to(dtype), nn.ReLU())
    except (AttributeError, RuntimeError, TypeError):
        return False
    return torch.equal(found, x.to(dtype).relu())
