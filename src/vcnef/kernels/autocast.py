"""Which numbers torch's autocasting has chosen, for kernels that serve where it is on."""

from __future__ import annotations

import torch
from torch import Tensor

from vcnef.kernels.weights import WIDEST_NORM, usable


def training_precision() -> torch.dtype | None:
    """The type that autocasting has chosen, while gradients are wanted."""
    return _chosen() if torch.is_grad_enabled() else None


def half_precision(tokens: Tensor) -> torch.dtype | None:
    """The type that autocasting has chosen, where a kernel for norms can serve these tokens, else None."""
    chosen = _chosen()
    return chosen if chosen is not None and usable(tokens, widest=WIDEST_NORM) else None


def _chosen() -> torch.dtype | None:
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
