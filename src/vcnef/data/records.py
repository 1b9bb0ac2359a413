"""Trajectories one by one, for PyTorch's own DataLoader and whatever else takes a Dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from vcnef.data.scaling import Scaling
from vcnef.data.stored import StoredTrajectories
from vcnef.data.trajectories import Trajectories

Record = dict[str, Tensor]


class Records(Dataset[Record]):
    """A `torch.utils.data.Dataset` of trajectories, each a dictionary of tensors in single precision:

    - `u0 [*x c]`: the initial state, which is the first frame;
    - `u [t *x c]`: the frames after it, what a model is to answer;
    - `t [t]`: their times, counted from the initial state;
    - `grid [*x D]`: the points, the same in all records;
    - `params [p]`: the parameters in the order of `data.problem.parameters`; of length 0 where there are none. Where
      some change with time, `[t + 1, p]`: at the initial state, and at each time after it.

    A batch of them has one more axis in front, and is what every model of this library takes:
    `model(batch["u0"], batch["grid"], batch["t"], batch["params"])` answers `u`. All is in the units of the data, or in
    those of a network with the `scaling` of a surrogate. Data that stay in their files are read as they are asked for,
    by each worker of a DataLoader for itself.
    """

    def __init__(self, data: Any, *, scaling: Scaling | None = None) -> None:
        if not isinstance(data, Trajectories | StoredTrajectories):
            raise ValueError(
                f"Records are of trajectories, got {type(data).__name__}. Make such with vcnef.from_arrays or "
                "vcnef.open."
            )
        if len(data.t) < 2:
            raise ValueError(f"The trajectories have {len(data.t)} frame; expected an initial one and one after it.")
        self.data: Trajectories | StoredTrajectories = data
        self.scaling = scaling

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Record:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Record]:
        """Return several records, whose fields are read at once; a DataLoader asks so."""
        rows = torch.as_tensor([self._row(index) for index in indices])
        u = self.data.read(rows)
        here = self.data.params.device
        params, t = self.data.params[rows.to(here)], (self.data.t - self.data.t[0])[1:]
        grid = self.data.grid
        if self.scaling is not None:
            units = self.scaling.to(u.device).units(u[:, 0], params)
            u, t, params, grid = units.fields(u), units.times(t), units.params(params), self.scaling.coordinates(grid)
        each = zip(u, t.expand(len(u), -1), params, strict=True)
        return [{"u0": own[0], "u": own[1:], "t": times, "grid": grid, "params": values} for own, times, values in each]

    def _row(self, index: Any) -> int:
        row = int(index)
        if not -len(self) <= row < len(self):
            raise IndexError(f"There is no record {row}; expected 0 to {len(self) - 1}.")
        return row % len(self)
