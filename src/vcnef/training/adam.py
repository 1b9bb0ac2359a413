"""Adam whose weights are updated by one kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, optim

from vcnef.kernels import adam
from vcnef.training.gradients import in_one_piece, moving


class FusedAdam(optim.Adam):
    """torch's Adam or, with `decoupled_weight_decay`, AdamW: the same state, another way to make a step of it.

    Where in memory everything lies is written down once, outside of any recording, and again when something moves.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, capturable=True)
        self.plans: dict[int, tuple[list[int], Tensor, list[Tensor]]] = {}

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for place, group in enumerate(self.param_groups):
            if weights := moving(group["params"]):
                chunks, counts = self._plan(place, weights)
                torch._foreach_add_(counts, 1)
                options = group["lr"], group["betas"], group["eps"], group["weight_decay"]
                adam.update(chunks, in_one_piece(weights), *options, decoupled=group["decoupled_weight_decay"])

    def _plan(self, place: int, weights: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The chunks of these weights, and the counts of steps that they have."""
        states = [self._state(weight) for weight in weights]
        where = [each.data_ptr() for state in states for each in state]
        if place not in self.plans or self.plans[place][0] != where:
            counts = self._share_counts(weights)
            states = [self._state(weight) for weight in weights]
            where = [each.data_ptr() for state in states for each in state]
            self.plans[place] = where, adam.chunk(states), counts
        return self.plans[place][1:]

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
