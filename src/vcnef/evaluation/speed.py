"""How fast models answer and how much memory they take: the paper's table of inference times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vcnef.evaluation.tables import Section, seconds
from vcnef.evaluation.timing import peak_memory, time_once
from vcnef.grid import cell_centres
from vcnef.models.interface import TrajectoryModel, number_of_weights

TRAINED_STEPS = 40
"""Frames to the training horizon: more steps than these are asked beyond it, as in the paper."""
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
PRECISIONS = ("default", "fp32", "tf32", *HALF)
"""The first is what `predict` does when nothing is said: fused kernels where a model has them, fp32 elsewhere."""


class Question(NamedTuple):
    """What the models are asked."""

    u0: Tensor
    grid: Tensor
    params: Tensor | None


@dataclass(frozen=True)
class Speed:
    """Time and memory of all trajectories of a benchmark with one model.

    `way` is how the query times were asked: "parallel" all at once, "sequential" one by one, "chunks" as `predict`
    chooses, and "rollout" where the model goes from frame to frame.
    """

    model: str
    way: str
    steps: int
    seconds: float
    spread: float
    """Between the fastest and the slowest of the repeats, in seconds."""
    peak_memory: int | None
    weights: int


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
    """Time 1D models on the same random initial states, `batch` at a time, without any transfer from the host.

    Repeats of a case follow each other, after a batch that is not counted; each case is given as soon as it is known.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; expected one of {', '.join(PRECISIONS)}.")
    for name, value in {"samples": samples, "points": points, "batch": batch, "repeats": repeats}.items():
        if value < 1:
            raise ValueError(f"{name} is {value}; expected at least 1.")
    for name, model in models.items():
        model.to(device).eval()
        question = _ask_something(model, samples, points, device)
        for count in steps:
            for way, limit in _ways(model, batch * points**model.ndim, count).items():
                if report:
                    report(f"{name}, {count} steps, {way}")
                with computing_in(precision, device):
                    cost = _measure(model, question, count, batch, repeats, _asked(precision, limit))
                yield Speed(name, way, count, *cost, number_of_weights(model))
        model.cpu()


def _ask_something(model: TrajectoryModel, samples: int, points: int, device: torch.device | str) -> Question:
    generator = torch.Generator().manual_seed(0)
    grid = cell_centres(((0.0, 1.0),) * model.ndim, (points,) * model.ndim)
    u0 = torch.randn(samples, *grid.shape[:-1], model.channels, generator=generator)
    params = torch.rand(samples, model.params, generator=generator) if model.params else None
    return Question(u0.to(device), grid.to(device), None if params is None else params.to(device))


def _asked(precision: str, limit: int | None) -> dict[str, Any]:
    return {"points_per_chunk": limit} | ({} if precision == "default" else {"precision": precision})


def _measure(
    model: TrajectoryModel, question: Question, steps: int, batch: int, repeats: int, asked: dict[str, Any]
) -> tuple[float, float, int | None]:
    """Seconds, their spread, and bytes at the peak."""
    u0, grid, params = question
    t = torch.arange(1, steps + 1, device=u0.device) / TRAINED_STEPS

    def answer(samples: int) -> None:
        for first in range(0, samples, batch):
            rows = slice(first, first + batch)
            model.predict(u0[rows], grid, t, None if params is None else params[rows], **asked)

    one_batch = min(batch, len(u0))
    answer(one_batch)
    taken = [time_once(lambda: answer(len(u0)), u0.device) for _ in range(repeats)]
    return min(taken), max(taken) - min(taken), peak_memory(lambda: answer(one_batch), u0.device)


def speed_table(found: Sequence[Speed], title: str) -> Section:
    """One row per model and way, with time and memory for each number of steps."""
    steps = sorted({each.steps for each in found})
    cases = {(each.model, each.way, each.steps): each for each in found}
    rows = []
    for model, way, weights in dict.fromkeys((each.model, each.way, each.weights) for each in found):
        cells = [_cell(cases.get((model, way, count))) for count in steps]
        rows.append((model, way, f"{weights:,}", *cells))
    return Section(title, ("model", "times", "weights", *(f"{count} steps" for count in steps)), tuple(rows))


@contextmanager
def computing_in(precision: str, device: torch.device | str) -> Iterator[None]:
    """Products of matrices in this precision meanwhile."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        with torch.autocast(torch.device(device).type, dtype=HALF.get(precision), enabled=precision in HALF):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def _ways(model: TrajectoryModel, points: int, steps: int) -> dict[str, int | None]:
    """How the times may be asked, by the number of points in flight."""
    if not model.independent_times:
        return {"rollout": points * steps}
    return {"parallel": points * steps, "chunks": None, "sequential": points}


def _cell(each: Speed | None) -> str:
    if each is None:
        return "–"
    memory = "" if each.peak_memory is None else f" {each.peak_memory / 2**20:,.0f} MiB"
    return seconds(each.seconds) + memory
