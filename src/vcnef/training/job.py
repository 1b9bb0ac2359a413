"""All the parts of a run, put together and checked before its first step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric

from vcnef.data import Batches, Queries, StoredTrajectories, Trajectories
from vcnef.data.augment import Symmetry
from vcnef.surrogate import Surrogate
from vcnef.training.checkpoint import RunFolder, State
from vcnef.training.devices import share
from vcnef.training.objectives import Loss, Objective, combine, data_objective
from vcnef.training.optimisers import Average, build_optimiser
from vcnef.training.physics import PhysicsLoss
from vcnef.training.recipe import Recipe

Data = Trajectories | StoredTrajectories
INITIAL_WEIGHT = 10.0
"""Of the error in the initial state, beside the residual, where there are no trajectories to learn from."""


@dataclass(eq=False)
class Job:
    """A run that is ready to go, from its first step or from where it was interrupted."""

    fabric: Fabric
    surrogate: Surrogate
    recipe: Recipe
    batches: Batches
    valid: Batches | None
    loss: Any
    """The objective as a module, wrapped by `fabric`; so is the optimiser."""
    optimiser: Any
    state: State
    folder: RunFolder


def prepare(
    fabric: Fabric,
    surrogate: Surrogate,
    train: Data,
    valid: Data | None,
    recipe: Recipe,
    *,
    out: Path | None,
    queries: Queries,
    symmetries: Sequence[Symmetry],
    objective: Objective | None,
    resume: bool,
) -> Job:
    folder = RunFolder(out, writes=fabric.is_global_zero)
    folder.open(resume=resume)
    torch.manual_seed(recipe.seed + fabric.global_rank)
    model = surrogate.to(fabric.device).model.train()
    objective = objective or default_objective(recipe, surrogate, queries)
    shard, device, size = (fabric.global_rank, fabric.world_size), fabric.device, share(recipe, fabric)
    views = {"queries": queries, "symmetries": symmetries, "scaling": surrogate.scaling}
    batches = Batches(train, size, device=device, seed=recipe.seed, shard=shard, **views)
    judged = None if valid is None else Batches(valid, size, device=device, seed=None, shard=shard)
    average = Average(model, recipe.ema) if recipe.ema else None
    losses = torch.zeros((), device=device)
    state = State(model, build_optimiser(model, recipe), fabric.strategy.precision, average, losses=losses)
    if resume:
        folder.restore(state, recipe, len(batches))
    loss, optimiser = fabric.setup(Loss(model, objective), state.optimiser)
    surrogate.provenance |= {"recipe": asdict(recipe), "torch": torch.__version__}
    return Job(fabric, surrogate, recipe, batches, judged, loss, optimiser, state, folder)


def default_objective(recipe: Recipe, surrogate: Surrogate, queries: Queries) -> Objective:
    """The loss that a recipe names."""
    data = data_objective(recipe, surrogate.scaling.fields, surrogate.model, queries)
    if not recipe.physics:
        return data
    # Without trajectories, nothing but this term holds the initial states.
    initial = 0.0 if recipe.data_weight else INITIAL_WEIGHT
    return combine(data, PhysicsLoss(surrogate.problem, surrogate.scaling, initial=initial), recipe)
