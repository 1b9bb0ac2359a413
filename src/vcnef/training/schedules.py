"""Learning rates as functions of how far a run has come, in (0, 1]: of its steps, or of its time if that is given."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, cos, pi

from vcnef.training.recipe import Recipe

START, END = 1e-3, 1e-7
"""Parts of the largest rate with which "one_cycle" begins and ends: torch's div_factor 1e3, final_div_factor 1e4."""


def one_cycle(progress: float, recipe: Recipe) -> float:
    """Up along half a cosine during the warm-up, then down along another; torch's `OneCycleLR`, of the paper's values.

    Equal to torch's after the warm-up, and before it but for one part in the number of warm-up steps.
    """
    if progress < recipe.warm_up:
        return _between(START, 1.0, progress / recipe.warm_up)
    return _between(1.0, END, (progress - recipe.warm_up) / (1 - recipe.warm_up))


def cosine(progress: float, recipe: Recipe) -> float:
    """Linear from 0 during the warm-up, then half a cosine down to 0."""
    if progress < recipe.warm_up:
        return progress / recipe.warm_up
    return _between(1.0, 0.0, (progress - recipe.warm_up) / (1 - recipe.warm_up))


def step(progress: float, recipe: Recipe) -> float:
    """Multiplied by `step_factor` after every `step_epochs` epochs."""
    # The last step of an epoch still belongs to it; rounding keeps that true for fractions such as 0.1 · 3.
    epochs = round(progress * recipe.epochs, 9)
    return recipe.step_factor ** max(ceil(epochs / recipe.step_epochs) - 1, 0)


def multi_step(progress: float, recipe: Recipe) -> float:
    """Multiplied by `step_factor` after each of the epochs `milestones`."""
    epochs = round(progress * recipe.epochs, 9)
    return recipe.step_factor ** sum(epochs > milestone for milestone in recipe.milestones)


def constant(progress: float, recipe: Recipe) -> float:
    return 1.0


SCHEDULES: dict[str, Callable[[float, Recipe], float]] = {
    "one_cycle": one_cycle,
    "step": step,
    "multi_step": multi_step,
    "cosine": cosine,
    "constant": constant,
}
"""Name -> factor of the largest rate at some progress."""


def learning_rate(progress: float, recipe: Recipe) -> float:
    return recipe.learning_rate * SCHEDULES[recipe.schedule](min(progress, 1.0), recipe)


def _between(first: float, last: float, part: float) -> float:
    """From first to last along half a cosine."""
    return last + (first - last) * (1 + cos(pi * part)) / 2
