"""Training: `fit` is one flat loop; a `Recipe` has every knob of it, an `Objective` says what becomes small.

For an objective of your own, `ask` is what a model answers to a batch, `Beside` adds it to the recipe's loss, and
`PhysicsLoss` is the residual of a known equation.
"""

from vcnef.training.checkpoint import check_unused
from vcnef.training.fit import Run, fit
from vcnef.training.objectives import Objective, ask, combine, data_objective
from vcnef.training.own import Beside
from vcnef.training.physics import PhysicsLoss
from vcnef.training.recipe import Recipe
from vcnef.training.stopping import NonFiniteError, Stopped

__all__ = [
    "Beside",
    "NonFiniteError",
    "Objective",
    "PhysicsLoss",
    "Recipe",
    "Run",
    "Stopped",
    "ask",
    "check_unused",
    "combine",
    "data_objective",
    "fit",
]
