"""Derivatives of any order on a grid: of the trigonometric interpolant, or by finite differences of a stated order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from math import factorial, pi

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.periodicity import Periodic, per_axis

ACCURACY = 4
"""Order of the finite differences: halving the spacing divides their error by 16."""


def spectral_derivative(q: Float[Tensor, " b *x"], axis: int, spacing: float, order: int) -> Float[Tensor, " b *x"]:
    """Return ∂ⁿq of the trigonometric interpolant of a periodic field: exact where the grid resolves it."""
    n = q.shape[axis]
    number = 2 * pi * torch.fft.rfftfreq(n, spacing, dtype=q.dtype, device=q.device)
    if order % 2:
        # The shortest wave of an even grid is seen at its extrema only; its odd derivatives there are zero.
        number = torch.where(torch.arange(len(number), device=q.device) * 2 < n, number, 0.0)
    # (i k)ⁿ is ± kⁿ, or ± i kⁿ.
    factor = number**order
    if order % 4 in (2, 3):
        factor = -factor
    if order % 2:
        factor = torch.complex(torch.zeros_like(factor), factor)
    factor = factor.reshape(-1, *(1,) * (q.ndim - 1 - axis))
    return torch.fft.irfft(factor * torch.fft.rfft(q, dim=axis), n=n, dim=axis)


def add_up(terms: Iterable[Tensor]) -> Tensor:
    """Return the sum of at least one tensor, from the first to the last."""
    return reduce(torch.add, terms)


class AtPoints(ABC):
    """A way of taking derivatives at the points themselves, where fluxes live too."""

    @abstractmethod
    def derivative(self, q: Tensor, axis: int, order: int) -> Tensor:
        """Return ∂ⁿq along an axis, of which the first one of space is 1."""

    def limits(self, q: Tensor, axis: int) -> tuple[Tensor, Tensor]:
        # A numerical flux between two equal states is the physical flux.
        return q, q

    def mean(self, q: Tensor, axis: int) -> Tensor:
        return q

    def slope(self, q: Tensor, axis: int) -> Tensor:
        return self.derivative(q, axis, 1)

    def divergence(self, flux: Tensor, axis: int) -> Tensor:
        return self.derivative(flux, axis, 1)


@dataclass(frozen=True)
class FiniteDifference(AtPoints):
    """Centred differences of fourth order; at a wall one-sided ones of the same order."""

    spacing: tuple[float, ...]
    periodic: Periodic = True
    """Along all axes together, or along each."""

    def derivative(self, q: Tensor, axis: int, order: int) -> Tensor:
        half = (order - 1) // 2 + ACCURACY // 2
        scale = self.spacing[axis - 1] ** -order
        if per_axis(self.periodic, len(self.spacing))[axis - 1]:
            offsets = range(-half, half + 1)
            terms = zip(stencil(offsets, order), offsets, strict=True)
            return scale * add_up(weight * torch.roll(q, -offset, axis) for weight, offset in terms)
        return scale * _between_walls(q, axis, order, half)


def _between_walls(q: Tensor, axis: int, order: int, half: int) -> Tensor:
    """Return differences in units of the spacing: centred where these fit, else of the points next to the wall."""
    n, width = q.shape[axis], order + ACCURACY
    if n < max(width, 2 * half + 1):
        raise ValueError(
            f"An axis has {n} points; a derivative of order {order} takes {max(width, 2 * half + 1)} between walls. "
            "Use a finer grid."
        )
    inner = n - 2 * half
    weights = stencil(range(-half, half + 1), order)
    centre = add_up(weight * q.narrow(axis, place, inner) for place, weight in enumerate(weights))
    first = [_beside(q.narrow(axis, 0, width), axis, order, place) for place in range(half)]
    last = [_beside(q.narrow(axis, n - width, width), axis, order, width - half + place) for place in range(half)]
    return torch.cat([*first, centre, *last], dim=axis)


def _beside(points: Tensor, axis: int, order: int, place: int) -> Tensor:
    """Return the derivative at one of the points, from all of them."""
    weights = stencil(range(-place, points.shape[axis] - place), order)
    return add_up(weight * points.narrow(axis, number, 1) for number, weight in enumerate(weights))


@cache
def stencil(offsets: Sequence[int], order: int) -> tuple[float, ...]:
    """Return weights of the values at these offsets in the derivative at 0, that of the polynomial through them.

    Computed with fractions: between one-sided weights of a fourth derivative, rounding would be divided by Δx⁴.
    """
    weights = []
    for own in offsets:
        # Coefficients of the polynomial that is 1 at its own offset and 0 at all others, lowest first.
        polynomial = [Fraction(1)]
        for other in offsets:
            if other != own:
                # Times (x − other) / (own − other).
                raised = [Fraction(0), *polynomial]
                lowered = [*(other * each for each in polynomial), Fraction(0)]
                polynomial = [(up - down) / (own - other) for up, down in zip(raised, lowered, strict=True)]
        weights.append(float(factorial(order) * polynomial[order]))
    return tuple(weights)
