"""Half precision inside the network alone, and a scale of the loss that never waits for the device."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import torch
from lightning_fabric.plugins import MixedPrecision
from torch import Tensor, nn

from vcnef.training.gradients import in_one_piece

MIXED = {"bf16": "bf16-mixed", "fp16": "16-mixed"}
FIRST, LARGEST = 2.0**16, 2.0**24
GOOD_STEPS = 1000
"""Without an overflow, after which the scale is doubled."""


class LossScale:
    """Gradients are those of S · loss, so that small ones do not vanish in fp16; S is halved when one overflows.

    The step of an overflow has gradients of zero. PyTorch's own scaler leaves such a step out, for which it has to look
    at the gradients first: no step could be recorded.
    """

    def __init__(self) -> None:
        self.value, self.good = torch.tensor(FIRST), torch.tensor(0.0)

    def scale(self, loss: Tensor) -> Tensor:
        self.value, self.good = self.value.to(loss.device), self.good.to(loss.device)
        return loss * self.value

    @torch.no_grad()
    def unscale(self, weights: Iterable[nn.Parameter]) -> None:
        whole = in_one_piece(weights)
        # The largest of all is finite where all are: one kernel, where asking each takes several.
        finite = torch.linalg.vector_norm(whole, inf).isfinite()
        whole.copy_(torch.where(finite, whole / self.value, 0.0))
        self._adapt(finite)

    def _adapt(self, finite: Tensor) -> None:
        """In place, where a recorded step finds it again."""
        good = torch.where(finite, self.good + 1, 0.0)
        due = good >= GOOD_STEPS
        factor = torch.where(finite, torch.where(due, 2.0, 1.0), 0.5)
        self.value.copy_((self.value * factor).clamp(1.0, LARGEST))
        self.good.copy_(torch.where(due, 0.0, good))


class HalfInside(MixedPrecision):
    """Autocasting that rounds nothing on the way in.

    Fabric would round what the network is asked and should answer as well: in bf16 neighbours on a grid of 256 points
    are then one point, and so are times and targets that differ by less than half a percent.
    """

    def __init__(self, name: str, device_type: str) -> None:
        super().__init__(MIXED[name], device_type)
        self.scaler = None
        self.loss_scale = LossScale() if name == "fp16" else None
        self.scaled = False

    def convert_input(self, data: Any) -> Any:
        return data

    def backward(self, tensor: Tensor, model: nn.Module | None, *args: Any, **kwargs: Any) -> None:
        if self.loss_scale:
            tensor, self.scaled = self.loss_scale.scale(tensor), True
        super().backward(tensor, model, *args, **kwargs)

    def unscale_gradients(self, optimizer: Any) -> None:
        """Before they are clipped, if they are; once in any case."""
        if self.scaled:
            self.loss_scale.unscale(weight for group in optimizer.param_groups for weight in group["params"])
            self.scaled = False

    def optimizer_step(self, optimizer: Any, **kwargs: Any) -> Any:
        self.unscale_gradients(optimizer)
        return super().optimizer_step(optimizer, **kwargs)

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.loss_scale.value, "good": self.loss_scale.good} if self.loss_scale else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name, saved in state_dict.items():
            getattr(self.loss_scale, name).copy_(saved)
