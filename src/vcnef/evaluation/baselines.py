"""Answers that cost nothing: the errors that a model has to be below to have learnt anything."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor

from vcnef.data.rows import bytes_of_one, spread
from vcnef.evaluation.inputs import BLOCK_BYTES
from vcnef.evaluation.selections import Selection
from vcnef.metrics.errors import floored_nrmse_table

MOST_AVERAGED = 256
"""Trajectories of training that a mean is taken of; more change little."""


class Baselines:
    """nRMSE without a model: of u₀, of its mean over the points, and of means over the training split.

    u(t) = u₀, u(t) = ⟨u₀⟩ₓ, u(t) = ⟨u(t)⟩ over trajectories, and u(t) = ⟨u⟩ over all of training, one number a channel.
    """

    def __init__(self, selection: Selection, mean: Float[Tensor, "t *x c"] | None) -> None:
        """`mean` is that of training at the frames and points of the selection, the initial one included."""
        self.selection, self.mean = selection, mean
        self._sums: dict[str, Tensor] = {}

    def update(self, u: Float[Tensor, "b t *x c"]) -> None:
        """Judge them on some trajectories at full resolution."""
        cut = self.selection.cut(u)
        truth = cut[:, 1:]
        points = tuple(range(2, cut.ndim - 1))
        answers = {"persistence": cut[:, :1], "level": cut[:, :1].mean(points, keepdim=True)}
        if self.mean is not None:
            mean = self.mean[1:].to(u.device)
            answers |= {"mean": mean, "constant": mean.flatten(0, -2).mean(dim=0)}
        for name, answer in answers.items():
            sums = floored_nrmse_table(answer.expand_as(truth), truth, cut[:, 0]).sums().cpu()
            self._sums[name] = self._sums.get(name, 0) + sums

    def errors(self) -> dict[str, float]:
        """By name; without those of which no frame has a relative error."""
        return {name: (total / count).item() for name, (total, count) in self._sums.items() if count > 0}


def mean_of_training(training: Any, selection: Selection) -> Tensor | None:
    """The mean trajectory of the training split, where the data that are judged have one beside."""
    if training is None:
        return None
    count = min(len(training), MOST_AVERAGED, BLOCK_BYTES // bytes_of_one(training))
    if not count:
        return None
    return selection.cut(training.read(spread(len(training), count))).mean(dim=0)
