"""How fast models answer and how much memory they take: the paper's table of inference times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vcnef.accelerate import predict
from vcnef.checks import check_at_least
from vcnef.evaluation.tables import Section
from vcnef.grid import cell_centres
from vcnef.models.interface import TrajectoryModel, number_of_weights
from vcnef.spelling import spell_memory, spell_seconds
from vcnef.timing import peak_memory, time_once

TRAINED_STEPS = 40
"""Frames to the training horizon, where a model has no clock of its own; more are asked beyond it, as in the paper."""
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
PRECISIONS = ("default", "fp32", "tf32", *HALF)
"""The first is what `predict` does when nothing is said: fused kernels where a model has them, fp32 elsewhere."""

Answer = Callable[[int], None]
"""Predicts the trajectories of so many initial states, a batch at a time."""


class Case(NamedTuple):
    """What is the same for all models."""

    samples: int
    points: int
    batch: int
    precision: str
    device: torch.device | str


class Question(NamedTuple):
    """What a model is asked."""

    u0: Tensor
    grid: Tensor
    params: Tensor | None


@dataclass(frozen=True)
class Speed:
    """Time and memory of all trajectories of a benchmark with one model; what was not measured is None.

    `way` is how the query times were asked: "parallel" all at once, "sequential" one by one, "chunks" as `predict`
    chooses, and "rollout" where the model goes from frame to frame.
    """

    model: str
    way: str
    steps: int
    weights: int
    seconds: float | None = None
    spread: float | None = None
    """Between the fastest and the slowest of the repeats, in seconds."""
    peak_memory: int | None = None
    fits: bool = True
    """Whether the device had enough memory."""


def measure_speed(
    models: Mapping[str, TrajectoryModel],
    steps: Sequence[int] = (40, 80, 120, 160, 200, 240),
    *,
    samples: int = 1000,
    points: int = 256,
    batch: int = 64,
    precision: str = "default",
    device: torch.device | str = "cpu",
    repeats: int = 3,
    report: Callable[[str], None] | None = None,
) -> Iterator[Speed]:
    """Time models on the same random initial states, `batch` at a time, without any transfer from the host.

    `points` is those of a side of the grid. Repeats of a case follow each other, after a batch that is not counted;
    each case is given as soon as it is known.
    """
    _check(precision, samples=samples, points=points, batch=batch, repeats=repeats)

    def cost(answer: Answer) -> dict[str, Any]:
        answer(batch)
        taken = [time_once(lambda: answer(samples), device) for _ in range(repeats)]
        memory = peak_memory(lambda: answer(batch), device)
        return {"seconds": min(taken), "spread": max(taken) - min(taken), "peak_memory": memory}

    yield from _measure(models, steps, Case(samples, points, batch, precision, device), cost, report)


def measure_memory(
    models: Mapping[str, TrajectoryModel],
    steps: Sequence[int] = (40, 80, 120, 160, 200, 240),
    *,
    points: int = 256,
    batch: int = 64,
    precision: str = "default",
    device: torch.device | str = "cuda",
    report: Callable[[str], None] | None = None,
) -> Iterator[Speed]:
    """Only the memory of the same cases, which one batch tells."""
    _check(precision, points=points, batch=batch)
    if torch.device(device).type != "cuda":
        raise ValueError(
            f"Memory is measured on a CUDA device, got {device}. Choose a machine with a GPU, or measure speed."
        )

    def cost(answer: Answer) -> dict[str, Any]:
        # Libraries and compilers set up their own memory first.
        answer(batch)
        return {"peak_memory": peak_memory(lambda: answer(batch), device)}

    yield from _measure(models, steps, Case(batch, points, batch, precision, device), cost, report)


def speed_table(found: Sequence[Speed], title: str) -> Section:
    """One row per model and way, with time and memory for each number of steps."""
    steps = sorted({each.steps for each in found})
    cases = {(each.model, each.way, each.steps): each for each in found}
    rows = []
    for model, way, weights in dict.fromkeys((each.model, each.way, each.weights) for each in found):
        cells = [_cell(cases.get((model, way, count))) for count in steps]
        rows.append((model, way, f"{weights:,}", *cells))
    return Section(title, ("model", "times", "weights", *(f"{count} steps" for count in steps)), tuple(rows))


def _check(precision: str, **counts: int) -> None:
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; expected one of {', '.join(PRECISIONS)}.")
    check_at_least(1, **counts)


def _measure(
    models: Mapping[str, TrajectoryModel],
    steps: Sequence[int],
    case: Case,
    cost: Callable[[Answer], dict[str, Any]],
    report: Callable[[str], None] | None,
) -> Iterator[Speed]:
    chosen = {} if case.precision == "default" else {"precision": case.precision}
    # That is for parts with kernels, and for single precision; other parts come to half precision by autocast.
    half = {"dtype": HALF.get(case.precision), "enabled": case.precision in HALF}
    for name, model in models.items():
        model.to(case.device).eval()
        question = _ask_something(model, case)
        for count in steps:
            for way, limit in _ways(model, case.batch * case.points**model.ndim, count).items():
                if report:
                    report(f"{name}, {count} steps, {way}")
                try:
                    with torch.autocast(torch.device(case.device).type, **half):
                        found = cost(_answering(model, question, count, case.batch, points_per_chunk=limit, **chosen))
                except torch.OutOfMemoryError:
                    found = {"fits": False}
                yield Speed(name, way, count, number_of_weights(model), **found)
        model.cpu()


def _ask_something(model: TrajectoryModel, case: Case) -> Question:
    samples, points, device = case.samples, case.points, case.device
    generator = torch.Generator().manual_seed(0)
    grid = cell_centres(((0.0, 1.0),) * model.ndim, (points,) * model.ndim)
    u0 = torch.randn(samples, *grid.shape[:-1], model.channels, generator=generator)
    params = torch.rand(samples, model.params, generator=generator) if model.params else None
    return Question(u0.to(device), grid.to(device), None if params is None else params.to(device))


def _answering(model: TrajectoryModel, question: Question, steps: int, batch: int, **asked: Any) -> Answer:
    u0, grid, params = question
    t = torch.arange(1, steps + 1, device=u0.device) / getattr(model, "steps", TRAINED_STEPS)

    def answer(samples: int) -> None:
        for first in range(0, min(samples, len(u0)), batch):
            rows = slice(first, first + batch)
            predict(model, u0[rows], grid, t, None if params is None else params[rows], **asked)

    return answer


def _ways(model: TrajectoryModel, points: int, steps: int) -> dict[str, int | None]:
    """How the times may be asked, by the number of points in flight."""
    if not model.independent_times:
        return {"rollout": points * steps}
    return {"parallel": points * steps, "chunks": None, "sequential": points}


def _cell(each: Speed | None) -> str:
    if each is None:
        return "–"
    if not each.fits:
        return "out of memory"
    time = "" if each.seconds is None else spell_seconds(each.seconds)
    memory = "" if each.peak_memory is None else spell_memory(each.peak_memory)
    return f"{time} {memory}".strip()
