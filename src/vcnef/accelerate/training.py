"""A model that trains fast: meanwhile, a call of it is one of the engine's forward pass, compiled if wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from vcnef.accelerate.engine import FastVCNeF, training_engine


@contextmanager
def fast_calls(
    model: nn.Module, device: torch.device, half: torch.dtype | None, options: dict[str, bool | None] | None
) -> Iterator[None]:
    """Make `model(…)` fast within this context; its methods, such as `encode`, stay those of the reference.

    `half` is the type that autocasting chooses in training, `options` are those of `torch.compile`, None without it.
    """
    engine = training_engine(model, device, half, compiled=options is not None)
    if isinstance(engine, FastVCNeF):
        model._compiled_call_impl = _call(model, engine, options)
    elif options is not None:
        model.compile(**options)
    try:
        yield
    finally:
        model._compiled_call_impl = None


def _call(model: nn.Module, engine: FastVCNeF, options: dict[str, bool | None] | None) -> Any:
    forward = engine.forward if options is None else torch.compile(engine.forward, **options)
    reference = model.forward if options is None else torch.compile(model.forward, **options)

    def call(u0: Tensor, *others: Any, **named: Any) -> Tensor:
        # An objective may switch autocasting off for a part of its work; the engine was made with it.
        planned = torch.is_autocast_enabled(u0.device.type) == (engine.half is not None)
        return (forward if planned else reference)(u0, *others, **named)

    return call
