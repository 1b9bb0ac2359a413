"""Linear maps and what follows them, with few passes over memory on a CPU."""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad

from vcnef.kernels.weights import switched_off

ONE_PASS = {type(None): "none", nn.ReLU: "relu", nn.GELU: "gelu"}
"""What oneDNN applies to a product before it is written."""

FEW = 4
"""So few features are a sum for compilers, not a product."""


class Linear(nn.Linear):
    """act(x W + b).

    On a CPU, without gradients and in single precision or under autocasting to bf16, oneDNN writes the result once. The
    ordinary way copies the bias to all rows first and comes back for the activation: twice the time where a row is as
    short as a token.
    """

    def forward(self, x: Float[Tensor, "*b i"], activation: nn.Module | None = None) -> Float[Tensor, "*b o"]:
        if (dtype := _onednn_type(x, self.weight)) is not None and type(activation) in ONE_PASS:
            bias = None if self.bias is None else self.bias.to(dtype)
            return _linear_onednn(x.to(dtype), self.weight.to(dtype), bias, activation)
        out = super().forward(x)
        return out if activation is None else activation(out)

    def unbiased(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        """x W."""
        return F.linear(x, self.weight)


def map_few(
    x: Float[Tensor, "*b i"], weight: Float[Tensor, "o i"], bias: Float[Tensor, " o"] | None = None
) -> Float[Tensor, "*b o"]:
    """x W + b of what a network is asked, which are a few features or one.

    As a sum over them, compilers make it one with what comes before and after. The GPU's libraries are slow at products
    of so few columns, and slower at their gradients.
    """
    if not torch.compiler.is_compiling() or x.shape[-1] > FEW:
        return F.linear(x, weight, bias)
    columns = [x[..., i, None] * weight[:, i] for i in range(x.shape[-1])]
    return sum(columns if bias is None else [*columns, bias])


def positive(x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """φ(x) = ELU(x) + 1, the paper's feature map and its σ: x + 1 above zero, exp(x) below."""
    # Written as exp(min(x, 0)) + max(x, 0): no 1 is taken off and added again, and processors are faster at it.
    return x.clamp(max=0).exp_() + x.relu()


def positive_map(linear: nn.Linear, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
    """φ(x W + b)."""
    y = linear(x)
    if not only_values_matter():
        return positive(y)
    # The same in y's own memory: nobody else has it.
    below = y.clamp(max=0).exp_()
    return y.clamp_(min=0).add_(below)


def only_values_matter() -> bool:
    """Whether nobody differentiates, in whichever way, and nobody traces: memory may then be used again."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    return not (torch.is_grad_enabled() or transformed())


def transformed() -> bool:
    """Whether derivatives are taken forwards, or by transforms of functions; not every operator has those."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def _linear_onednn(x: Tensor, weight: Tensor, bias: Tensor | None, activation: nn.Module | None) -> Tensor:
    name, algorithm = ONE_PASS[type(activation)], getattr(activation, "approximate", "")
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, name, [], algorithm)


def _onednn_type(x: Tensor, weight: Tensor) -> torch.dtype | None:
    """In which numbers oneDNN should multiply these, if at all."""
    # The operator has no derivatives, and would not say so.
    if x.device.type != "cpu" or not only_values_matter() or switched_off():
        return None
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    ordinary = weight.dtype == torch.float32 and x.dtype in (torch.float32, dtype) and x.numel() > 0
    return dtype if ordinary and dtype in (torch.float32, torch.bfloat16) and _has_onednn(dtype) else None


@cache
def _has_onednn(dtype: torch.dtype) -> bool:
    """Tried once: the operator is one that torch keeps for its compiler, and promises to nobody; and processors without
    AVX-512 have none for bf16."""
    x, weight, bias = (each.to(dtype) for each in (torch.tensor([[1.0, -2.0]]), torch.eye(2), torch.zeros(2)))
    try:
        return torch.equal(_linear_onednn(x, weight, bias, nn.ReLU()), x.relu())
    except (AttributeError, RuntimeError, TypeError):
        return False
