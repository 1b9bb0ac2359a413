"""How a training run is going: a live line on a terminal, plain lines otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from vcnef.cli._progress import SECONDS_BETWEEN_LINES

Report = Callable[[Mapping[str, Any]], None]


@contextmanager
def training_progress(epochs: int) -> Iterator[Report]:
    """A function to be called with the records of a run: epoch, step, steps, loss, valid_nrmse, speed, seconds_left."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
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
