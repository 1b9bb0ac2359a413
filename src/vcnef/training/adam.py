"""Adam whose weights are updated by one kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, optim

from vcnef.accelerate.kernels import adam
from vcnef.training.gradients import in_one_piece, moving


class Plan(NamedTuple):
    """Of a group: where everything lies, the same in chunks, and the counts of steps that its weights have made."""

    places: list[int]
    chunks: Tensor
    counts: list[Tensor]


class FusedAdam(optim.Adam):
    """torch's Adam or, with `decoupled_weight_decay`, AdamW: the same state, another way to make a step of it.

    Where in memory everything lies is written down once, outside of any recording, and again when something moves.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, capturable=True)
        self.plans: dict[int, Plan] = {}

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for place, group in enumerate(self.param_groups):
            if weights := moving(group["params"]):
                plan = self._plan(place, weights)
                torch._foreach_add_(plan.counts, 1)
                options = group["lr"], group["betas"], group["eps"], group["weight_decay"]
                adam.update(plan.chunks, in_one_piece(weights), *options, decoupled=group["decoupled_weight_decay"])

    def _plan(self, place: int, weights: list[Tensor]) -> Plan:
        places = self._places(weights)
        if place not in self.plans or self.plans[place].places != places:
            counts = self._share_counts(weights)
            chunks = adam.chunk([self._state(weight) for weight in weights])
            self.plans[place] = Plan(self._places(weights), chunks, counts)
        return self.plans[place]

    def _places(self, weights: list[Tensor]) -> list[int]:
        return [each.data_ptr() for weight in weights for each in self._state(weight)]

    def _state(self, weight: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        state = self.state[weight]
        if not state:
            state["step"] = torch.zeros((), device=weight.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
        return weight, state["exp_avg"], state["exp_avg_sq"], state["step"]

    def _share_counts(self, weights: list[Tensor]) -> list[Tensor]:
        """One count for all weights that have made as many steps: to count is then one kernel."""
        made = torch.stack([self.state[weight]["step"] for weight in weights]).tolist()
        counts = {steps: torch.tensor(steps, device=weights[0].device) for steps in made}
        for weight, steps in zip(weights, made, strict=True):
            self.state[weight]["step"] = counts[steps]
        return list(counts.values())
