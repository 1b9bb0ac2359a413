"""When a run ends before its last step: signals and the time it was given."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightning_fabric import Fabric


STEPS_BETWEEN_AGREEMENTS = 10
"""Processes that train together compare their clocks and signals only now and then, since that costs a wait."""


OF_CONNECTIONS = ("gloo", "nccl", "connection reset", "connection closed", "timed out")
"""Words of the libraries between processes, which have no class of their own for what they say."""


class Stopped(KeyboardInterrupt):
    """A run was asked to end by SIGTERM or SIGINT; its state is saved."""

    def __init__(self, message: str = "", signal_name: str = "SIGINT") -> None:
        super().__init__(message)
        self.status = 128 + signal.Signals[signal_name]
        """The exit code of a command that ends so."""


class NonFiniteError(ValueError):
    """A loss or a weight became NaN or infinite."""


class LostProcessError(ConnectionError):
    """Another process of the run has ended, or cannot be reached."""


@contextmanager
def noticing_lost_processes(fabric: Fabric, where: Callable[[], str]) -> Iterator[None]:
    """Say in one sentence what the connections between processes say in their own words."""
    try:
        yield
    except RuntimeError as error:
        words = str(error).lower()
        if fabric.world_size == 1 or not any(word in words for word in OF_CONNECTIONS):
            raise
        raise LostProcessError(
            f"Another of the {fabric.world_size} processes of this run has ended or cannot be reached, noticed "
            f"{where()}. See why it ended, and continue the saved state with resume."
        ) from error


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
        self,
        fabric: Fabric,
        signals: Signals,
        steps: int,
        minutes: float | None,
        elapsed: float,
        prepared: float,
        reserved: float = 0.0,
    ) -> None:
        self.steps = steps
        self.prepared = prepared
        """Seconds of `elapsed` until first steps were made: compilers work then, and a rate that rises must not."""
        self.reserved = reserved
        """Seconds at the end of the budget in which the last weights are judged."""
        self.asked_to_stop: str | None = None
        self._fabric, self._signals = fabric, signals
        self._budget = None if minutes is None else 60 * minutes
        self._begun = time.monotonic() - elapsed
        self._agreed = elapsed
        self._preparing = True
        self._reached = 0.0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._begun

    def agree(self, step: int) -> None:
        """Read clock and signals after each step; processes that train together follow the first one.

        After their first step too, since each took a time of its own to prepare.
        """
        first, self._preparing = self._preparing, False
        if first:
            self.prepared += self.elapsed - self._agreed
        if first or self._fabric.world_size == 1 or step % STEPS_BETWEEN_AGREEMENTS == 0:
            self._read()

    @contextmanager
    def judging(self, step: int) -> Iterator[None]:
        """Time how long a validation takes, and reserve as much for the last one.

        Half of what is left is for steps whatever it took: the first one may have taken long to compile.
        """
        begun, last = self.elapsed, self.over(step)
        yield
        now = self.elapsed
        if self._budget is not None and not last:
            self.reserved = max(min(now - begun, (self._budget - now) / 2), 0.0)
        self._read()

    def has_room(self) -> bool:
        """Whether a validation can come before the last one and leave as much time again for steps."""
        return self._budget is None or self._budget - self._agreed >= 3 * self.reserved

    def progress(self, step: int) -> float:
        """In (0, 1], after the step with this number has been made."""
        self._reached = max(self._reached, (step + 1) / self.steps)
        if self._budget is not None:
            spent, given = self._agreed - self.prepared, self._budget - self.reserved - self.prepared
            # It never falls, though a validation that was quicker than the one before leaves more time.
            self._reached = max(self._reached, min(spent / given, 1.0) if given > 0 else 1.0)
        return self._reached

    def over(self, step: int) -> bool:
        """Whether a run that has made so many steps is complete, but for judging its last weights."""
        return step >= self.steps or (self._budget is not None and self._agreed >= self._budget - self.reserved)

    def left(self, step: int) -> float:
        """Seconds to go, as the steps so far tell."""
        by_steps = self.elapsed * (self.steps - step) / max(step, 1)
        return by_steps if self._budget is None else max(min(by_steps, self._budget - self.elapsed), 0.0)

    def _read(self) -> None:
        mine = self.elapsed, self.prepared, self.reserved, self._signals.caught
        self._agreed, self.prepared, self.reserved, self.asked_to_stop = self._fabric.broadcast(mine)
