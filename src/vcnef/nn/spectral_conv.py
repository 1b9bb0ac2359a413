"""Convolution in Fourier space, in any number of dimensions."""

from __future__ import annotations

from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor, nn


class SpectralConv(nn.Module):
    """û_k ↦ R_k û_k for the lowest modes k, zero for all others: a convolution with a learnt periodic kernel.

    Along the last axis a real field has modes k ≥ 0, along the others of both signs; so there are 2^(D−1) blocks of
    weights, of `modes` a side, from `width` channels to `out` (default: as many). A grid too coarse for all of them
    uses those it has. The transform runs in single precision at least, whatever the field is in, and the answer is in
    the type of the weights.
    """

    def __init__(self, ndim: int, width: int, modes: int, out: int | None = None) -> None:
        super().__init__()
        self.ndim, self.modes, self.out = ndim, modes, width if out is None else out
        shape = (2 ** (ndim - 1), width, self.out, *(modes,) * ndim, 2)
        # Real and imaginary parts apart: optimisers and file formats need not know complex numbers.
        self.weight = nn.Parameter(torch.rand(shape) / (width * self.out))

    def forward(self, field: Float[Tensor, "b i *x"]) -> Float[Tensor, "b o *x"]:
        with torch.autocast(field.device.type, enabled=False):
            exact = field if field.dtype == torch.float64 else field.float()
            axes, sides = tuple(range(2, field.ndim)), field.shape[2:]
            spectrum = torch.fft.rfftn(exact, dim=axes)
            weight = torch.view_as_complex(self.weight.to(exact.dtype))
            mixed = spectrum.new_zeros(len(field), self.out, *spectrum.shape[2:])
            for block, corner in zip(weight, self._corners(sides), strict=True):
                inside = (..., *corner)
                mixed[inside] = torch.einsum("bi...,io...->bo...", spectrum[inside], block[inside])
            return torch.fft.irfftn(mixed, s=sides, dim=axes).to(self.weight.dtype)

    def _corners(self, sides: tuple[int, ...]) -> list[tuple[slice, ...]]:
        """Where each block of weights acts: low and high ends of the leading axes, the low end of the last one."""
        leading = []
        for side in sides[:-1]:
            count = max(min(self.modes, side // 2), 1)
            leading.append((slice(0, count), slice(-count, None)))
        last = slice(0, min(self.modes, sides[-1] // 2 + 1))
        return [(*corner, last) for corner in product(*leading)]
