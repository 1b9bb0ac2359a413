"""A module or function that was made elsewhere, asked for answers as a surrogate is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.data.scaling import Scaling, horizon_of

EXPECTED = "expected (u0, t, params), or (u0, grid, t, params), that gives u [samples, times, *space, channels]"
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class OwnModel:
    """u(t) = f(u₀, t, p), or f(u₀, x, t, p), in the units of the data.

    f takes tensors u0 [b *x c], the points [*x D], times t [t] since u0, and params [b p], or None where the data have
    none; it gives u [b t *x c], as a tensor or an array. What it was trained on nobody knows.
    """

    def __init__(self, ask: Callable[..., Any], data: Any, name: str | None = None) -> None:
        """For data of this kind; a module is asked without gradients, and as it is for evaluation."""
        self.name = name or _name(ask)
        self.problem = replace(data.problem, ranges={})
        self.horizon = horizon_of(data.t)
        self.scaling = Scaling.identity(self.problem, self.horizon)
        # It is judged on the split that the data themselves have.
        self.provenance: dict[str, Any] = {"split_in_order": data.split_in_order}
        self.model = ask if isinstance(ask, nn.Module) else nn.Module()
        self._ask, self._takes_grid = ask, _takes_grid(ask, self.name)

    @property
    def device(self) -> torch.device:
        return next((each.device for each in self.model.parameters()), torch.device("cpu"))

    def to(self, device: torch.device | str) -> OwnModel:
        self.model.to(device)
        return self

    @torch.no_grad()
    def answer(
        self,
        u0: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"],
        t: Float[Tensor, " t"],
        params: Float[Tensor, "b p"],
    ) -> Float[Tensor, "b t *x c"]:
        known = params if params.shape[1] else None
        training = self.model.training
        self.model.eval()
        try:
            found = self._ask(u0, grid, t, known) if self._takes_grid else self._ask(u0, t, known)
        finally:
            self.model.train(training)
        return self._checked(found, (len(u0), len(t), *u0.shape[1:])).to(u0)

    def _checked(self, found: Any, expected: tuple[int, ...]) -> Tensor:
        """The answer as a tensor of real numbers, of one state for each time."""
        u = found if isinstance(found, Tensor) else np.asarray(found)
        if u.dtype in (torch.complex64, torch.complex128) or (not isinstance(u, Tensor) and u.dtype.kind not in "fiu"):
            raise ValueError(
                f"{self.name} gave {type(found).__name__} of {u.dtype}; expected a tensor or an array of real numbers. "
                "Return the trajectories alone."
            )
        if tuple(u.shape) != expected:
            raise ValueError(
                f"{self.name} gave u of shape {tuple(u.shape)}; expected {expected}, which is [samples, times, *space, "
                f"channels] of the {expected[1]} times t. {_advice(tuple(u.shape), expected)}"
            )
        return torch.as_tensor(u)


def _advice(got: tuple[int, ...], expected: tuple[int, ...]) -> str:
    samples, times, *space, channels = expected
    if got == (samples, times + 1, *space, channels):
        return "Leave out the initial state: return u[:, 1:]."
    if got == (samples, times, channels, *space):
        return "Move the channels to the end: return u.movedim(2, -1)."
    if got == (samples, times, *space):
        return "Add the axis of channels: return u[..., None]."
    return "Return one state like u0 for each time."


def _takes_grid(ask: Callable[..., Any], name: str) -> bool:
    """Whether the points are asked for too, by the names or the number of what is taken."""
    try:
        taken = inspect.signature(ask.forward if isinstance(ask, nn.Module) else ask).parameters.values()
    except (TypeError, ValueError):  # of code that is compiled
        return False
    if any(each.kind is each.VAR_POSITIONAL for each in taken):
        return False
    places = [each for each in taken if each.kind in POSITIONAL]
    needed = [each for each in places if each.default is each.empty]
    with_grid = len(needed) == 4 or "grid" in [each.name for each in places]
    if len(places) < 3 + with_grid or len(needed) > 3 + with_grid:
        raise ValueError(
            f"{name} takes ({', '.join(each.name for each in places)}); {EXPECTED}. "
            "Put a function around it: lambda u0, t, params: ..."
        )
    return with_grid


def _name(ask: Callable[..., Any]) -> str:
    found = getattr(ask, "__name__", type(ask).__name__)
    return "model" if found == "<lambda>" else found
