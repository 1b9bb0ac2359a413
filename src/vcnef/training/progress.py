"""How a run is going, in numbers: for a live line about once a second, and for the log after each epoch."""

from __future__ import annotations

import time
from collections.abc import Callable

from vcnef.training.checkpoint import State
from vcnef.training.log import Record
from vcnef.training.stopping import Clock

SECONDS_BETWEEN_REPORTS = 1.0


class Reporter:
    """Reads the loss from the device only when a report is due, so that no other step waits for it."""

    def __init__(self, state: State, clock: Clock, on_progress: Callable[[Record], None] | None) -> None:
        self._state, self._clock, self._tell = state, clock, on_progress
        self._score: float | None = None
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """An epoch begins."""
        self._epoch, self._samples = epoch, 0
        self._begun = self._told = time.monotonic()

    def tick(self, samples: int, *, check: bool) -> None:
        """After each step, of so many samples; `check` also looks for losses that are not finite."""
        self._samples += samples
        now = time.monotonic()
        if now - self._told < SECONDS_BETWEEN_REPORTS:
            return
        self._told = now
        if check:
            self._state.check_finite(self._clock.steps)
        if self._tell:
            self._tell(self.record(float(self._state.losses) / self._state.counted))

    def tell(self, record: Record) -> None:
        """After each epoch."""
        self._score = record.get("valid_nrmse", self._score)
        if self._tell:
            self._tell(record)

    def record(self, loss: float) -> Record:
        state, clock = self._state, self._clock
        training = max(time.monotonic() - self._begun, 1e-9)
        return {
            "epoch": self._epoch + 1,
            "step": state.step,
            "steps": clock.steps,
            "loss": loss,
            "valid_nrmse": self._score,
            "samples_per_second": round(self._samples / training, 1),
            "seconds": round(clock.elapsed, 3),
            "seconds_left": round(clock.left(state.step), 1),
        }
