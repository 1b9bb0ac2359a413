"""Training: `fit` is one flat loop; a `Recipe` has every knob of it, an `Objective` says what becomes small."""

from vcnef.training.checkpoint import check_unused
from vcnef.training.fit import Run, fit
from vcnef.training.objectives import Objective, combine, data_objective
from vcnef.training.recipe import Recipe
from vcnef.training.stopping import NonFiniteError, Stopped

__all__ = [
    "NonFiniteError",
    "Objective",
    "Recipe",
    "Run",
    "Stopped",
    "check_unused",
    "combine",
    "data_objective",
    "fit",
]
