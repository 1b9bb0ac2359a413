"""Metrics of one selection of frames and points, collected batch by batch."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.data.precision import short
from vcnef.evaluation.record import Result
from vcnef.evaluation.selections import Selection, known_of_time
from vcnef.evaluation.tables import number
from vcnef.fading import FADED
from vcnef.grid import spell_sides
from vcnef.metrics import Scores
from vcnef.metrics.errors import faded_frames, floored_nrmse_table
from vcnef.metrics.scores import RAW, existing_in
from vcnef.surrogate.points import SCATTERED, UNEVEN, arrangement

BAND = {"low": 10, "high": 90}
"""Percentiles of the trajectories."""
WITHOUT = {SCATTERED: ("brmse", "frmse"), UNEVEN: ("frmse",)}
"""Metrics that go by the edges and waves of a uniform grid; of other points they would tell the order."""
ABOUT = {
    SCATTERED: "Points are scattered: bRMSE and fRMSE, which need the edges and waves of a grid, are left out.",
    UNEVEN: "The grid is uneven: fRMSE, which needs the waves of a uniform one, is left out.",
}


class Judge:
    """Predicts trajectories at a selection's points and times and scores them, group by group."""

    def __init__(self, selection: Selection, data: Any, member: Int[Tensor, " n"]) -> None:
        """`member` is the group of each trajectory."""
        self.selection, self.data, self.member = selection, data, member
        self.t = selection.times(data)
        self.grid = selection.grid(data)
        self.arrangement = arrangement(self.grid)
        self.per_sample = torch.full((len(data),), torch.nan, dtype=torch.float64)
        self.over_time = torch.full((len(data), len(self.t)), torch.nan, dtype=torch.float64)
        self.not_finite = self.faded = 0
        left_out = WITHOUT.get(self.arrangement, ())
        self._names = [name for name in existing_in(self.grid.ndim - 1) if name not in left_out]
        self._scores: dict[int, Scores] = {}

    def update(self, surrogate: Any, rows: Int[Tensor, " b"], u: Float[Tensor, "b t *x c"], params: Tensor) -> None:
        """Predict and score the trajectories `rows`, whose fields at full resolution are `u`."""
        cut = self.selection.cut(u)
        u0, truth = cut[:, 0], cut[:, 1:]
        begin = self.selection.begin(u)
        known = known_of_time(surrogate, self.data, self.selection, params)
        prediction = surrogate.answer(begin, self.grid.to(u.device), self.t.to(u.device), params, **known)
        errors = floored_nrmse_table(prediction, truth, u0)
        # What is not finite is worse than all others; NaN is left to targets that are zero and have no error.
        ranked = replace(errors, values=errors.values.nan_to_num(nan=torch.inf, posinf=torch.inf))
        self.per_sample[rows] = ranked.mean("b").cpu()
        self.over_time[rows] = ranked.mean("b t").cpu()
        self.faded += int(faded_frames(truth, u0).sum())
        self.not_finite += int((~prediction.flatten(1).isfinite().all(dim=1)).sum())
        member = self.member[rows]
        for group in member.unique().tolist():
            # The predictions hold the queried times only, so every frame is judged.
            scores = self._scores.setdefault(group, Scores(self._names, initial_frames=0))
            chosen = (member == group).to(u.device)
            scores.update(prediction[chosen], truth[chosen], u0[chosen])

    def scores(self, group: int | None = None) -> dict[str, Any]:
        """The metrics of one group, or of all trajectories."""
        chosen = self._scores.values() if group is None else [self._scores[group]]
        together = Scores(initial_frames=0)
        for each in chosen:
            together.merge(each)
        with warnings.catch_warnings():
            # Values left out are counted in the result, and `notes` says them.
            warnings.simplefilter("ignore", UserWarning)
            return together.compute()

    def result(self) -> Result:
        return Result(
            resolution=tuple(self.grid.shape[:-1]),
            frames=len(self.selection.frames),
            t=tuple(map(short, self.t.tolist())),
            trained=False,
            scores=self.scores(),
            not_finite=self.not_finite,
            band=self.band(),
        )

    def band(self) -> dict[str, tuple[float, ...]]:
        """Between which values the errors of most trajectories lie, at each time."""
        with warnings.catch_warnings():
            # Where all targets are zero there is no band.
            warnings.filterwarnings("ignore", message="All-NaN slice", category=RuntimeWarning)
            # One of the values, never between two: some may be infinite.
            found = np.nanpercentile(self.over_time.numpy(), list(BAND.values()), axis=0, method="nearest")
        return dict(zip(BAND, map(tuple, found.tolist()), strict=True))

    def notes(self) -> list[str]:
        """What went wrong, in sentences."""
        where = f"on {spell_sides(self.grid.shape[:-1])} points and {len(self.selection.frames)} times"
        notes = []
        if self.arrangement in WITHOUT:
            notes.append(ABOUT[self.arrangement])
        if self.not_finite:
            notes.append(
                f"{self.not_finite} of {len(self.data)} predictions {where} are not finite; "
                "metrics they belong to are null."
            )
        if self.faded:
            frames = self.over_time.numel() * len(self.data.problem.channels)
            raw = number(self.scores()["overall"][RAW])
            notes.append(
                f"In {self.faded:,} of {frames:,} frames {where} fields have faded below {FADED:g} of what they were; "
                f"nRMSE divides by no less than that. Without this floor it is {raw}."
            )
        notes += [
            f"{name} {where} leaves out {count} values, whose targets are zero or constant."
            for name, count in self.scores()["left_out"].items()
        ]
        return notes
