"""Linear maps and what follows them, with few passes over memory on a CPU."""

from __future__ import annotations

import os
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad

from vcnef.kernels.weights import SWITCH

ONE_PASS = {type(None): "none", nn.ReLU: "relu", nn.GELU: "gelu"}
"""What oneDNN applies to a product before it is written."""


class Linear(nn.Linear):
    """act(x W + b).

    On a CPU, in single precision and without gradients, oneDNN writes the result once. The ordinary way copies the bias
    to all rows first and comes back for the activation: twice the time where a row is as short as a token.
    """

    def forward(self, x: Float[Tensor, "*b i"], activation: nn.Module | None = None) -> Float[Tensor, "*b o"]:
        if _onednn_serves(x, self.weight) and type(activation) in ONE_PASS:
            return _linear_onednn(x, self.weight, self.bias, activation)
        out = super().forward(x)
        return out if activation is None else activation(out)


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
    transformed = torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    return not (torch.is_grad_enabled() or transformed)


def _linear_onednn(x: Tensor, weight: Tensor, bias: Tensor | None, activation: nn.Module | None) -> Tensor:
    name, algorithm = ONE_PASS[type(activation)], getattr(activation, "approximate", "")
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, name, [], algorithm)


def _onednn_serves(x: Tensor, weight: Tensor) -> bool:
    # The operator has no derivatives, and would not say so.
    if x.device.type != "cpu" or not only_values_matter():
        return False
    ordinary = x.dtype == weight.dtype == torch.float32 and x.numel() > 0
    wanted = os.environ.get(SWITCH) != "0" and not torch.is_autocast_enabled("cpu")
    return ordinary and wanted and _has_onednn()


@cache
def _has_onednn() -> bool:
    """Tried once: the operator is one that torch keeps for its compiler, and promises to nobody."""
    x, weight, bias = torch.tensor([[1.0, -2.0]]), torch.eye(2), torch.zeros(2)
    try:
        return torch.equal(_linear_onednn(x, weight, bias, nn.ReLU()), x.relu())
    except (AttributeError, RuntimeError, TypeError):
        return False
