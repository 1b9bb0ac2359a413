"""How far a long command is: a bar with the time left on a terminal, plain lines otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SECONDS_BETWEEN_LINES = 10.0

Report = Callable[[str, int, int], None]


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Report]:
    """A function to be called with a label, the amount done and the total."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda label, done, total: None
    elif console.is_terminal:
        with _bars(console) as report:
            yield report
    else:
        yield _lines(console)


@contextmanager
def _bars(console) -> Iterator[Report]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("in"), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, Any] = {}

        def report(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=total)
            bars.update(tasks[label], completed=done)

        yield report


def _lines(console) -> Report:
    begun: dict[str, tuple[float, int]] = {}
    spoken: dict[str, float] = {}

    def report(label: str, done: int, total: int) -> None:
        now = time.monotonic()
        since, first = begun.setdefault(label, (now, done))
        if done < total and now - spoken.get(label, now - SECONDS_BETWEEN_LINES) < SECONDS_BETWEEN_LINES:
            return
        spoken[label] = now
        left = f", {(now - since) / (done - first) * (total - done):.0f} s left" if first < done < total else ""
        console.file.write(f"{label}: {done} of {total}{left}\n")
        console.file.flush()

    return report
