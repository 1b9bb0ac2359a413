"""When a surrogate pays: what a classical solver takes for the same error, and after how many solves it is cheaper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, log
from typing import Any

import torch
from torch import Tensor

from vcnef.evaluation.cost import follows_solver
from vcnef.evaluation.fastest import Way, fastest_model
from vcnef.evaluation.fidelity import Fidelity, solver_at_its_best
from vcnef.evaluation.selections import Selection

PARTS = (2, 4, 8, 16, 32)
"""Of the points of the data along an axis, one in so many."""


@dataclass(frozen=True)
class BreakEven:
    """The model beside the solver at equal error, on one device.

    speed_up = solver_seconds / seconds,    solves = invested / (solver_seconds − seconds)

    Where the model's error is outside of those of the solver's grids, the solver needs `solver_seconds` at most: on the
    coarsest grid it is still better, or on the data's own grid, which is their truth. `speed_up` is then an upper bound
    and `solves` a lower one.
    """

    seconds: float
    """Of the model, per trajectory."""
    solver_seconds: float
    """Of the solver, per trajectory, for the model's error."""
    at_most: bool
    invested: float | None
    """Seconds of training and of solving what was trained on; None where the model does not say."""
    solves: float | None
    """Solves after which the model has been cheaper; infinite where it never is."""
    model: Way | None = None
    """How the model was fastest."""
    solver: tuple[Fidelity, ...] = ()
    """The solver's grids, finest first, compiled and on as many threads as made it fastest."""

    @property
    def speed_up(self) -> float:
        return self.solver_seconds / self.seconds


def measure_break_even(
    surrogate: Any, data: Any, params: Tensor, selection: Selection, nrmse: float, device: torch.device
) -> tuple[BreakEven | None, list[str]]:
    """Compare a model with the solver of the data's equation; a note says why where that cannot be done.

    Both have the settings with which they are fastest on the device. `nrmse` is the model's, at `selection`.
    """
    if not isfinite(nrmse):
        return None, ["There is no break-even: the model's error is not finite."]
    follows, notes = follows_solver(data, device)
    if not follows or not all(data.problem.closes):
        return None, notes or ["There is no break-even: no solver is known for these data."]
    fidelities = solver_at_its_best(data, selection, device, PARTS, nrmse)
    if len(fidelities) == 1:
        return None, ["There is no break-even: the solver takes too long, or there is no coarser grid for it."]
    way = fastest_model(surrogate, data, params, selection, device, nrmse)
    found = compare(nrmse, way.seconds, fidelities, surrogate.provenance)
    return replace(found, model=way, solver=tuple(fidelities)), []


def compare(nrmse: float, seconds: float, fidelities: Sequence[Fidelity], provenance: Any) -> BreakEven:
    """The break-even of a model with this error and time; the solver's grids are finest first."""
    solver, at_most = seconds_at(nrmse, fidelities)
    training, trajectories = provenance.get("training_seconds"), provenance.get("trajectories")
    invested = None
    if training is not None and trajectories is not None:
        invested = training + trajectories * fidelities[0].seconds
    solves = None
    if seconds >= solver:
        solves = inf
    elif invested is not None:
        solves = invested / (solver - seconds)
    return BreakEven(seconds, solver, at_most, invested, solves)


def seconds_at(nrmse: float, fidelities: Sequence[Fidelity]) -> tuple[float, bool]:
    """What the solver takes for an error, and whether that is only known to be enough.

    Between two grids log seconds are linear in log error, as for a scheme of fixed order.
    """
    finest, *coarser = fidelities
    better = finest
    for worse in coarser:
        if worse.nrmse > nrmse:
            if better is finest:
                # The data are the solver's own on that grid: its error there is not measured.
                return finest.seconds, True
            part = log(nrmse / better.nrmse) / log(worse.nrmse / better.nrmse)
            return better.seconds * (worse.seconds / better.seconds) ** part, False
        better = worse
    return better.seconds, True
