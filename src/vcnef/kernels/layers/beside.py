"""Work that the GPU does beside the kernels that others wait for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

Found = TypeVar("Found")


class Beside:
    """What a layer's weights learn, on a stream of its own: nothing else waits for it until the layer is done.

        with Beside(grad) as beside:
            learnt = beside(function, *given)

    `function` finds all that has been asked for so far, and `learnt` may be used at the end of the block. Whatever is
    given and found stays in memory until then: what a kernel still reads would go to whoever asks for memory next.
    Without a GPU it is a plain call.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.device = tensor.device
        self.kept: list[Any] = []

    def __enter__(self) -> Beside:
        return self

    def __call__(self, function: Callable[..., Found], *given: Any) -> Found:
        if self.device.type != "cuda":
            return function(*given)
        own = _second_stream(self.device)
        own.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(own):
            found = function(*given)
        self.kept.append((given, found))
        return found

    def __exit__(self, *_: Any) -> None:
        if self.kept:
            torch.cuda.current_stream(self.device).wait_stream(_second_stream(self.device))
            self.kept.clear()


@cache
def _second_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
