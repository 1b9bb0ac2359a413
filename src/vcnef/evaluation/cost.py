"""What a trajectory costs: the model's time and memory, and the classical solver's time and error beside it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.data.rows import spread
from vcnef.evaluation.selections import Selection, known_of_time
from vcnef.evaluation.tables import number
from vcnef.grid import spell_sides
from vcnef.metrics.errors import floored_nrmse_table
from vcnef.pde import Equation, equation, is_known, noted_generation
from vcnef.surrogate.points import UNIFORM, arrangement
from vcnef.timing import peak_memory, time_model, time_once

POINTS = {"cpu": 2**16, "cuda": 2**22}
"""Points of the initial states that are timed together; a GPU needs many to be busy."""
MOST_SAMPLES = {"cpu": 4, "cuda": 64}
LONGEST_SOLVE = 60.0
"""Seconds; a solver that would take longer is not run."""
PARTS = (1 / 256, 1 / 64, 1 / 16, 1 / 4, 1.0)
"""Of the time to the first output, by which a solver is tried."""
TELLING = 2.0
"""Seconds from which on a try tells what the whole would take."""
OFF = 0.5
"""Of the change to the first frame: a solver that misses more follows another equation than the data. On their own grid
ours misses 0, on one of sixteen points 0.4 at most; waves at twice the speed make it 0.7 to 1."""
FAR = 0.2
"""nRMSE of the solver over all times, on the data's own grid, from which on a note doubts its constants."""
JUDGING = 2
"""Trajectories that this is asked of."""


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
    surrogate: Any, data: Any, params: Tensor, selection: Selection, device: torch.device, solver: bool
) -> tuple[Cost, list[str]]:
    """Time the model, and the `solver` where there is one, on the same few trajectories and the same device."""
    grid, t = selection.grid(data).to(device), selection.times(data).to(device)
    rows = spread(len(data), together(len(data), prod(grid.shape[:-1]), device))
    # The truth is none of the model's memory.
    whole = data.read(rows).cpu()
    u, begin = selection.cut(whole), selection.begin(whole).to(device)
    u0, truth = u[:, 0].to(device), u[:, 1:]
    # Rows are of data, so they index the parameters wherever those lie.
    own = params[rows.to(params.device)].to(device)
    known = known_of_time(surrogate, data, selection, own)

    def answer() -> Tensor:
        return surrogate.answer(begin, grid, t, own, **known)

    seconds = time_model(answer, device) / len(rows)
    cost = {"samples": len(rows), "device": device_name(device), "seconds": seconds}
    cost["peak_memory"] = peak_memory(answer, device)
    notes: list[str] = []
    if solver:
        found, notes = _solve(data, rows, u0, truth, t, device)
        cost |= found
        if selection.stride == 1 and found and not found["solver_nrmse"] <= FAR:
            notes = [_far_off(data, found["solver_nrmse"])]
    return Cost(**cost), notes


def device_name(device: torch.device) -> str:
    """What a time was taken on, which says little without: of a CPU also how many threads."""
    if device.type != "cpu":
        return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    name = getattr(torch.cpu, "get_capabilities", dict)().get("cpu_name") or platform.processor() or platform.machine()
    threads = torch.get_num_threads()
    return f"{' '.join(name.split())}, {threads} thread{'s' * (threads != 1)}"


def together(samples: int, points: int, device: torch.device) -> int:
    """How many trajectories on so many points are timed at once."""
    kind = device.type if device.type in POINTS else "cpu"
    return min(samples, MOST_SAMPLES[kind], max(1, POINTS[kind] // points))


def has_solver(data: Any) -> bool:
    """Whether the equation and its parameters are known and the data are on the solver's kind of grid."""
    name, problem = data.problem.name, data.problem
    if not is_known(name) or problem.varying or arrangement(data.grid) != UNIFORM:
        return False
    known = equation(name)
    if not known.solvable or problem.periodic != known.periodic:
        return False
    return problem.channels == known.problem.channels and set(problem.parameters) == set(known.defaults)


def follows_solver(data: Any, device: torch.device) -> tuple[bool, list[str]]:
    """Whether the solver of the equation that the data name is theirs, and a note where it is not.

    Names are given by people. What is asked is the first step, from each state to the next one.
    """
    if not has_solver(data):
        return False, []
    rows = spread(len(data), min(len(data), JUDGING))
    u = data.read(rows).to(device)
    t = (data.t[1:2] - data.t[0]).to(device)
    run = partial(classical_solver(data, rows), u[:, 0])
    if expected_seconds(run, t, device) > LONGEST_SOLVE:
        return True, []  # and will not be timed
    missed, change = (run(t)[:, 0] - u[:, 1]).norm(), (u[:, 1] - u[:, 0]).norm()
    if missed <= OFF * change:
        return True, []
    return False, [
        f"The data are called {data.problem.name!r}, but over their first step the solver of that equation misses "
        f"{float(missed / change):.0%} of the change, so they obey another one: the solver is left out."
    ]


def equation_of(data: Any) -> Equation:
    """The equation of the data, of the generation that they note."""
    return equation(data.problem.name, generation=noted_generation(data.attributes))


def parameters_of(data: Any, rows: Int[Tensor, " b"], device: torch.device) -> dict[str, Tensor]:
    """The parameters of some trajectories by name."""
    columns = data.params[rows.to(data.params.device)].to(device).unbind(dim=1)
    return dict(zip(data.problem.parameters, columns, strict=True))


def classical_solver(
    data: Any, rows: Int[Tensor, " b"], *, compiled: bool | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """(u0, t) -> u with the equation of the data and the parameters of these trajectories."""
    known = equation_of(data)

    def solve(u0: Float[Tensor, "b *x c"], t: Float[Tensor, " t"]) -> Float[Tensor, "b t *x c"]:
        own = parameters_of(data, rows, u0.device)
        return known.solve(u0, t.cpu(), own, domain=data.problem.domain, compiled=compiled)

    return solve


def expected_seconds(run: Callable[[Tensor], Any], t: Float[Tensor, " t"], device: torch.device) -> float:
    """What `run(t)` would take, from what it takes to the first time or a part of it; then everything is compiled.

    Small parts come first: where there are few times, a slow solver takes hours to the first of them.
    """
    run(PARTS[0] * t[:1])
    for part in PARTS:
        taken = time_once(lambda part=part: run(part * t[:1]), device)
        if taken > TELLING:
            break
    return taken * float(t[-1] / (part * t[0]))


def _far_off(data: Any, error: float) -> str:
    return (
        f"The solver of {data.problem.name!r} is off by an nRMSE of {number(error)} on the data's own grid: that is "
        "too coarse for it, or the data obey the equation with other constants. Its time says little then."
    )


def _solve(
    data: Any,
    rows: Int[Tensor, " b"],
    u0: Float[Tensor, "b *x c"],
    truth: Float[Tensor, "b t *x c"],
    t: Float[Tensor, " t"],
    device: torch.device,
) -> tuple[Mapping[str, float], list[str]]:
    solve = classical_solver(data, rows)
    expected = expected_seconds(partial(solve, u0), t, device)
    if expected > LONGEST_SOLVE:
        points = spell_sides(u0.shape[1:-1])
        return {}, [f"The solver was not timed on {points} points: it would take about {expected:.0f} s."]
    found: list[Tensor] = []
    seconds = time_once(lambda: found.append(solve(u0, t)), device) / len(rows)
    error = floored_nrmse_table(found[0], truth.to(device), u0).mean().item()
    return {"solver_seconds": seconds, "solver_nrmse": error}, []
