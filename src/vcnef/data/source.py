"""One file of trajectories, described but not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.problem import Problem


@dataclass(frozen=True, eq=False)
class Source:
    """Everything about the trajectories of one file except the fields, which `read` fetches for chosen rows.

    `read` takes sorted, different row numbers and returns float32 fields `[rows t *x c]`, thinned as the view asks.
    `attributes`, `parts` and `subset` are those of the `Trajectories` that were saved.
    """

    path: Path
    t: Float[Tensor, " t"]
    grid: Float[Tensor, "*x D"]
    params: Float[Tensor, "n p"]
    problem: Problem
    read: Callable[[np.ndarray], np.ndarray]
    attributes: Mapping[str, Any]
    parts: tuple[int, ...]
    subset: str | None

    def __len__(self) -> int:
        return len(self.params)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all fields, [n t *x c]."""
        return (len(self), len(self.t), *self.grid.shape[:-1], len(self.problem.channels))


def check_alike(sources: Sequence[Source]) -> None:
    """Files opened together must share channels, parameter names, grid and times, and be of the same split."""
    first = sources[0]
    for other in sources[1:]:
        pair = f"{other.path} and {first.path} cannot be opened together"
        for what in ("channels", "parameters"):
            got, expected = getattr(other.problem, what), getattr(first.problem, what)
            if got != expected:
                raise ValueError(f"{pair}: their {what} are {list(got)} and {list(expected)}.")
        if other.subset != first.subset:
            got, expected = (f"the {each.subset} split" if each.subset else "no split" for each in (other, first))
            raise ValueError(f"{pair}: they are {got} and {expected}.")
        for what, got, expected in (("points", other.grid, first.grid), ("times", other.t, first.t)):
            if got.shape != expected.shape:
                sizes = " and ".join(
                    "×".join(map(str, each.shape[: each.ndim - (what == "points")])) for each in (got, expected)
                )
                raise ValueError(f"{pair}: they have {sizes} {what}.")
            if not torch.allclose(got, expected, rtol=1e-5, atol=1e-6):
                raise ValueError(f"{pair}: their {what} differ, by up to {float((got - expected).abs().max()):.3g}.")


def runs(rows: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Runs of consecutive numbers in sorted rows: (first row, one past the last row, place of the first)."""
    starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    stops = np.append(starts[1:], len(rows))
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        yield int(rows[start]), int(rows[stop - 1]) + 1, start
