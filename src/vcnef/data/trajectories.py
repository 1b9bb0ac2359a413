"""Trajectories in memory: fields, times, grid and parameters, with their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.checks import check_path
from vcnef.data.precision import short
from vcnef.data.rows import check_rows
from vcnef.data.splits import TEST_SHARE, VALID_SHARE, rows_of_split
from vcnef.data.views import View
from vcnef.grid import spell_sides
from vcnef.problem import Problem
from vcnef.spelling import spell_bytes


@dataclass(frozen=True, repr=False, eq=False)
class Trajectories:
    """n solutions u(t, x; p) on one grid at the same times.

    `params` are those of each trajectory; where some of the problem's change with time, those at each of its frames.
    `parts` are the sizes of the files that were concatenated, `subset` is the split this is, if it is one;
    `attributes` hold what is known beyond that (`mach`, `seed`, `generation`, ...). `split_in_order` says that the
    first rows of each file are its test split, as the benchmark has it; others are shuffled before they are split.
    """

    u: Float[Tensor, "n t *x c"]
    t: Float[Tensor, " t"]
    grid: Float[Tensor, "*x D"]
    params: Float[Tensor, "n p"] | Float[Tensor, "n t p"]
    problem: Problem
    attributes: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[int, ...] = ()
    subset: str | None = None
    split_in_order: bool = False

    def __post_init__(self) -> None:
        _check(self)
        if not self.parts:
            object.__setattr__(self, "parts", (len(self),))
        object.__setattr__(self, "problem", replace(self.problem, ranges=ranges(self.problem, self.params)))

    def __len__(self) -> int:
        return self.u.shape[0]

    def __repr__(self) -> str:
        return f"Trajectories({describe(self)}, {spell_bytes(self.u.nbytes)} on {self.u.device})"

    @property
    def resolution(self) -> tuple[int, ...]:
        return tuple(self.grid.shape[:-1])

    def read(self, rows: Tensor, cut: tuple[slice, ...] = ()) -> Float[Tensor, "b t *x c"]:
        """The fields of some trajectories; `cut` are the frames, and the points along each axis, that are wanted."""
        return self.u[(slice(None), *cut)][rows]

    def split(self, name: str, *, valid: float = VALID_SHARE, test: float = TEST_SHARE) -> Trajectories:
        """The "train", "valid" or "test" trajectories: a tenth of each file is test, the next share valid.

        Which ones that are is always the same: they are drawn by a fixed seed, or are the first ones of the benchmark's
        files. `valid=0` leaves nothing out for validation: the benchmark's own two-way split.
        """
        return self.select(rows_of_split(self, name, valid=valid, test=test), name)

    def select(self, rows: Int[Tensor, " n"], subset: str | None = None) -> Trajectories:
        """Some trajectories as a data set of their own, as the split `subset` where they are one."""
        rows = check_rows(rows, len(self)).to(self.u.device)
        # Rows in a row are a view of the same memory, not a copy.
        in_a_row = len(rows) and bool((rows.diff() == 1).all())
        u = self.u[rows[0] : rows[-1] + 1] if in_a_row else self.u[rows]
        return replace(self, u=u, params=self.params[rows], parts=(len(rows),), subset=subset)

    def view(
        self, space_stride: int = 1, time_stride: int = 1, horizon: float | None = None, phase: int = 0
    ) -> Trajectories:
        """Fewer frames or points of the same trajectories; nothing is copied."""
        view = View(space_stride, time_stride, horizon, phase)
        frames = view.frames(self.t.cpu().numpy())
        points = view.points(self.resolution, periodic=self.problem.periodic)
        params = self.params[:, frames] if self.problem.varying else self.params
        u = self.u[(slice(None), frames, *points)]
        return replace(self, u=u, t=self.t[frames], grid=self.grid[points], params=params)

    def to(self, device: torch.device | str) -> Trajectories:
        moved = {name: getattr(self, name).to(device) for name in ("u", "t", "grid", "params")}
        return replace(self, **moved)

    def to_xarray(self):
        """A labelled `xarray.Dataset` with one variable per channel."""
        from vcnef.data.labelled import to_dataset

        return to_dataset(self)

    def save(self, path: str | Path) -> Path:
        """Write to a file; the suffix chooses the format (.hdf5, .h5, .nc or .npz)."""
        from vcnef.data.save import save

        return save(self, check_path(path, "The file to write"))


def describe(data: Any) -> str:
    """Size, names and ranges of trajectories in one line."""
    problem = data.problem
    points = spell_sides(data.resolution)
    text = f"{problem.name}{f' {data.subset}' if data.subset else ''}: {len(data)} × {len(data.t)} times "
    text += f"{data.t[0].item():.4g}…{data.t[-1].item():.4g} × {points} points, {', '.join(problem.channels)}"
    for name, (low, high) in problem.ranges.items():
        text += f", {name}={low:g}" if low == high else f", {name}={low:g}…{high:g}"
    return text


def ranges(problem: Problem, params: Float[Tensor, "n *t p"]) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of each parameter, to the seven digits that single precision holds."""
    if not len(params):
        return {}
    rows = params.flatten(0, -2)
    low, high = rows.amin(dim=0).tolist(), rows.amax(dim=0).tolist()
    ends = zip(map(short, low), map(short, high), strict=True)
    return dict(zip(problem.parameters, ends, strict=True))


def merge_attributes(attributes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What several files say of themselves: one value where they agree, a tuple with one value each where not."""
    merged = {}
    for name in dict.fromkeys(name for each in attributes for name in each):
        values = tuple(each.get(name) for each in attributes)
        merged[name] = values[0] if all(value == values[0] for value in values) else values
    return merged


def _check(data: Trajectories) -> None:
    problem, shape = data.problem, tuple(data.u.shape)
    if data.u.ndim < 4 or data.u.ndim > 6:
        raise ValueError(f"u has shape {shape}; expected [samples, times, 1 to 3 space axes, channels].")
    expected = {
        "t": (shape[1],),
        "grid": (*shape[2:-1], problem.ndim),
        "params": (shape[0], *shape[1 : 1 + bool(problem.varying)], len(problem.parameters)),
    }
    for name, size in expected.items():
        if tuple(getattr(data, name).shape) != size:
            got = tuple(getattr(data, name).shape)
            raise ValueError(f"{name} has shape {got}; expected {size} beside u of shape {shape}.")
    if shape[-1] != len(problem.channels):
        names = ", ".join(problem.channels)
        raise ValueError(f"u has {shape[-1]} channels, but {len(problem.channels)} are named: {names}.")
    if data.parts and sum(data.parts) != shape[0]:
        raise ValueError(f"parts {data.parts} sum to {sum(data.parts)}; expected the {shape[0]} trajectories of u.")
