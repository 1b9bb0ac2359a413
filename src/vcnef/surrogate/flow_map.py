"""What a network answers within a window, in physical units."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from vcnef.accelerate import Predictor
from vcnef.data import Scaling
from vcnef.data.conditions import Conditions
from vcnef.data.history import as_channels
from vcnef.models.compiled import plain
from vcnef.models.derivative import differentiating
from vcnef.models.rollout import Rollout, TimeInterpolated


class FlowMap:
    """φ_τ(u) in physical units, at points that are given once: window after window of one answer.

    The network inside sees scaled times, points, fields and parameters. How it is computed is decided at the first
    call, so its weights must stay until the answer is complete.
    """

    def __init__(
        self, model: nn.Module, scaling: Scaling, window: float, grid: Float[Tensor, "*x D"], **chunks: Any
    ) -> None:
        self.model, self.window, self.chunks = model, window, chunks
        self.scaling = scaling.to(grid.device)
        self.grid = self.scaling.coordinates(grid)
        # The engine of predictions has no use for a compiled model; gradients run through it.
        self.known = plain(model)
        self.predictor = Predictor(self.known)

    def __call__(
        self,
        u0: Float[Tensor, "b *_ c"],
        t: Float[Tensor, " t"] | Float[Tensor, "b t"],
        conditions: Conditions,
        begin: float | Float[Tensor, " b"] = 0.0,
        length: float | Float[Tensor, " b"] | None = None,
    ) -> Float[Tensor, "b t *x c"]:
        """Return the answer at times `t` after states that stand `begin` after the first.

        Windows are shorter than the trained one where a `length` says so.
        """
        units = self.scaling.units(u0, conditions.at(begin))
        told = units.told(conditions, begin, self.window, length) if self.known.params else None
        fields = units.fields(u0)
        if self.known.history > 1:
            fields = as_channels(fields)
        return units.physical(self._network(fields, self.grid, units.times(t), told))

    def _network(self, fields: Tensor, grid: Tensor, times: Tensor, told: Tensor | None) -> Tensor:
        model, predictor = self.model, self.predictor
        if isinstance(self.known, Rollout) and not on_clock(self.known, times):
            # A model that steps is asked between its frames too; interpolated, as in the paper.
            model = TimeInterpolated(self.known)
            predictor = Predictor(model)
        if differentiating():
            return model(fields, grid, times, told)
        return predictor(fields, grid, times, told, **self.chunks)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Within this context a model is in evaluation mode."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def on_clock(model: Rollout, t: Float[Tensor, "*b t"]) -> bool:
    """Return whether scaled times are whole steps of the model."""
    steps = t * model.steps
    return not bool((steps - steps.round()).abs().gt(1e-3).any())
