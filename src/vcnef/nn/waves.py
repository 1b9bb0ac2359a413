"""Fields on a grid as sums of few waves, in real arithmetic."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

Parts = tuple[Float[Tensor, "b *k d"], Float[Tensor, "b *k d"]]
"""Real and imaginary parts of a spectrum."""


class Axis(NamedTuple):
    """The waves along one axis: what points are multiplied by for a spectrum, and waves for points."""

    cos: Float[Tensor, "k x"]
    sin: Float[Tensor, "k x"]
    cos_back: Float[Tensor, "x k"]
    sin_back: Float[Tensor, "x k"]
    highest: int


def waves_along(side: int, closes: bool, modes: int, like: Tensor, *, real: bool) -> Axis:
    """Return the waves of an axis with `side` points, as many as it holds and at most `modes` of each sign.

    An axis that does not close is continued by its mirror image, so that its ends meet. Where the input is `real`,
    negative wave numbers are left out, and the positive ones count twice.
    """
    around = side if closes else 2 * side
    # The highest wave number of an even count stands for both signs, and is left out.
    highest = min(modes, (around - 1) // 2)
    k = torch.arange(0 if real else -highest, highest + 1, device=like.device).unsqueeze(1)
    # Whole turns are left out before they cost digits.
    turns = k * torch.arange(around, device=like.device) % around
    angle = (2 * math.pi / around) * turns.to(like.dtype)
    cos, sin = angle.cos(), angle.sin()
    count = 1 + (k > 0).to(like.dtype) if real else torch.ones_like(angle[:, :1])
    cos_back, sin_back = (count * cos[:, :side]).mT, (count * sin[:, :side]).mT
    if not closes:
        cos = cos[:, :side] + cos[:, side:].flip(-1)
        sin = sin[:, :side] + sin[:, side:].flip(-1)
    return Axis(cos / around, sin / around, cos_back, sin_back, highest)


class Waves:
    """The waves of wave numbers |k| ≤ `modes` along every axis of a grid.

    Transforms are products with a small matrix along each axis, which for few waves is faster than an FFT, and real
    throughout: compilers and exporters have little for complex numbers.
    """

    def __init__(self, sides: tuple[int, ...], closes: tuple[bool, ...], modes: int, like: Tensor) -> None:
        self.modes = modes
        last = len(sides) - 1
        self.axes = [
            waves_along(side, closed, modes, like, real=axis == last)
            for axis, (side, closed) in enumerate(zip(sides, closes, strict=True))
        ]

    def to_spectrum(self, field: Float[Tensor, "b *x d"]) -> Parts:
        """Return mean u(x) e^{−ikx} over the points; the last axis comes first, since fields are real."""
        *others, last = self._places()
        place, wave = last
        real, imaginary = along(place, wave.cos, field), -along(place, wave.sin, field)
        for place, wave in others:
            real, imaginary = (
                along(place, wave.cos, real) + along(place, wave.sin, imaginary),
                along(place, wave.cos, imaginary) - along(place, wave.sin, real),
            )
        return real, imaginary

    def to_points(self, real: Float[Tensor, "b *k d"], imaginary: Float[Tensor, "b *k d"]) -> Float[Tensor, "b *x d"]:
        """Return Re Σ_k û_k e^{ikx} at the points."""
        *others, last = self._places()
        for place, wave in others:
            real, imaginary = (
                along(place, wave.cos_back, real) - along(place, wave.sin_back, imaginary),
                along(place, wave.cos_back, imaginary) + along(place, wave.sin_back, real),
            )
        place, wave = last
        return along(place, wave.cos_back, real) - along(place, wave.sin_back, imaginary)

    def choose(self, weight: Float[Tensor, "*k d 2"]) -> Float[Tensor, "*l d 2"]:
        """Return the weights of the waves that this grid holds, of those for all `modes`."""
        *others, last = self.axes
        for place, wave in enumerate(others):
            weight = weight.narrow(place, self.modes - wave.highest, 2 * wave.highest + 1)
        return weight.narrow(len(others), 0, last.highest + 1)

    def _places(self) -> list[tuple[int, Axis]]:
        """The axes with their places in a field, counted from its end, where the features are."""
        return list(zip(range(-1 - len(self.axes), -1), self.axes, strict=True))


def along(place: int, matrix: Float[Tensor, "k x"], field: Float[Tensor, "b *x d"]) -> Float[Tensor, "b *y d"]:
    """Return Σ_x matrix[k, x] field[…, x, …] over one axis of a field."""
    behind = field.shape[place + 1 :]
    return (matrix @ field.flatten(place + 1)).unflatten(-1, behind)
