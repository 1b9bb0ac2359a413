"""What derivatives of an answer there are, and a word where one would be cut."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from vcnef.models.derivative import is_differentiated
from vcnef.models.interface import TrajectoryModel


def check_times(t: Tensor, model: TrajectoryModel, name: str) -> None:
    """Refuse a derivative by time of a model that has none."""
    if is_differentiated(t) and not model.continuous:
        raise ValueError(
            f"A derivative by t is asked of {name!r}, which goes from frame to frame; expected a model that is "
            "continuous in time, such as vcnef. Take differences between its frames, and give t.detach()."
        )


def warn_of_cut_gradients(call: str, given: Mapping[str, Any]) -> None:
    cut = [name for name, value in given.items() if isinstance(value, Tensor) and value.requires_grad]
    if cut and torch.is_grad_enabled():
        warnings.warn(
            f"{call} cuts the gradient of {', '.join(cut)}: its answer is a constant. "
            "Use answer(…, differentiable=True), or give tensors that require no gradient.",
            UserWarning,
            stacklevel=3,
        )
