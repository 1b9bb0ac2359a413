"""All the parts of a run, put together and checked before its first step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vcnef.data import Batches, Queries, StoredTrajectories, Trajectories
from vcnef.data.augment import Symmetry
from vcnef.data.conditions import Columns
from vcnef.data.content import content_of
from vcnef.grid import is_even
from vcnef.pde import noted_generation
from vcnef.surrogate import Surrogate
from vcnef.training.checkpoint import RunFolder, State, terms_of
from vcnef.training.devices import share
from vcnef.training.objectives import Loss, Objective, combine, data_objective
from vcnef.training.optimisers import Average, build_optimiser
from vcnef.training.own import Beside, FirstWindow, Own, Sum, name_of
from vcnef.training.physics import PhysicsLoss
from vcnef.training.recipe import Recipe
from vcnef.training.step import Step, build_step

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Data = Trajectories | StoredTrajectories
INITIAL_WEIGHT = 10.0
"""Of the error in the initial state, beside the residual, where there are no trajectories to learn from."""
RANDOM_TIMES = 16
"""At which the equation is then to hold, unless the number of times is given: between times that are always the same, a
network learns to break it."""

MANY_BATCHES = 10
"""From so many on, an epoch leaves out the trajectories that would make a smaller one at its end, others each time: a
second shape would have to be compiled and recorded for it."""


@dataclass(eq=False)
class Job:
    """A run that is ready to go, from its first step or from where it was interrupted."""

    fabric: Fabric
    surrogate: Surrogate
    recipe: Recipe
    batches: Batches
    valid: Batches | None
    step: Step
    state: State
    folder: RunFolder
    terms: dict[str, Any]
    """What a run that is resumed must have in common with this one."""


def prepare(
    fabric: Fabric,
    surrogate: Surrogate,
    train: Data,
    valid: Data | None,
    recipe: Recipe,
    *,
    folder: RunFolder,
    queries: Queries,
    symmetries: Sequence[Symmetry],
    objective: Objective | Beside | None,
    resume: bool,
) -> Job:
    folder.open(resume=resume)
    torch.manual_seed(recipe.seed + fabric.global_rank)
    model = surrogate.to(fabric.device).model
    _check_steps(surrogate, train)
    name = name_of(objective)
    objective = choose_objective(objective, recipe, surrogate, queries, train.t)
    shard, device, size = (fabric.global_rank, fabric.world_size), fabric.device, share(recipe, fabric)
    views = {"queries": queries, "symmetries": symmetries, "scaling": surrogate.scaling}
    whole = len(train) // fabric.world_size >= MANY_BATCHES * size
    batches = Batches(train, size, device=device, seed=recipe.seed, shard=shard, drop_last=whole, **views)
    judged = None if valid is None else Batches(valid, size, device=device, seed=None, shard=shard)
    average = Average(model, recipe.ema) if recipe.ema else None
    losses = torch.zeros((), device=device)
    state = State(model, build_optimiser(model, recipe), fabric.strategy.precision, average, losses=losses)
    content = [content_of(each) for each in (train, valid) if each is not None]
    terms = terms_of(recipe, len(batches), surrogate, name, content)
    if resume:
        folder.restore(state, surrogate, terms)
    model.train()  # Not before: what is refused stays ready to predict.
    loss, optimiser = fabric.setup(Loss(model, objective), state.optimiser)
    step = build_step(fabric, loss, optimiser, recipe, objective)
    surrogate.provenance |= {"recipe": asdict(recipe), "torch": torch.__version__}
    surrogate.provenance |= {"objective": name} if name else {}
    return Job(fabric, surrogate, recipe, batches, judged, step, state, folder, terms)


def _check_steps(surrogate: Surrogate, train: Trajectories | StoredTrajectories) -> None:
    """A model that steps learns from each frame to the next, and answers by its own clock: both must agree."""
    steps, frames = getattr(surrogate.model, "steps", None), len(train.t) - 1
    if steps not in (None, frames):
        raise ValueError(
            f"{surrogate.name} takes {steps} steps to the horizon, but the data have {frames} frames after the initial "
            "one. Leave out steps, or view the data with a stride."
        )


def choose_objective(given: Any, recipe: Recipe, surrogate: Surrogate, queries: Queries, t: Tensor) -> Objective:
    """The loss that a recipe names, one of the user's in its place, or both."""
    if given is None:
        return default_objective(recipe, surrogate, queries, t)
    if (obstacle := _beyond_first_window(surrogate, queries)) is not None:
        raise ValueError(f"The objective {name_of(given)!r} is a function of your own, but {obstacle}. Leave it out.")
    own = Own(given.objective if isinstance(given, Beside) else given, surrogate.scaling)
    if queries.window:
        own = FirstWindow(own, queries.window, queries.pushes, is_even(t.cpu()))
    if isinstance(given, Beside):
        return Sum(default_objective(recipe, surrogate, queries, t), own, given.weight)
    return own


def _beyond_first_window(surrogate: Surrogate, queries: Queries) -> str | None:
    """What a loss of one window does not know of it: more than a state and constant parameters."""
    if surrogate.scaling.columns != Columns():
        return "windows are told of the time or of parameters that change with it, which such a loss does not know"
    if queries.history > 1:
        return f"windows begin with {queries.history} frames, where such a loss knows one state"
    return None


def default_objective(recipe: Recipe, surrogate: Surrogate, queries: Queries, t: Tensor) -> Objective:
    """The loss that a recipe names, for data with these times."""
    scaling, even = surrogate.scaling, is_even(t.cpu())
    data = data_objective(recipe, scaling.fields, surrogate.model, queries, even=even, columns=scaling.columns)
    if not recipe.physics:
        return data
    if (obstacle := _beyond_first_window(surrogate, queries)) is not None:
        raise ValueError(f"physics is {recipe.physics:g}, but {obstacle}. Set physics to 0.")
    # Without trajectories, nothing but this term holds the initial states.
    alone = {"initial": INITIAL_WEIGHT, "times": queries.times or RANDOM_TIMES}
    generation = noted_generation(surrogate.provenance.get("generated", {}))
    options = {"method": recipe.physics_method, "generation": generation} | ({} if recipe.data_weight else alone)
    physics = PhysicsLoss(surrogate.problem, surrogate.scaling, **options)
    if physics.needs_clock and (queries.window or queries.random_starts or queries.passes):
        raise ValueError(
            f"The equation {surrogate.problem.name!r} depends on time, but window, random_starts and passes start "
            "samples at any frame, of which batches do not tell the time. Set data.window=direct, and leave out those."
        )
    if queries.window:
        physics = FirstWindow(physics, queries.window, queries.pushes, even)
    return combine(data, physics, recipe)
