"""What an answer is judged by: the exact solution where there is one, else the solver on a finer grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from vcnef.pde.equation import Equation, Value

OVERSHOOT = 0.05
"""Of the range of a state, by which a trigonometric line through its points may leave it; waves through a jump swing
further, and straight lines take their place."""
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@dataclass(frozen=True, eq=False)
class Reference:
    """States at the points of the initial one, and how they were found."""

    u: Float[Tensor, "b t *x c"]
    parts: int | None
    """How many times finer the solver's grid was along an axis; None where the solution is exact."""

    def own_error(self, coarse: float) -> float:
        """An estimate of its error from that of the solver on the points themselves, measured against it.

        A scheme of first order, which the best one is at shocks, leaves 1 / parts of the error: e − e / parts is what
        was measured, so e / parts is 1 / (parts − 1) of it. Where fields are smooth it is less.
        """
        return 0.0 if self.parts is None else coarse / (self.parts - 1)


def exact_solution(
    known: Equation,
    u0: Float[Tensor, "b *x c"],
    t: Float[Tensor, " t"],
    params: Mapping[str, Value],
    domain: Sequence[Sequence[int | float]],
) -> Reference | None:
    """The exact solution from the trigonometric line through the points of `u0`; None where none is known."""
    if known.exact is None:
        return None
    return Reference(known.exact(u0, t, known.columns(params, u0), domain), None)


def finer_solution(
    known: Equation,
    u0: Float[Tensor, "b *x c"],
    t: Float[Tensor, " t"],
    params: Mapping[str, Value],
    domain: Sequence[Sequence[int | float]],
    parts: int,
) -> Reference:
    """The solver's answer on a grid `parts` times as fine, at the points of `u0`, on a periodic domain."""
    u = known.solve(sharpen(u0, parts), t, params, domain=domain)
    return Reference(u[(slice(None), slice(None), *(slice(None, None, parts),) * (u0.ndim - 2))], parts)


def sharpen(u: Float[Tensor, "b *x c"], parts: int) -> Float[Tensor, "b *y c"]:
    """A state on a periodic grid `parts` times as fine that has the old points among the new ones.

    By its Fourier modes, which is exact for what the grid resolves. Samples in which those swing beyond the values of
    the state, as they do at jumps, are linear between the points instead.
    """
    smooth, straight = _by_modes(u, parts), by_lines(u, parts)
    axes = tuple(range(1, u.ndim - 1))
    low, high = u.amin(axes, keepdim=True), u.amax(axes, keepdim=True)
    room = OVERSHOOT * (high - low)
    # What is positive, as a density, stays so.
    below = torch.where(low > 0, torch.minimum(room, 0.5 * low), room)
    kept = ((smooth >= low - below) & (smooth <= high + room)).flatten(1).all(dim=1)
    return torch.where(kept.reshape(-1, *(1,) * (u.ndim - 1)), smooth, straight)


def _by_modes(u: Tensor, parts: int) -> Tensor:
    """One axis after the other: the spectrum is continued by zeros."""
    fine = u.double()
    for axis in range(1, u.ndim - 1):
        n = fine.shape[axis]
        spectrum = torch.fft.rfft(fine, dim=axis)
        if n % 2 == 0:
            # The highest wave of an even number of points stands for two, one of either sign.
            highest = spectrum.narrow(axis, n // 2, 1)
            highest.mul_(0.5)
        fine = parts * torch.fft.irfft(spectrum, n=n * parts, dim=axis)
    return fine.to(u.dtype)


def by_lines(u: Float[Tensor, "b *x c"], parts: int) -> Float[Tensor, "b *y c"]:
    """A state on a periodic grid `parts` times as fine, linear between the old points."""
    ndim = u.ndim - 2
    # The first point again, as the last one's neighbour.
    around = F.pad(u.movedim(-1, 1), (0, 1) * ndim, mode="circular")
    size = [n * parts + 1 for n in u.shape[1:-1]]
    finer = F.interpolate(around, size=size, mode=LINEAR[ndim], align_corners=True)
    return finer[(..., *(slice(-1),) * ndim)].movedim(1, -1)
