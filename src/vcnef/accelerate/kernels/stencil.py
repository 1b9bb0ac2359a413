"""Stencils on regular grids of tokens, as kernels take them; nothing here imports Triton."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.periodicity import Periodic, per_axis

MOST_TAPS = 64
"""Of a stencil that kernels serve: the code of every tap is written out."""


class Stencil(NamedTuple):
    """The weight of every tap, an offset in tokens along the axes, on a grid with these sides in tokens.

    Beyond the ends of a periodic axis a grid goes on from the other end, of any other axis with its last tokens.
    """

    sides: tuple[int, ...]
    offsets: tuple[tuple[int, ...], ...]
    weight: Float[Tensor, "k d"]
    periodic: Periodic

    def in_volume(self) -> Stencil:
        """Return the same stencil on a grid with three axes, which is what kernels know."""
        missing, closes = 3 - len(self.sides), self.closes
        offsets = tuple((0,) * missing + offset for offset in self.offsets)
        # No offset leads along an axis that is missing; its neighbour's answer keeps kernels few.
        closes = (closes[0],) * missing + closes
        return self._replace(sides=(1,) * missing + self.sides, offsets=offsets, periodic=closes)

    @property
    def closes(self) -> tuple[bool, ...]:
        """Return for each axis whether the grid closes along it."""
        return per_axis(self.periodic, len(self.sides))

    def table(self) -> Tensor:
        """Return the offsets as a tensor on the device of the weights."""
        return _on_device(self.offsets, self.weight.device)


def enumerate_volumes(stencils: Sequence[Stencil]) -> Iterator[tuple[int, Stencil]]:
    """For grids whose tokens stand in one row: the place of each grid's first token, and its stencil in three axes."""
    first = 0
    for stencil in stencils:
        yield first, stencil.in_volume()
        first += prod(stencil.sides)


@cache
def _on_device(offsets: tuple[tuple[int, ...], ...], device: torch.device) -> Tensor:
    return torch.tensor(offsets, dtype=torch.int32, device=device)
