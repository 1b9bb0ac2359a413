"""What training makes small: losses on trajectories, and how they join with others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.data import Batch, Normaliser, Queries
from vcnef.data.conditions import Columns
from vcnef.models.interface import TrajectoryModel
from vcnef.models.rollout import Rollout
from vcnef.training.devices import fusion
from vcnef.training.losses import Error, Relative, mean_square
from vcnef.training.physics import weight
from vcnef.training.recipe import Recipe
from vcnef.training.stages import TwoStages
from vcnef.training.unrolling import Curriculum, PushForward, Unrolled, check_unrolling
from vcnef.training.windows import Windows


@runtime_checkable
class Objective(Protocol):
    """A scalar loss of a model on a batch, both in the network's units; `progress` is that of the run, in (0, 1].

    A batch holds what the model is asked and what it should answer: states `u0 [b *x c]`, `grid [*x D]`, the times `t
    [t]` or `[b t]` since the states as parts of the horizon (of the window, where the model is a flow map), parameters
    `params [b p]` in the order of the data, and the true `u [b t *x c]`. `ask(model, batch)` is what the model answers.
    A function with a fourth argument `scaling` is given the units of the data: `scaling.fields.denormalise(z)` are
    physical fields, `scaling.physical(z, z_t)` fields with their derivatives in time, `scaling.params.unscale(params)`
    and `scaling.physical_points(grid)` the rest, and `scaling.horizon` is how long the network's time 1 is.

    A mean over samples, not a sum: processes that share a batch average their gradients. One with `static = True` never
    waits for the device and launches the same kernels whatever the progress, so that its step can be recorded and
    replayed. Where they change during the run, its `phases` are the parts of the run after which they do.
    """

    def __call__(self, model: TrajectoryModel, batch: Batch, progress: float) -> Float[Tensor, ""]: ...


def ask(model: TrajectoryModel, batch: Batch) -> Float[Tensor, "b t *x c"]:
    """The model's trajectories for a batch."""
    return model(batch.u0, batch.grid, batch.t, batch.params if model.params else None)


@dataclass(frozen=True, eq=False)
class Data:
    """An error of the model's trajectories."""

    error: Error
    static: bool = False

    def __call__(self, model: TrajectoryModel, batch: Batch, progress: float) -> Float[Tensor, ""]:
        return self.error(ask(model, batch), batch.u)


@dataclass(frozen=True, eq=False)
class Combined:
    """w_data · data + w(progress) · physics."""

    data: Objective
    physics: Objective
    recipe: Recipe

    def __call__(self, model: TrajectoryModel, batch: Batch, progress: float) -> Float[Tensor, ""]:
        loss = weight(self.recipe, progress) * self.physics(model, batch, progress)
        if self.recipe.data_weight:
            loss = loss + self.recipe.data_weight * self.data(model, batch, progress)
        return loss


def combine(data: Objective, physics: Objective, recipe: Recipe) -> Combined:
    """A loss on trajectories and one on the residual of the equation, with the recipe's weights."""
    return Combined(data, physics, recipe)


def data_objective(
    recipe: Recipe,
    fields: Normaliser,
    model: TrajectoryModel,
    queries: Queries,
    *,
    even: bool = True,
    columns: Columns | None = None,
) -> Objective:
    """The loss on trajectories that a recipe asks for; `fields` are on the model's device. `even` says whether frames
    are equally far apart, `columns` what windows are told."""
    error = {"mse": mean_square, "relative": Relative(fields)}[recipe.loss]
    if queries.window:
        _check_history(recipe, queries, even)
        return Windows(
            error, queries.window, queries.pushes, even,
            chain=queries.chain, semigroup=recipe.semigroup, noise=recipe.input_noise,
            columns=columns or Columns(), history=queries.history,
        )  # fmt: skip
    _check_windows(recipe, queries)
    if recipe.unroll == "full":
        follows = isinstance(model, Rollout) and queries.consecutive
        if follows:
            return Unrolled(error)
        options = fusion(recipe, queries, fields.mean.device)
        # Where times are not independent, how far to go is read from the device.
        return Data(error if options is None else torch.compile(error, **options), static=model.independent_times)
    check_unrolling(model, recipe.unroll, queries)
    ways = {
        "curriculum": partial(Curriculum, noise=recipe.input_noise),
        "push_forward": partial(PushForward, chain=queries.chain),
        "two_stage": TwoStages,
    }
    return ways[recipe.unroll](error)


def _check_history(recipe: Recipe, queries: Queries, even: bool) -> None:
    """Whether there are frames for a history wherever a window begins."""
    if queries.history > 1 and not even:
        raise ValueError(
            f"history is {queries.history}, but the frames of the data are not equally far apart. Leave it out, or "
            "resample the data."
        )
    if queries.history > 1 and recipe.semigroup:
        raise ValueError(
            f"semigroup is {recipe.semigroup:g} with history={queries.history}: between frames there is no history to "
            "begin a part of a window with. Leave out one."
        )


def _check_windows(recipe: Recipe, queries: Queries) -> None:
    """Whether a recipe without windows has what is for them."""
    if queries.chain > 1 and recipe.unroll != "push_forward":
        raise ValueError(
            f"chain is {queries.chain}, but there are no windows. Leave it out, set a window, or use "
            "unroll='push_forward' for a model that steps."
        )
    if recipe.semigroup:
        raise ValueError(f"semigroup is {recipe.semigroup:g}, but there are no windows. Leave it out, or set a window.")
    if recipe.input_noise and recipe.unroll != "curriculum":
        raise ValueError(
            f"input_noise is {recipe.input_noise:g}, but unroll is {recipe.unroll!r}, which has none. "
            "Leave it out, set a window, or use unroll='curriculum'."
        )


class Loss(nn.Module):
    """An objective as a module: processes that share the work then see every use of the weights, whatever it is."""

    def __init__(self, model: TrajectoryModel, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, u0: Tensor, grid: Tensor, t: Tensor, params: Tensor, u: Tensor, progress: float) -> Tensor:
        return self.objective(self.model, Batch(u0, grid, t, params, u), progress)
