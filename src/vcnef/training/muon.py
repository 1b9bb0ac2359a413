"""Muon for matrices of few shapes: a handful of batched products a step, which can be recorded as a CUDA graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer

from vcnef.accelerate.kernels.newton_schulz import newton_schulz
from vcnef.accelerate.kernels.requirements import obstacle

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic that pushes singular values towards 1 as fast as it can, to about 0.7 … 1.2 (Jordan et al. 2024)."""
STEPS = 5
LIKE_ADAMW = 0.2
"""The root mean square of an update of AdamW."""


class Muon(Optimizer):
    """M ← μM + (1 − μ)G;  W ← (1 − ηλ)W − η · 0.2 √max(rows, columns) · orthogonal((1 − μ)G + μM).

    The factor makes updates as large as AdamW's, so that one learning rate η serves both (Liu et al. 2025). Matrices of
    one shape, or of its transpose, are made orthogonal together. Nothing waits for the device, and η may live there.
    """

    def __init__(
        self, groups: Iterable[dict[str, Any]], lr: float, weight_decay: float = 0.0, momentum: float = 0.95
    ) -> None:
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})
        for weight in (each for group in self.param_groups for each in group["params"]):
            if weight.ndim != 2:
                raise ValueError(
                    f"Muon is for matrices, got a weight of shape {tuple(weight.shape)}. Give it to AdamW."
                )

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            if weights := [each for each in group["params"] if each.grad is not None]:
                self._step(group, weights)

    def _step(self, group: dict[str, Any], weights: list[Tensor]) -> None:
        rate, momentum = group["lr"], group["momentum"]
        gradients = [each.grad for each in weights]
        means = [self._mean(each) for each in weights]
        torch._foreach_lerp_(means, gradients, 1 - momentum)
        ahead = torch._foreach_lerp(gradients, means, momentum)
        if group["weight_decay"]:
            torch._foreach_mul_(weights, 1 - rate * group["weight_decay"])
        for lying, standing in _alike(weights):
            stack = torch.stack([*(ahead[place] for place in lying), *(ahead[place].mT for place in standing)])
            updates = orthogonalise(stack) * (-LIKE_ADAMW * stack.shape[-1] ** 0.5 * rate)
            lie, stand = updates.tensor_split([len(lying)])
            # Laid out as the weights are: else each of them takes a kernel of its own.
            turned = [*lie.unbind(), *stand.mT.contiguous().unbind()]
            torch._foreach_add_([weights[place] for place in (*lying, *standing)], turned)

    def _mean(self, weight: Tensor) -> Tensor:
        state = self.state[weight]
        if "mean" not in state:
            state["mean"] = torch.zeros_like(weight)
        return state["mean"]


def orthogonalise(matrices: Float[Tensor, "n rows columns"]) -> Float[Tensor, "n rows columns"]:
    """About U Vᵀ of each matrix U S Vᵀ, by Newton–Schulz steps: nothing but products; best if rows ≤ columns."""
    if obstacle(matrices.device, matrices.dtype, width=matrices.shape[1]) is not None:
        return newton_schulz(matrices, COEFFICIENTS, STEPS).to(matrices.dtype)
    from vcnef.accelerate.kernels.orthogonal import ORTHOGONALISE

    return ORTHOGONALISE(matrices, COEFFICIENTS, STEPS).to(matrices.dtype)


def _alike(weights: list[Tensor]) -> list[tuple[list[int], list[int]]]:
    """The places of matrices of one shape: those that lie, and those that stand."""
    places: dict[tuple[int, ...], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for place, weight in enumerate(weights):
        rows, columns = weight.shape
        places[tuple(sorted(weight.shape))][rows > columns].append(place)
    return list(places.values())
