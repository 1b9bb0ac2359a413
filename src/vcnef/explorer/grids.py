"""The grids that a page offers for a model, and those on which it is at its best."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from vcnef.surrogate import Surrogate

USUAL = {1: (64, 128, 256, 512, 1024), 2: (16, 32, 64, 96, 128), 3: (8, 16, 24, 32)}
"""Points along the first axis that a page offers."""
START = {1: 256, 2: 32, 3: 16}
"""Those that it begins with."""
FEWEST_POINTS, MOST_POINTS = 8, 4096
"""Along the first axis; the sides of squares and boxes are bounded by the values of an answer too."""
MOST_CELLS = 2**18
"""Of a grid that is offered because a model was trained on it; on larger ones a page would wait for too long."""


@dataclass(frozen=True)
class Grids:
    """Grids by their points along the first axis; the other sides are to it as they were in training."""

    trained: tuple[int, ...]
    offered: tuple[int, ...]
    start: int

    def sides(self, points: int) -> tuple[int, ...]:
        return tuple(max(1, round(points * side / self.trained[0])) for side in self.trained)

    def describe(self) -> dict[str, Any]:
        """Describe the grids for a page: all that are offered, and the number of the first to be shown."""
        return {"grids": [list(self.sides(each)) for each in self.offered], "grid": self.offered.index(self.start)}


def find_grids(surrogate: Surrogate) -> Grids:
    """Return the usual grids; where a model is worse on them, that of training, its multiples, and these to compare.

    A model that was trained on scattered points, or does not say on what, is shown on squares.
    """
    ndim = surrogate.problem.ndim
    noted = tuple(surrogate.provenance.get("resolution", ()))
    usual = Grids(noted if len(noted) == ndim else (1,) * ndim, USUAL[ndim], START[ndim])
    first = usual.trained[0]
    good = [each for each in usual.offered if surrogate.model.suits(usual.sides(each), usual.trained)]
    bearable = FEWEST_POINTS <= first <= MOST_POINTS and prod(usual.trained) <= MOST_CELLS
    if usual.trained != noted or len(good) == len(usual.offered) or not bearable:
        return usual
    finer = range(2 * first, max(usual.offered) + 1, first)
    multiples = (each for each in finer if surrogate.model.suits(usual.sides(each), noted))
    return Grids(noted, tuple(sorted({*usual.offered, first, *multiples})), first)
