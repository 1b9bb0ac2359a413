"""Exact integration of linear diffusion on a periodic line, for steps at which explicit diffusion would be unstable."""

from __future__ import annotations

from math import pi

import torch
from jaxtyping import Float
from torch import Tensor


@torch._disable_dynamo  # Fourier transforms are library calls; there is nothing to fuse
def diffuse(u: Float[Tensor, "b n"], amount: Float[Tensor, "b 1"], spacing: float) -> Float[Tensor, "b n"]:
    """exp(amount · D) u, where D u_i = (u_{i+1} − 2 u_i + u_{i−1}) / Δx² and amount is viscosity times time.

    Uses the eigenvalues of that three-point Laplacian, −(2 − 2 cos(2π k / n)) / Δx², so the result is what explicit
    steps with the same stencil tend to as their size goes to zero.
    """
    n = u.shape[1]
    number = torch.arange(n // 2 + 1, dtype=u.dtype, device=u.device)
    # 2 − 2 cos θ = 4 sin²(θ/2), which keeps its digits at small θ.
    decay = (2.0 / spacing * torch.sin(number * (pi / n))) ** 2
    return torch.fft.irfft(torch.fft.rfft(u) * torch.exp(-amount * decay), n=n)
