"""Trajectories that stay in their files and are read as they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.data.rows import bytes_of_one, check_rows, cut_shape, row_blocks
from vcnef.data.source import Source, check_alike
from vcnef.data.splits import TEST_SHARE, VALID_SHARE, rows_of_split
from vcnef.data.trajectories import Trajectories, describe, merge_attributes, ranges
from vcnef.problem import Problem
from vcnef.spelling import spell_bytes


@dataclass(frozen=True, repr=False, eq=False)
class StoredTrajectories:
    """The same record as `Trajectories` without `u` in memory: `read` fetches chosen rows, `load` all of them."""

    sources: tuple[Source, ...]
    rows: Int[Tensor, " n"]
    t: Float[Tensor, " t"]
    grid: Float[Tensor, "*x D"]
    params: Float[Tensor, "n p"] | Float[Tensor, "n t p"]
    problem: Problem
    attributes: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[int, ...] = ()
    subset: str | None = None
    split_in_order: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"StoredTrajectories({describe(self)}, {spell_bytes(self.nbytes)} in {len(self.sources)} files)"

    @property
    def resolution(self) -> tuple[int, ...]:
        return tuple(self.grid.shape[:-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all fields, [n t *x c]."""
        return (len(self), *self.sources[0].shape[1:])

    @property
    def nbytes(self) -> int:
        return 4 * int(np.prod(self.shape))

    def split(self, name: str, *, valid: float = VALID_SHARE, test: float = TEST_SHARE) -> StoredTrajectories:
        """The "train", "valid" or "test" trajectories, as in `Trajectories.split`."""
        return self.select(rows_of_split(self, name, valid=valid, test=test), name)

    def select(self, rows: Int[Tensor, " n"], subset: str | None = None) -> StoredTrajectories:
        """Some trajectories as a data set of their own, as in `Trajectories.select`."""
        rows = check_rows(rows, len(self))
        params = self.params[rows]
        problem = replace(self.problem, ranges=ranges(self.problem, params))
        return replace(self, rows=self.rows[rows], params=params, problem=problem, parts=(len(rows),), subset=subset)

    def read(self, rows: Int[Tensor, " b"], cut: tuple[slice, ...] = ()) -> Float[Tensor, "b t *x c"]:
        """The fields of some trajectories, in the order asked for.

        `cut` are the frames, and the points along each axis, that are wanted; no others are read.
        """
        wanted, back = np.unique(self.rows[rows.cpu()].numpy(), return_inverse=True)
        u = np.empty((len(wanted), *cut_shape(self.shape[1:], cut)), dtype=np.float32)
        first = 0
        for source in self.sources:
            mine = (wanted >= first) & (wanted < first + len(source))
            if mine.any():
                u[mine] = source.read(wanted[mine] - first, cut)
            first += len(source)
        in_order = np.array_equal(back, np.arange(len(back)))
        return torch.from_numpy(u if in_order else u[back])

    def load(self) -> Trajectories:
        """All of it in memory, read block by block."""
        u = torch.empty(self.shape)
        for rows in row_blocks(len(self), bytes_of_one(self)):
            u[rows[0] : rows[-1] + 1] = self.read(rows)
        known = {name: getattr(self, name) for name in ("attributes", "parts", "subset", "split_in_order")}
        return Trajectories(u, self.t, self.grid, self.params, self.problem, **known)


def store(sources: tuple[Source, ...]) -> StoredTrajectories:
    """Several files one after the other, each with its parameters as columns."""
    check_alike(sources)
    first = sources[0]
    params = torch.cat([source.params for source in sources])
    return StoredTrajectories(
        sources=sources,
        rows=torch.arange(len(params)),
        t=first.t,
        grid=first.grid,
        params=params,
        problem=replace(first.problem, ranges=ranges(first.problem, params)),
        attributes=merge_attributes([source.attributes for source in sources]),
        parts=tuple(size for source in sources for size in source.parts),
        subset=first.subset,
        # Beside files of one's own, those of the benchmark are shuffled too: all may share initial states by index.
        split_in_order=all(source.split_in_order for source in sources),
    )
