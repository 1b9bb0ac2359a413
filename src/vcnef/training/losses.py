"""Distances of predicted from true trajectories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from vcnef.data import Normaliser

Error = Callable[[Tensor, Tensor], Tensor]
"""A scalar of predictions and targets, both `[b t *x c]` and in the network's units."""


def mean_square(pred: Float[Tensor, "b t *x c"], target: Float[Tensor, "b t *x c"]) -> Float[Tensor, ""]:
    """⟨(û − u)²⟩ over samples, times, points and channels: the paper's loss."""
    return F.mse_loss(pred.float(), target)


@dataclass(frozen=True, eq=False)
class Relative:
    """⟨ ‖û − u‖ / ‖u‖ ⟩_{b,t,c} with norms over space and in physical units: what nRMSE measures.

    With s the standard deviation of a channel, ε = `floor`, norms as root mean squares and d² = ‖u‖² + (ε s)², the
    divisor is max(d, s (ε s / d)⁶). That is d, all but ‖u‖, down to 3 ε s. Below, it rises to s, against which a
    channel that is zero or at rest is judged: an error is relative to nothing there, and with a small divisor such
    frames would drown all others. A channel in its logarithm is never zero, and keeps d.
    """

    fields: Normaliser
    floor: float = 1e-3
    _scaled: Normaliser = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_scaled", of_order_one(self.fields))

    def __call__(self, pred: Float[Tensor, "b t *x c"], target: Float[Tensor, "b t *x c"]) -> Float[Tensor, ""]:
        truth = self._scaled.denormalise(target)
        # Over the points as one axis; vector_norm has a gradient of 0, not NaN, where the error is exactly 0.
        error = (self._scaled.denormalise(pred.float()) - truth).flatten(2, -2)
        return (error.norm(dim=2) / error.shape[2] ** 0.5 / self._size(truth).sqrt()).mean()

    def _size(self, truth: Tensor) -> Float[Tensor, "b t c"]:
        """The square of the divisor."""
        spread = self._spread(truth)
        floor = (self.floor * spread).square()
        size = truth.flatten(2, -2).square().mean(dim=2) + floor
        # With a power as high as this, fields that fade to 3 ε s are still judged by their own size.
        at_rest = spread.square() * (floor / size) ** 6
        return torch.where(self._scaled.log, size, torch.maximum(size, at_rest))

    def _spread(self, truth: Tensor) -> Float[Tensor, " c"]:
        # Of a channel in its logarithm, `std` is a relative spread already.
        scale = truth.flatten(0, -2).abs().mean(dim=0)
        return self._scaled.std * scale.where(self._scaled.log, 1.0)


def of_order_one(fields: Normaliser) -> Normaliser:
    """The same scales, with each channel's fields in a unit of their own size: squares of 1e19 overflow.

    A power of two, which rounds nothing; of a channel in its logarithm, e^mean.
    """
    unit = torch.maximum(fields.mean.abs(), fields.std).log2().round().exp2()
    unit = torch.where(fields.log, 1.0, unit)
    mean = torch.where(fields.log, 0.0, fields.mean / unit)
    return Normaliser(fields.channels, mean, fields.std / unit, fields.log)
