"""Optimisers by name, and an average of the weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer

from vcnef.accelerate.kernels.requirements import lack, switched_off
from vcnef.suggest import suggestion
from vcnef.training.muon import Muon
from vcnef.training.recipe import Recipe

ADAM = {"adam": Adam, "adamw": AdamW}
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
            load_moments(part, state_dict[str(index)])
        self.param_groups = [group for part in self.parts for group in part.param_groups]


def build_optimiser(model: nn.Module, recipe: Recipe) -> Optimizer:
    groups = group_weights(model, recipe.rates)
    shared = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay}
    if recipe.optimiser in ADAM:
        return _adam(groups, recipe.optimiser, shared)
    inner, rest = _part(groups, inner=True), _part(groups, inner=False)
    parts = ([Muon(inner, **shared)] if inner else []) + ([_adam(rest, "adamw", shared)] if rest else [])
    return parts[0] if len(parts) == 1 else Together(*parts)


def _adam(groups: list[dict[str, Any]], name: str, shared: dict[str, float]) -> Optimizer:
    weights = [weight for group in groups for weight in group["params"]]
    if weights[0].is_cuda and not switched_off() and lack(weights[0].device) is None:
        from vcnef.accelerate.kernels.adam import obstacle_of_all
        from vcnef.training.adam import FusedAdam

        if obstacle_of_all(weights) is None:
            return FusedAdam(groups, **shared, decoupled_weight_decay=name == "adamw")
    fused = weights[0].is_cuda
    # Capturable: the step can be part of a CUDA graph.
    return ADAM[name](groups, **shared, fused=fused, capturable=fused)


def group_weights(model: nn.Module, rates: Mapping[str, float]) -> list[dict[str, Any]]:
    """The weights by the factor of their rate: that of the longest key that their name begins with, or 1."""
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    if not named:
        raise ValueError(
            f"{type(model).__name__} has no weights to train. Set requires_grad of those that are to be trained."
        )
    for key in rates:
        if not any(name.startswith(key) for name, _ in named):
            parts = dict.fromkeys(name.split(".")[0] for name, _ in named)
            raise ValueError(f"rates has {key!r}, with which no weight's name begins. {suggestion(key, parts)}")
    groups: dict[float, list[Tensor]] = {}
    for name, weight in named:
        key = max((key for key in rates if name.startswith(key)), key=len, default=None)
        groups.setdefault(1.0 if key is None else rates[key], []).append(weight)
    return [{"params": weights, "factor": factor} for factor, weights in groups.items()]


def _part(groups: list[dict[str, Any]], *, inner: bool) -> list[dict[str, Any]]:
    """Of each group the matrices inside the network, which are for Muon, or the others."""
    parts = []
    for group in groups:
        chosen = [each for each in group["params"] if inner == (each.ndim == 2 and min(each.shape) >= SMALLEST_SIDE)]
        parts += [{**group, "params": chosen}] if chosen else []
    return parts


def load_moments(optimiser: Optimizer, state: dict[str, Any]) -> None:
    """What an optimiser has gathered; how it computes, which depends on the device, stays that of this run."""
    if not isinstance(optimiser, Together):
        state = state | {"param_groups": optimiser.state_dict()["param_groups"]}
    optimiser.load_state_dict(state)


def set_rate(optimiser: Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        own = rate * group.get("factor", 1.0)
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(own)
        else:
            group["lr"] = own


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
