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
        self.main = torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None
        self.kept: list[Any] = []

    def __enter__(self) -> Beside:
        return self

    def __call__(self, function: Callable[..., Found], *given: Any) -> Found:
        if self.main is None:
            return function(*given)
        own = _beside(self.main)
        own.wait_stream(self.main)
        with torch.cuda.stream(own):
            found = function(*given)
        self.kept.append((given, found))
        return found

    def __exit__(self, *_: Any) -> None:
        if self.kept:
            self.main.wait_stream(_beside(self.main))
            self.kept.clear()


@cache
def _beside(main: torch.cuda.Stream) -> torch.cuda.Stream:
    """One for each: what was found on it is given back to it, and made use of again after it has waited for its own."""
    return torch.cuda.Stream(main.device)
