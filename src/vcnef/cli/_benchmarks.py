"""What `vcnef benchmark` measures, with the paper's sizes, and the tables that it prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vcnef.evaluation.speed import measure_memory, measure_speed, speed_table
from vcnef.evaluation.tables import Section, seconds
from vcnef.grid import spell_sides
from vcnef.spelling import spell_memory
from vcnef.training.cost import TrainingCost, measure_training

if TYPE_CHECKING:
    import torch

MEASURES = {"speed": measure_speed, "memory": measure_memory, "train": measure_training}


class BenchmarkSizes(NamedTuple):
    """Data of the paper's kind: fields, parameters, points of a side, frames, and how much is computed."""

    channels: int
    params: int
    points: int
    frames: int
    samples: int
    batch: int
    steps: tuple[int, ...]


SIZES = {
    1: BenchmarkSizes(1, 1, points=256, frames=40, samples=1000, batch=64, steps=(40, 80, 120, 160, 200, 240)),
    2: BenchmarkSizes(4, 0, points=64, frames=20, samples=1000, batch=64, steps=(20,)),
    3: BenchmarkSizes(5, 0, points=32, frames=10, samples=100, batch=4, steps=(10,)),
}


def settle(table: str, ndim: int, device: torch.device, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a table: those that are given, and the paper's for the rest."""
    if ndim not in SIZES:
        raise ValueError(f"--ndim is {ndim}; expected 1, 2 or 3.")
    sizes = SIZES[ndim]
    shared = {"points": sizes.points, "batch": sizes.batch, "precision": "default"}
    training = {"frames": sizes.frames, "times": None, "epoch_samples": 9000, "repeats": 3}
    defaults = {
        "speed": {"samples": sizes.samples, **shared, "steps": sizes.steps, "repeats": 3},
        "memory": {**shared, "steps": sizes.steps},
        "train": {**shared, "precision": "bf16" if device.type == "cuda" else "fp32", **training},
    }[table]
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in defaults:
            raise ValueError(f"--{name.replace('_', '-')} has no meaning for {table}. Leave it out.")
    return defaults | chosen


def title_of(table: str, ndim: int, asked: Mapping[str, Any], where: str) -> str:
    """Return what the numbers are about."""
    cases = {
        "speed": "{samples} initial states × {points} points, {batch} at once",
        "memory": "Peak memory of {batch} initial states × {points} points",
        "train": "Training steps of {batch} trajectories × {points} points, epochs of {epoch_samples}",
    }
    points = spell_sides((asked["points"],) * ndim)
    return cases[table].format_map({**asked, "points": points}) + f", {asked['precision']} precision, {where}"


def table_of(table: str, found: Sequence[Any], title: str) -> Section:
    return training_table(found, title) if table == "train" else speed_table(found, title)


def training_table(found: Sequence[TrainingCost], title: str) -> Section:
    """Return one row per model."""
    rows = []
    for each in found:
        memory = "–" if each.peak_memory is None else spell_memory(each.peak_memory)
        costs = (seconds(each.seconds), seconds(each.epoch_seconds), memory if each.fits else "out of memory")
        rows.append((each.model, f"{each.weights:,}", str(each.times), *costs, "yes" if each.recorded else "no"))
    return Section(title, ("model", "weights", "times", "step", "epoch", "memory", "recorded"), tuple(rows))
