"""How far the data themselves are from the solution, below which an error of a model says nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from vcnef.data.rows import spread
from vcnef.evaluation.cost import classical_solver, equation_of, expected_seconds, parameters_of
from vcnef.evaluation.fidelity import FEWEST_POINTS, coarsen
from vcnef.metrics.errors import floored_nrmse_table
from vcnef.pde.reference import Reference, exact_solution

TRAJECTORIES = 4
"""That are asked."""
LONGEST = 20.0
"""Seconds; a solver that would take longer is not asked."""


def data_error(data: Any, device: torch.device) -> float | None:
    """nRMSE of data that the solver of their equation has made: exactly where that has a solution, else at most about.

    The solver starts once more from every second point. A scheme of first order, as the best one is at shocks, is then
    off by twice as much as the data, so the distance between both is about the error of the data; where fields are
    smooth it is less. None where no solver is known to be theirs, between walls, and where it would take too long.
    """
    if not all(data.problem.closes) or any(n % 2 or n // 2 < FEWEST_POINTS for n in data.resolution):
        return None
    rows = spread(len(data), min(len(data), TRAJECTORIES))
    u = data.read(rows).to(device)
    t = (data.t[1:] - data.t[0]).to(device)
    known = equation_of(data)
    exact = exact_solution(known, u[:, 0], t, parameters_of(data, rows, device), data.problem.domain)
    if exact is not None:
        return floored_nrmse_table(u[:, 1:], exact.u, u[:, 0]).mean().item()
    run = partial(classical_solver(data, rows), coarsen(u[:, 0], 2))
    if expected_seconds(run, t, device) > LONGEST:
        return None
    kept = coarsen(u.flatten(0, 1), 2).unflatten(0, u.shape[:2])
    distance = floored_nrmse_table(run(t), kept[:, 1:], kept[:, 0]).mean().item()
    return Reference(u, 2).own_error(distance)
