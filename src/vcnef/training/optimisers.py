"""Optimisers by name, all of them torch's own, and an average of the weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer

from vcnef.training.recipe import Recipe

SMALLEST_SIDE = 16
"""Narrower matrices are not for Muon: they map fields to the network's width and back."""


class Together(Optimizer):
    """Two optimisers with a share of the weights each, as one."""

    def __init__(self, *parts: Optimizer) -> None:
        self.parts = parts
        super().__init__([weight for part in parts for group in part.param_groups for weight in group["params"]], {})
        # The parts' own groups: a rate that is set here is theirs.
        self.param_groups = [group for part in parts for group in part.param_groups]

    def step(self, closure: None = None) -> None:
        for part in self.parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        return {str(index): part.state_dict() for index, part in enumerate(self.parts)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for index, part in enumerate(self.parts):
            part.load_state_dict(state_dict[str(index)])
        self.param_groups = [group for part in self.parts for group in part.param_groups]


def build_optimiser(model: nn.Module, recipe: Recipe) -> Optimizer:
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    # Loss scaling for fp16 needs to see gradients before the step, which the fused kernels hide.
    fused = weights[0].is_cuda and recipe.precision != "fp16"
    shared = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay}
    if recipe.optimiser == "adam":
        return Adam(weights, **shared, fused=fused)
    if recipe.optimiser == "adamw":
        return AdamW(weights, **shared, fused=fused)
    from torch.optim import Muon

    inner = [weight for weight in weights if weight.ndim == 2 and min(weight.shape) >= SMALLEST_SIDE]
    chosen = {id(weight) for weight in inner}
    others = AdamW([weight for weight in weights if id(weight) not in chosen], **shared, fused=fused)
    # Updates as large as AdamW's, so that one learning rate serves both.
    return Together(Muon(inner, **shared, adjust_lr_fn="match_rms_adamw"), others) if inner else others


def set_rate(optimiser: Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate


class Average:
    """An exponential average of the weights, a ← a + (1 − δ)(w − a) with δ = min(decay, (1 + n) / (10 + n)).

    The shorter memory of the first steps n lets go of the random initial weights.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.updates = decay, 0
        self.weights = list(model.parameters())
        self.values = [weight.detach().clone() for weight in self.weights]

    @torch.no_grad()
    def update(self) -> None:
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(self.values, self.weights, 1 - decay)
        self.updates += 1

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The model has the averages instead of its weights meanwhile."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def state_dict(self) -> dict[str, Any]:
        return {"updates": self.updates, "values": self.values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.updates = state["updates"]
        for value, saved in zip(self.values, state["values"], strict=True):
            value.copy_(saved)

    @torch.no_grad()
    def _swap(self) -> None:
        for weight, value in zip(self.weights, self.values, strict=True):
            kept: Tensor = weight.detach().clone()
            weight.copy_(value)
            value.copy_(kept)
