"""Layers that several models share: a feed-forward network, convolutions by dimension, joined inputs, sinusoids."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
CONV_TRANSPOSE = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}

Activation = Callable[[], nn.Module]


class FeedForward(nn.Sequential):
    """W₂ act(W₁ x + b₁) + b₂, from `width` through `hidden` to `out` (default: back to `width`)."""

    def __init__(self, width: int, hidden: int, activation: Activation, out: int | None = None) -> None:
        super().__init__(nn.Linear(width, hidden), activation(), nn.Linear(hidden, width if out is None else out))


def join_inputs(u0: Tensor, grid: Tensor, params: Tensor | None) -> Float[Tensor, "b *x i"]:
    """x ‖ u₀ ‖ p at every point, in the release's order; the parameters are the same everywhere."""
    space = u0.shape[:-1]
    parts = [grid.expand(*space, -1), u0]
    if params is not None:
        parts.append(params.view(params.shape[0], *[1] * (u0.ndim - 2), -1).expand(*space, -1))
    return torch.cat(parts, dim=-1)


def sinusoidal(t: Float[Tensor, "*b"], width: int, scale: float = 5000.0) -> Float[Tensor, "*b d"]:
    """PE(t) of Vaswani et al., sin and cos in turn, at the position `scale` · t: (0, 1] is spread over thousands.

    Angles are in single precision at least: half precision has no numbers between 4096 and 4100.
    """
    exact = t if t.dtype == torch.float64 else t.float()
    rates = torch.exp(torch.arange(0, width, 2, device=t.device, dtype=exact.dtype) * (-math.log(10000.0) / width))
    angles = exact.unsqueeze(-1) * scale * rates
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).to(t.dtype)


def check_heads(width: int, heads: int) -> None:
    """Raise a `ValueError` unless the width can be divided among the heads."""
    if heads < 1 or width % heads:
        raise ValueError(f"Width {width} cannot be divided among {heads} heads. Choose a width that is a multiple.")
