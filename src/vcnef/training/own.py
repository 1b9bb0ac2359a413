"""An objective that a user has written: checked, given what it asks for, and named in the run's folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from math import isfinite
from typing import Any

from jaxtyping import Float
from torch import Tensor

from vcnef.data import Batch, Scaling
from vcnef.models.interface import TrajectoryModel
from vcnef.training.windows import frames_and_clock

UNITS = "scaling"
"""The name of a fourth argument that an objective may have."""
MEANINGLESS = {
    "unroll": "full",
    "physics": 0.0,
    "data_weight": 1.0,
    "semigroup": 0.0,
    "input_noise": 0.0,
}
"""What of a recipe says how its own loss is made, and its default."""
OF_THE_LOSS = ("loss", "physics_method", "physics_warm_up", "pushes", "chain", *MEANINGLESS)
"""Settings that mean nothing where an objective stands in place of the recipe's loss."""

Function = Callable[..., Float[Tensor, ""]]


@dataclass(frozen=True, eq=False)
class Beside:
    """An objective of your own beside the recipe's loss: loss + weight · objective.

    >>> vcnef.fit(data, objective=vcnef.training.Beside(smooth, weight=0.1))
    """

    objective: Function
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_objective(self.objective)
        if not (isinstance(self.weight, int | float) and isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"weight is {self.weight!r}; expected a number above 0.")


@dataclass(frozen=True, eq=False)
class Sum:
    """loss + weight · objective; recorded and replayed only if both may be."""

    loss: Any
    objective: Any
    weight: float

    @property
    def static(self) -> bool:
        return bool(getattr(self.loss, "static", False) and getattr(self.objective, "static", False))

    @property
    def phases(self) -> tuple[float, ...]:
        both = {*getattr(self.loss, "phases", ()), *getattr(self.objective, "phases", ())}
        return tuple(sorted(both))

    def __call__(self, model: TrajectoryModel, batch: Batch, progress: float) -> Float[Tensor, ""]:
        return self.loss(model, batch, progress) + self.weight * self.objective(model, batch, progress)


class Own:
    """A user's function as an objective of the loop.

    Its code runs as it stands in every step. One that says `static = True` is recorded on a GPU: it may not look at a
    value then, nor do other work from step to step. Calls of the model within are the fast ones in any case.
    """

    def __init__(self, function: Function, scaling: Scaling) -> None:
        check_objective(function)
        self.name = name_of(function)
        self.static = bool(getattr(function, "static", False))
        self.phases = tuple(getattr(function, "phases", ()))
        self._seen = False
        self._function = function
        if UNITS in signature(function).parameters:
            if scaling.own_time is not None:
                raise ValueError(
                    f"The objective {self.name!r} asks for the units, but with own_time each sample has its own, which "
                    f"batches do not hold. Leave out own_time, or the argument {UNITS!r}."
                )
            self._function = partial(function, **{UNITS: scaling})

    def __call__(self, model: TrajectoryModel, batch: Batch, progress: float) -> Float[Tensor, ""]:
        loss = self._function(model, batch, progress)
        if not self._seen:
            _check_loss(self.name, loss)
            self._seen = True
        return loss


class FirstWindow:
    """An objective of the window that is learnt from, as a batch of its own.

    Batches of windows hold the frames before too, from which states are pushed. The objective sees a state, the times
    since then, of one window, and the frames there: it need not know of windows.
    """

    def __init__(self, objective: Any, window: int, pushes: int, even: bool) -> None:
        self.objective, self.window, self.first, self.even = objective, window, window * pushes, even
        self.static = bool(getattr(objective, "static", False))
        self.phases = tuple(getattr(objective, "phases", ()))

    def __call__(self, model: TrajectoryModel, batch: Batch, progress: float) -> Float[Tensor, ""]:
        return self.objective(model, self.cut(batch), progress)

    def cut(self, batch: Batch) -> Batch:
        """The state in which that window starts, and its frames and times."""
        frames, clock = frames_and_clock(batch)
        first, last = self.first, self.first + self.window
        t = clock[:, first + 1 : last + 1] - clock[:, first : first + 1]
        # Frames that are equally far apart are asked at the same times by all samples.
        return Batch(
            frames[:, first], batch.grid, t[0] if self.even else t, batch.params, frames[:, first + 1 : last + 1]
        )


def name_of(objective: Any) -> str | None:
    """What a run's folder calls it: its `name`, or that of the function or class; None is the recipe's own loss."""
    if objective is None:
        return None
    if isinstance(objective, Beside):
        return f"loss + {objective.weight:g} · {name_of(objective.objective)}"
    if isinstance(objective, partial):
        return name_of(objective.func)
    if hasattr(objective, "name"):
        return objective.name
    return getattr(objective, "__qualname__", type(objective).__qualname__)


def check_objective(objective: Any) -> None:
    """Whether it can be called as the loop calls it."""
    if isinstance(objective, Beside):
        return
    expected = "expected a function of (model, batch, progress) that returns a scalar"
    if not callable(objective) or isinstance(objective, type):
        raise ValueError(f"The objective is {objective!r}; {expected}.")
    known = signature(objective).parameters
    try:
        signature(objective).bind(None, None, 0.0, **({UNITS: None} if UNITS in known else {}))
    except TypeError:
        raise ValueError(
            f"The objective {name_of(objective)!r} takes ({', '.join(known)}); {expected}. A fourth argument may be "
            f"{UNITS}, the units of the data."
        ) from None


def check_settings(objective: Any, recipe: Any, given: Mapping[str, Any]) -> None:
    """Refuse settings that say how the recipe's loss is made where it is not."""
    if objective is None or isinstance(objective, Beside):
        return
    asked = {name: value for name, value in given.items() if name in OF_THE_LOSS}
    asked |= {name: getattr(recipe, name) for name, usual in MEANINGLESS.items() if getattr(recipe, name) != usual}
    if asked:
        name, value = next(iter(asked.items()))
        raise ValueError(
            f"{name} is {value!r}, which is about the recipe's loss; the objective {name_of(objective)!r} stands in "
            f"its place. Leave {name} out, or add to that loss: objective=vcnef.training.Beside(…, weight=0.1)."
        )


def _check_loss(name: str | None, loss: Any) -> None:
    """Whether an objective gives what can become small."""
    if not isinstance(loss, Tensor):
        raise ValueError(
            f"The objective {name!r} returns a {type(loss).__name__}; expected a scalar tensor, which gradients run "
            "through. Leave out .item() and float()."
        )
    if loss.ndim:
        raise ValueError(
            f"The objective {name!r} returns shape {tuple(loss.shape)}; expected a scalar. Take the mean over samples."
        )
    if not loss.requires_grad:
        raise ValueError(
            f"The objective {name!r} does not depend on the weights; expected a loss of what the model answers, "
            "e.g. of vcnef.training.ask(model, batch)."
        )
