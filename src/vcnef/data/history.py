"""Several frames as what an answer begins with: the oldest first, the initial state last."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, cat


def as_channels(history: Float[Tensor, "b h *x c"]) -> Float[Tensor, "b *x i"]:
    """Return the frames of a history as channels of one field, as the network sees them."""
    return history.movedim(1, -2).flatten(-2)


def go_on(history: Float[Tensor, "b h *x c"], later: Float[Tensor, "b k *x c"]) -> Float[Tensor, "b h *x c"]:
    """Return the history at the last of the frames that follow it."""
    frames = history.shape[1]
    if later.shape[1] >= frames:
        return later[:, -frames:]
    return cat((history, later), dim=1)[:, -frames:]
