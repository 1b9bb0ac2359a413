"""When a run ends before its last step: signals and the time it was given."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from lightning_fabric import Fabric

STEPS_BETWEEN_AGREEMENTS = 10
"""Processes that train together compare their clocks and signals only now and then, since that costs a wait."""


class Stopped(KeyboardInterrupt):
    """A run was asked to end by SIGTERM or SIGINT; its state is saved."""


class NonFiniteError(ValueError):
    """A loss or a weight became NaN or infinite."""


class Signals:
    """Within this context SIGTERM and SIGINT are noted; a second one acts at once."""

    def __init__(self) -> None:
        self.caught: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        # Python allows handlers in the main thread only; elsewhere signals act as they always do.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.caught = signal.Signals(number).name
        signal.signal(number, self._before[number])


class Clock:
    """How far a run has come: by its steps, or by its minutes where it has some and they pass faster."""

    def __init__(
        self, fabric: Fabric, signals: Signals, steps: int, minutes: float | None, elapsed: float, prepared: float
    ) -> None:
        self.steps = steps
        self.prepared = prepared
        """Seconds of `elapsed` until first steps were made: compilers work then, and a rate that rises must not."""
        self.asked_to_stop: str | None = None
        self._fabric, self._signals = fabric, signals
        self._budget = None if minutes is None else 60 * minutes
        self._begun = time.monotonic() - elapsed
        self._agreed = elapsed
        self._preparing = True

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._begun

    def agree(self, step: int) -> None:
        """Read clock and signals after each step; processes that train together follow the first one.

        After their first step too, since each took a time of its own to prepare.
        """
        first, self._preparing = self._preparing, False
        elapsed = self.elapsed
        mine = elapsed, self.prepared + (elapsed - self._agreed if first else 0.0), self._signals.caught
        if self._fabric.world_size == 1:
            self._agreed, self.prepared, self.asked_to_stop = mine
        elif first or step % STEPS_BETWEEN_AGREEMENTS == 0:
            self._agreed, self.prepared, self.asked_to_stop = self._fabric.broadcast(mine)

    def progress(self, step: int) -> float:
        """In (0, 1], after the step with this number has been made."""
        by_steps = (step + 1) / self.steps
        if self._budget is None:
            return by_steps
        spent, given = self._agreed - self.prepared, self._budget - self.prepared
        return max(by_steps, min(spent / given, 1.0) if given > 0 else 1.0)

    def over(self, step: int) -> bool:
        """Whether a run that has made so many steps is complete."""
        return step >= self.steps or (self._budget is not None and self._agreed >= self._budget)

    def left(self, step: int) -> float:
        """Seconds to go, as the steps so far tell."""
        by_steps = self.elapsed * (self.steps - step) / max(step, 1)
        return by_steps if self._budget is None else max(min(by_steps, self._budget - self.elapsed), 0.0)
