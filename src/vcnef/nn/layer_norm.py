"""Norms whose derivatives in forward mode can be differentiated again.

Those of PyTorch have the right derivative there, but it takes mean and variance for constants when it is itself
differentiated (pytorch/pytorch#196700): weight gradients of ∂u/∂t would be wrong without a word. So in forward mode
they are made of elementary operations here, and elsewhere they are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode


class LayerNorm(nn.LayerNorm):
    """LN(z) = w ∘ (z − mean) / √(variance + ε) + b, with mean and variance over the features of each token."""

    def forward(self, z: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return layer_norm(z, self.normalized_shape, self.weight, self.bias, self.eps)


def layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """As PyTorch's function of that name."""
    if forward_ad._current_level < 0:
        return F.layer_norm(x, normalized_shape, weight, bias, eps)
    normal = standardise(x, tuple(range(-len(normalized_shape), 0)), eps)
    scaled = normal if weight is None else normal * weight
    return scaled if bias is None else scaled + bias


def instance_norm(x: Float[Tensor, "b c *x"], eps: float = 1e-5) -> Float[Tensor, "b c *x"]:
    """Each channel of each sample with mean 0 and variance 1 over its points."""
    if forward_ad._current_level < 0:
        return F.instance_norm(x, eps=eps)
    return standardise(x, tuple(range(2, x.ndim)), eps)


def standardise(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    """(x − mean) / √(variance + ε) over these axes."""
    centred = x - x.mean(axes, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(axes, keepdim=True) + eps)


class DifferentiableTwice(TorchFunctionMode):
    """Within this context PyTorch's own layer norm is the one of this file: for models whose parts are not ours."""

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return (layer_norm if func is F.layer_norm else func)(*args, **(kwargs or {}))
