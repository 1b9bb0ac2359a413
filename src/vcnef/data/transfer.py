"""Host tensors to the device without making the host wait for it."""

from __future__ import annotations

import torch
from torch import Tensor


def send(values: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device. From ordinary memory a copy to a GPU would first wait for all work queued there."""
    if device.type == "cuda" and not values.is_cuda:
        return values.pin_memory().to(device, non_blocking=True)
    return values.to(device)
