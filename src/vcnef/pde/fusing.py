"""Making a step that is taken thousands of times cheap: fused kernels, replayed as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial

import torch
from torch import Tensor

MANY_SHAPES = 64
"""Compiled variants that one process may hold: equations, dimensions, resolutions and precisions together."""


def repeatable(function: Callable[..., None], arguments: tuple, compiled: bool) -> Callable[[], None]:
    """`function(*arguments)`, which works in place, as a call to repeat: as written, or compiled and captured.

    The first axis of every tensor in the arguments is the batch. One compilation serves every batch size; space sizes
    and plain numbers become constants of the kernels.
    """
    if not compiled:
        return partial(function, *arguments)
    found = list(tensors(arguments))
    for tensor in found:
        torch._dynamo.maybe_mark_dynamic(tensor, 0)
    call = partial(torch.compile(function, dynamic=False), *arguments)
    with torch._dynamo.config.patch(recompile_limit=MANY_SHAPES):
        return _captured(call, found[0].device)


def tensors(tree: object) -> Iterator[Tensor]:
    """Yield the tensors in nested tuples and dataclasses, in order."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, tuple):
        for branch in tree:
            yield from tensors(branch)
    elif is_dataclass(tree):
        for field in fields(tree):
            yield from tensors(getattr(tree, field.name))


def _captured(call: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Return the call as one CUDA graph, after two runs that compile and tune it; elsewhere the call, compiled."""
    if device.type != "cuda":
        call()
        return call
    with torch.cuda.device(device):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            call()
            call()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may be writing files
            call()
    return graph.replay
