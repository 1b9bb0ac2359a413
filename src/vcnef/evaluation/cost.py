"""What a trajectory costs: the model's time and memory, and the classical solver's time and error beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.evaluation.selections import Selection, spell
from vcnef.evaluation.timing import peak_memory, time_model, time_once
from vcnef.metrics.errors import nrmse_table
from vcnef.pde import EQUATIONS, equation

POINTS = {"cpu": 2**16, "cuda": 2**22}
"""Points of the initial states that are timed together; a GPU needs many to be busy."""
MOST_SAMPLES = {"cpu": 4, "cuda": 64}
LONGEST_SOLVE = 60.0
"""Seconds; a solver that would take longer is not run."""


@dataclass(frozen=True)
class Cost:
    """Seconds per trajectory when `samples` of them are computed together, and bytes of GPU memory at the peak.

    `solver_nrmse` is the error of the classical solver run at this resolution, against the data.
    """

    samples: int
    device: str
    seconds: float
    peak_memory: int | None = None
    solver_seconds: float | None = None
    solver_nrmse: float | None = None

    @property
    def speed_up(self) -> float | None:
        """How many times faster than the solver the model is."""
        return None if self.solver_seconds is None else self.solver_seconds / self.seconds


def measure_cost(
    surrogate: Any, data: Any, params: Float[Tensor, "n p"], selection: Selection, device: torch.device, solver: bool
) -> tuple[Cost, list[str]]:
    """Time model and solver on the same few trajectories, spread over the data, on the same device."""
    grid, t = selection.grid(data).to(device), selection.times(data).to(device)
    rows = _spread(len(data), prod(grid.shape[:-1]), device.type)
    u = selection.cut(data.read(rows)).to(device)
    # Rows are of data, so they index the parameters wherever those lie.
    own = params[rows.to(params.device)].to(device)

    def answer() -> Tensor:
        return surrogate.answer(u[:, 0], grid, t, own)

    seconds = time_model(answer, device) / len(rows)
    cost = {"samples": len(rows), "device": device_name(device), "seconds": seconds}
    cost["peak_memory"] = peak_memory(answer, device)
    notes: list[str] = []
    if solver and _has_solver(data):
        found, notes = _solve(data, rows, u, t, device)
        cost |= found
    return Cost(**cost), notes


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _spread(samples: int, points: int, kind: str) -> Tensor:
    """Row numbers of a few trajectories, evenly over all."""
    kind = kind if kind in POINTS else "cpu"
    count = min(samples, MOST_SAMPLES[kind], max(1, POINTS[kind] // points))
    return torch.linspace(0, samples - 1, count, dtype=torch.float64).round().long()


def _has_solver(data: Any) -> bool:
    """Whether the equation is known and the data are on the solver's kind of grid."""
    name, problem = data.problem.name, data.problem
    if name not in EQUATIONS or not problem.periodic or data.grid.ndim != problem.ndim + 1:
        return False
    known = equation(name)
    return problem.channels == known.problem.channels and set(problem.parameters) <= set(known.defaults)


def _solve(
    data: Any, rows: Tensor, u: Float[Tensor, "b frames *x c"], t: Float[Tensor, " t"], device: torch.device
) -> tuple[Mapping[str, float], list[str]]:
    problem = data.problem
    generation = data.attributes.get("generation")
    known = equation(problem.name, generation=generation if generation == "2022" else "documented")
    columns = data.params[rows.to(data.params.device)].to(device).unbind(dim=1)
    params = dict(zip(problem.parameters, columns, strict=True))

    def run(times: Tensor) -> Tensor:
        return known.solve(u[:, 0], times.cpu(), params, domain=problem.domain)

    run(t[:1])
    expected = time_once(lambda: run(t[:1]), device) * float(t[-1] / t[0])
    if expected > LONGEST_SOLVE:
        points = spell(u.shape[2:-1])
        return {}, [f"The solver was not timed on {points} points: it would take about {expected:.0f} s."]
    found: list[Tensor] = []
    seconds = time_once(lambda: found.append(run(t)), device) / len(rows)
    error = nrmse_table(found[0], u[:, 1:], 0).mean().item()
    return {"solver_seconds": seconds, "solver_nrmse": error}, []
