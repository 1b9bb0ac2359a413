"""What training costs: seconds and memory of the loop's own step, on random trajectories that lie on the device."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from vcnef.checks import check_at_least
from vcnef.data import Queries, Scaling, Trajectories
from vcnef.grid import cell_centres
from vcnef.models.interface import TrajectoryModel, number_of_weights
from vcnef.problem import Problem
from vcnef.surrogate import Surrogate
from vcnef.timing import peak_memory, time_once
from vcnef.training.checkpoint import RunFolder
from vcnef.training.devices import fused, numerics, precise
from vcnef.training.job import Job, prepare
from vcnef.training.recipe import Recipe
from vcnef.training.step import WARM_UP, GraphedStep

if TYPE_CHECKING:
    from lightning_fabric import Fabric

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
BATCHES = 4
"""As many lie on the device: enough to draw from."""
MOST_STEPS = 20
ENOUGH_SECONDS = 2.0
"""A measurement is so many steps, or fewer where they take longer than this, but one at least."""


class Case(NamedTuple):
    """What is the same for all models."""

    points: int
    frames: int
    batch: int
    times: int | None
    precision: str
    device: torch.device


@dataclass(frozen=True)
class TrainingCost:
    """Seconds per step of the optimiser and per epoch, and bytes at the peak; what was not measured is None."""

    model: str
    weights: int
    times: int
    """Query times per step; a model that goes from frame to frame passes all."""
    recorded: bool = False
    """Whether the step was recorded and replayed as a CUDA graph."""
    seconds: float | None = None
    spread: float | None = None
    """Between the fastest and the slowest of the repeats, per step."""
    epoch_seconds: float | None = None
    peak_memory: int | None = None
    """Weights, optimiser, batch and all that a step needs, without the trajectories that wait for their turn."""
    fits: bool = True
    """Whether the device had enough memory."""


def measure_training(
    models: Mapping[str, TrajectoryModel],
    *,
    points: int = 256,
    frames: int = 40,
    batch: int = 64,
    times: int | None = None,
    epoch_samples: int = 9000,
    precision: str = "fp32",
    device: torch.device | str = "cpu",
    repeats: int = 3,
    report: Callable[[str], None] | None = None,
) -> Iterator[TrainingCost]:
    """Time the step that `fit` takes, drawing of the batch included: compiled and recorded where that is possible.

    points, frames: those of a side of the grid, and after the initial one; a model with a clock has its own frames.
    times: query times per step, drawn from the frames, for models whose times are independent; by default all.
    epoch_samples: trajectories of an epoch, which takes as many steps as there are batches, the last counted as whole.
    """
    case = Case(points, frames, batch, times, precision, torch.device(device))
    _check(case, epoch_samples=epoch_samples, repeats=repeats)
    if other := [name for name, model in models.items() if model.one_instance]:
        raise ValueError(f"{', '.join(other)} is trained on an equation, not on trajectories as here. Leave it out.")
    for name, model in models.items():
        if report:
            report(f"{name}, training")
        queries = Queries(times=_fewer(case, model))
        known = {"model": name, "weights": number_of_weights(model), "times": queries.times or _frames(case, model)}
        try:
            found = _measure(model, case, queries, repeats)
            found["epoch_seconds"] = ceil(epoch_samples / batch) * found["seconds"]
        except torch.OutOfMemoryError:
            found = {"fits": False}
        yield TrainingCost(**known, **found)
        model.cpu()
        _forget(case.device)


def _check(case: Case, **counts: int) -> None:
    if case.precision not in PRECISIONS:
        raise ValueError(f"precision is {case.precision!r}; expected one of {', '.join(PRECISIONS)}.")
    if case.precision == "fp16" and case.device.type != "cuda":
        raise ValueError(f"precision is 'fp16', which needs a GPU; the device is {case.device}. Use 'bf16' or 'fp32'.")
    check_at_least(1, points=case.points, frames=case.frames, batch=case.batch, **counts)
    if case.times is not None and not 1 <= case.times <= case.frames:
        raise ValueError(f"times is {case.times}; expected 1 to {case.frames}, of which they are drawn.")


def _frames(case: Case, model: TrajectoryModel) -> int:
    return getattr(model, "steps", case.frames)


def _fewer(case: Case, model: TrajectoryModel) -> int | None:
    """The number of query times, where they are not simply all."""
    return None if not model.independent_times or case.times == case.frames else case.times


def _measure(model: TrajectoryModel, case: Case, queries: Queries, repeats: int) -> dict[str, Any]:
    recipe = Recipe(batch=case.batch, precision=case.precision, compile=None if model.fusible else False)
    fabric = _one_device(case)
    data = _random_trajectories(model, case)
    surrogate = Surrogate(model, "benchmark", {}, data.problem, Scaling.fit(data))
    parts = {"queries": queries, "symmetries": (), "objective": None, "resume": False}
    job = prepare(fabric, surrogate, data, None, recipe, folder=RunFolder(None), **parts)
    advance = _advancing(job)
    with numerics(recipe), fused(model, recipe, queries, case.device):
        peak = _warm_up(advance, case.device)
        steps = min(MOST_STEPS, max(1, int(ENOUGH_SECONDS / time_once(lambda: advance(1), case.device))))
        taken = [time_once(lambda: advance(steps), case.device) / steps for _ in range(repeats)]
    return {
        "recorded": isinstance(job.step, GraphedStep),
        "seconds": min(taken),
        "spread": max(taken) - min(taken),
        "peak_memory": None if peak is None else peak - data.u.nbytes,
    }


def _warm_up(advance: Callable[[int], None], device: torch.device) -> int | None:
    """Steps up to the first replay, and the peak among them: a recording that is replayed does not allocate again."""
    if device.type != "cuda":
        advance(1)
        return None
    return peak_memory(lambda: advance(WARM_UP + 2), device)


def _forget(device: torch.device) -> None:
    """Nothing of a model that was measured counts with the next."""
    gc.collect()  # optimisers and recordings hold each other
    if device.type == "cuda":
        torch.compiler.reset()  # models share code, of which the compiler keeps only so many versions


def _one_device(case: Case) -> Fabric:
    from lightning_fabric import Fabric

    devices = [case.device.index] if case.device.index is not None else 1
    kind = case.device.type
    fabric = Fabric(accelerator=kind, devices=devices, **precise(case.precision, kind))
    fabric.launch()
    return fabric


def _advancing(job: Job) -> Callable[[int], None]:
    """Takes so many steps."""
    stream, rate = job.batches.steps(), job.recipe.learning_rate

    def advance(steps: int) -> None:
        for batch in islice(stream, steps):
            job.step(batch, 0.5, rate)

    return advance


def _random_trajectories(model: TrajectoryModel, case: Case) -> Trajectories:
    domain, sides = ((0.0, 1.0),) * model.ndim, (case.points,) * model.ndim
    count, frames = BATCHES * case.batch, _frames(case, model) + 1
    random = {"generator": torch.Generator(case.device).manual_seed(0), "device": case.device}
    u = torch.randn(count, frames, *sides, model.channels, **random)
    params = torch.rand(count, model.params, **random)
    channels, names = ([f"{letter}{k}" for k in range(n)] for letter, n in (("u", u.shape[-1]), ("p", model.params)))
    problem = Problem("random", tuple(channels), tuple(names), domain)
    t, grid = torch.linspace(0.0, 1.0, frames), cell_centres(domain, sides)
    return Trajectories(u, t.to(case.device), grid.to(case.device), params, problem)
