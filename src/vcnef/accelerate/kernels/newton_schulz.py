"""Newton–Schulz steps in plain PyTorch: Muon's on any device, and the baseline of the kernel in `orthogonal`."""

import torch
from jaxtyping import Float
from torch import Tensor


def newton_schulz(
    matrices: Float[Tensor, "n rows columns"], coefficients: tuple[float, float, float], steps: int
) -> Float[Tensor, "n rows columns"]:
    """Make each X, divided by its norm, a X + (b S + c S²) X with S = X Xᵀ, again and again.

    In half precision on a GPU: the result is rough anyway.
    """
    a, b, c = coefficients
    x = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    x = x.bfloat16() if x.is_cuda else x
    for _ in range(steps):
        square = x @ x.mT
        polynomial = torch.baddbmm(square, square, square, beta=b, alpha=c)
        x = torch.baddbmm(x, polynomial, x, beta=a)
    return x
