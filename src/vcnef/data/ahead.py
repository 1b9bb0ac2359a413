"""Making ahead: a GPU makes the next batch while it is still at work on the one before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

Made = TypeVar("Made")


class Ahead:
    """Calls whose results the current stream finds, made on a stream of their own; elsewhere than on a GPU, plain ones.

    What is made needs nothing of the work that was asked for since the last call but one. Two results are in memory
    then, and no more: whoever calls has to hold each until the next is made.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            self.stream = torch.cuda.Stream(device)
            self.before = torch.cuda.current_stream(device).record_event()

    def __call__(self, make: Callable[..., Made], *given: Any) -> Made:
        if self.device.type != "cuda":
            return make(*given)
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_event(self.before)
        self.before = current.record_event()
        with torch.cuda.stream(self.stream):
            made = make(*given)
        current.wait_stream(self.stream)
        return made
