"""A second stream for the gradients of weights, which nothing waits for until a layer's backward pass is done."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

Found = TypeVar("Found")


class Beside:
    """Calls functions on a second stream, so that what follows on the main stream does not wait for them.

        with Beside(grad) as beside:
            found = beside(function, *given)

    `function` starts after all that was launched on the main stream before it; `found` may be used after the block.
    Inputs and results stay in memory until then: memory that a kernel still reads would otherwise be given away.
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
    """Return a side stream for each main one: memory freed on it is used again by it alone, after it has waited for the
    main one."""
    return torch.cuda.Stream(main.device)
