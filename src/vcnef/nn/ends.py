"""Convolutions at the ends of a grid: on at the other end along periodic axes, zeros beyond the ends of others."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.nn.layers import CONV


def widen(field: Float[Tensor, "b d *x"], border: Sequence[int], mode: str) -> Float[Tensor, "b d *y"]:
    """Return the field with so many more points at both ends of each axis."""
    # F.pad counts axes from the last one.
    both = [width for margin in reversed(border) for width in (margin, margin)]
    return F.pad(field, both, mode=mode)


def conv_of_three(closes: tuple[bool, ...], inputs: int, out: int, stride: int = 1) -> nn.Module:
    """Return a convolution of 3 points a side that keeps every `stride`-th point of a grid."""
    ndim = len(closes)
    if len(set(closes)) > 1:
        return _EndsApart(closes, inputs, out, stride)
    mode = "circular" if closes[0] else "zeros"
    return CONV[ndim](inputs, out, 3, stride, padding=1, padding_mode=mode)


class _EndsApart(nn.Module):
    """A convolution of 3 points a side where some axes are periodic and others end."""

    def __init__(self, closes: tuple[bool, ...], inputs: int, out: int, stride: int) -> None:
        super().__init__()
        self.around = [int(each) for each in closes]
        # Torch's own zeros beyond the ends of the others.
        zeros = [1 - each for each in self.around]
        self.conv = CONV[len(closes)](inputs, out, 3, stride, padding=zeros)

    def forward(self, field: Float[Tensor, "b i *x"]) -> Float[Tensor, "b o *y"]:
        return self.conv(widen(field, self.around, mode="circular"))
