"""Parts of a network that stay in full precision whatever autocasting says."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor


def unrounded(x: Tensor) -> AbstractContextManager:
    """No autocasting on the device of `x`, for what a network is asked and what it answers.

    In bf16 neighbours on a grid of 256 points are one point, times differ by half a percent at least, and so do states.
    What is computed of coordinates and initial states alone costs little, since no query time multiplies it.
    """
    return torch.autocast(x.device.type, enabled=False)
