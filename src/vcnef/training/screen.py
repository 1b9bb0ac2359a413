"""What a training run says on the screen: what was chosen for it, and how it is going."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vcnef.grid import spell_sides
from vcnef.models.interface import number_of_weights
from vcnef.progress import SECONDS_BETWEEN_LINES

if TYPE_CHECKING:
    from vcnef.surrogate import Surrogate
    from vcnef.training.recipe import Recipe

Report = Callable[[Mapping[str, Any]], None]


def describe_choices(surrogate: Surrogate, recipe: Recipe, sets: str, preset: str | None) -> list[str]:
    """Return a line for each thing that was chosen: data, model, window and length of the run.

    `sets` says how many trajectories are used for what.
    """
    problem, provenance = surrogate.problem, surrogate.provenance
    device = next(surrogate.model.parameters()).device
    named = f", preset {preset}" if preset else ""
    window = "direct, all times are answered at once"
    if "window" in provenance:
        window = f"{surrogate.window:.4g}, {provenance['window']['why']}"
    length = f"{recipe.epochs} epoch{'s' * (recipe.epochs != 1)}"
    if recipe.minutes:
        length += f" or {recipe.minutes:g} minutes"
    return [
        f"data: {problem.name} on {spell_sides(provenance['resolution'])} points; trajectories: {sets}",
        f"model: {surrogate.name} of {number_of_weights(surrogate.model):,} weights on {device}{named}",
        f"window: {window}",
        *_conserved(provenance),
        *(f"symmetry {found}" for found in provenance.get("symmetries", ())),
        f"run: {length}, batches of {recipe.batch}",
    ]


def _conserved(provenance: Mapping[str, Any]) -> list[str]:
    if "conserved" not in provenance:
        return []
    channels, why = provenance["conserved"]["channels"], provenance["conserved"]["why"]
    kept = f"the mean of {', '.join(channels)}" if channels else "no mean"
    return [f"conserved: {kept}; {why}"]


@contextmanager
def training_progress(epochs: int) -> Iterator[Report]:
    """A function to be called with the records of a run: epoch, step, steps, loss, valid_nrmse, speed, seconds_left."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:  # a notebook is none
        yield _lines(console, epochs)
        return
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(BarColumn(bar_width=20), TextColumn("{task.description}"), console=console) as bars:
        task = bars.add_task("starting", total=None)

        def report(record: Mapping[str, Any]) -> None:
            bars.update(task, completed=record["step"], total=record["steps"], description=describe(record, epochs))

        yield report


def describe(record: Mapping[str, Any], epochs: int) -> str:
    """A run's state in one line."""
    parts = [f"epoch {record['epoch']} of {epochs}", f"loss {record['loss']:.3e}"]
    if record.get("valid_nrmse") is not None:
        parts.append(f"valid nRMSE {record['valid_nrmse']:.4f}")
    parts.append(f"{record['samples_per_second']:.0f} samples/s")
    if record["step"] < record["steps"]:
        minutes, seconds = divmod(round(record["seconds_left"]), 60)
        hours, minutes = divmod(minutes, 60)
        parts.append(f"{hours}:{minutes:02}:{seconds:02} left")
    return ", ".join(parts)


def _lines(console: Any, epochs: int) -> Report:
    """Lines for the first record, the last one, and now and then in between."""
    spoken: float | None = None

    def report(record: Mapping[str, Any]) -> None:
        nonlocal spoken
        now = time.monotonic()
        if spoken is not None and record["step"] < record["steps"] and now - spoken < SECONDS_BETWEEN_LINES:
            return
        spoken = now
        console.file.write(describe(record, epochs) + "\n")
        console.file.flush()

    return report
