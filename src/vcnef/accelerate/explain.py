"""Which parts of a model run fast here, and why others do not."""

from __future__ import annotations

from typing import Any

from torch import nn

from vcnef.accelerate.engine import inference_engine, training_engine
from vcnef.accelerate.numbers import HALF
from vcnef.models.compiled import plain


def explain(model: Any, precision: str = "fp16", *, training: bool = False) -> str:
    """Return a line for each part of a model: how it is computed on the model's device, and why not faster.

    model: a model or a surrogate. precision: as `predict` takes it, or what a training run autocasts to.
    training: how it is computed in training, in place of predictions.
    """
    if not isinstance(model, nn.Module):
        model = model.model
    network = plain(model)
    if precision not in HALF:
        raise ValueError(f"precision is {precision!r}; expected one of {', '.join(map(repr, HALF))}.")
    device = next(network.parameters()).device
    if not training:
        return describe(inference_engine(network, device, precision).plan)
    plan = training_engine(network, device, HALF[precision], compiled=device.type == "cuda").plan
    return describe(plan)


def describe(plan: dict[str, str]) -> str:
    width = max(len(part) for part in plan)
    return "\n".join(f"{part:{width}}  {how}" for part, how in plan.items())
