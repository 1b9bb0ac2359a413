"""Making ahead: a GPU makes the next batches while it is still at work on the ones before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import torch

MOST = 3
"""So many calls may be made before the GPU has come to the first of them: what they made is in memory till then."""

Made = TypeVar("Made")


class Ahead:
    """Calls that make a record of tensors out of what was there at first, on a stream of their own; elsewhere than on a
    GPU, plain calls. The current stream finds what was made."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            self.stream = torch.cuda.Stream(device)
            self.stream.wait_stream(torch.cuda.current_stream(device))
            self.calls: deque[torch.cuda.Event] = deque()

    def __call__(self, make: Callable[..., Made], *given: Any) -> Made:
        if self.device.type != "cuda":
            return make(*given)
        current = torch.cuda.current_stream(self.device)
        if len(self.calls) == MOST:
            self.calls.popleft().synchronize()
        self.calls.append(current.record_event())
        with torch.cuda.stream(self.stream):
            made = make(*given)
        current.wait_stream(self.stream)
        for each in vars(made).values():
            each.record_stream(current)
        return made
