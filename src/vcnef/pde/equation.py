"""What an equation is here: its fields and parameters by name, a distribution of initial states, and a solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.grid import cell_centres
from vcnef.pde.initial import Draws
from vcnef.problem import Problem
from vcnef.suggest import suggestion

Value = int | float | Sequence[int | float] | np.ndarray | np.number | Tensor
"""Of a parameter: a number, or one per sample."""

VISCOSITIES = ("nu", "eta", "zeta")


@runtime_checkable
class Sampler(Protocol):
    """Random initial states on a grid, `[b *x c]` in double precision."""

    def __call__(self, draws: Draws, grid: Tensor, domain: tuple, **options: object) -> Tensor: ...


@runtime_checkable
class Solver(Protocol):
    """States at ascending times from `u0` at time 0, on cells of the given sides."""

    def __call__(
        self, u0: Tensor, times: list[float], params: dict[str, Tensor], spacing: tuple[float, ...], **options: object
    ) -> Tensor: ...


@dataclass(frozen=True)
class Equation:
    """A time-dependent equation with the distribution of its initial states and the solver that makes its data.

    The files of this room each describe one equation; `vcnef.pde.equation(name)` gives it.
    """

    name: str
    generation: str
    """Either "documented", or "2022": with the accidents that the benchmark's first files carry."""
    problem: Problem
    defaults: Mapping[str, float]
    """Value of each parameter where none is given."""
    initial_options: Mapping[str, object]
    """Options of the initial distribution and their values; `initial_states` takes each by name."""
    resolution: int
    """Cells along each axis, frames (the initial one included) and last time of the benchmark's files."""
    frames: int
    horizon: float
    sampler: Sampler
    solver: Solver

    def initial_states(
        self,
        indices: Sequence[int],
        *,
        seed: int,
        resolution: int | Sequence[int],
        attempt: int | Sequence[int] = 0,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        **options: object,
    ) -> Float[Tensor, "b *x c"]:
        """Random initial states; sample k depends on (seed, indices[k], attempt) alone, not on the batch or the device.

        Numbers are drawn on the CPU and fields evaluated on the device in double precision, then rounded to `dtype`.
        `attempt`, one for all or one per sample, gives another draw under the same index.
        """
        _check_names("option of the initial states", options, self.initial_options, self.name)
        attempts = [attempt] * len(indices) if isinstance(attempt, int) else list(attempt)
        draws = Draws(seed, tuple(indices), tuple(attempts), torch.device(device))
        domain = self.problem.domain
        grid = cell_centres(domain, resolution, dtype=torch.float64, device=device)
        return self.sampler(draws, grid, domain, **{**self.initial_options, **options}).to(dtype)

    def solve(
        self,
        u0: Float[Tensor, "b *x c"],
        t: Float[Tensor, " t"] | Sequence[int | float],
        params: Mapping[str, Value] | None = None,
        *,
        domain: Sequence[Sequence[int | float]] | None = None,
        compiled: bool | None = None,
        **options: object,
    ) -> Float[Tensor, "b t *x c"]:
        """States at the ascending times `t` from `u0` at time 0, with parameters that are numbers or `[b]`.

        Values are not finite where a run blew up. `compiled` fuses the steps into kernels; by default on CUDA only.
        """
        columns = {name: column.clone() for name, column in self.columns(params, u0).items()}
        _check_values(columns)
        times = torch.as_tensor(t, dtype=torch.float64).tolist()
        box = self.problem.domain if domain is None else domain
        spacing = tuple((high - low) / n for (low, high), n in zip(box, u0.shape[1:-1], strict=True))
        return self.solver(u0, times, columns, spacing, compiled=compiled, **options)

    def columns(self, params: Mapping[str, Value] | None, u: Float[Tensor, "b ..."]) -> dict[str, Float[Tensor, " b"]]:
        """One value of each parameter per sample of `u`: what is given, or else the default."""
        given = {} if params is None else params
        _check_names("parameter", given, self.defaults, self.name)
        return {name: _column(name, given.get(name, default), u) for name, default in self.defaults.items()}


def _column(name: str, value: Value, u: Tensor) -> Tensor:
    try:
        column = torch.as_tensor(value, dtype=u.dtype, device=u.device)
    except (TypeError, ValueError):
        raise ValueError(f"Parameter {name!r} is {value!r}; expected a number, or one per sample.") from None
    if column.ndim > 1 or (column.ndim == 1 and len(column) not in (1, len(u))):
        raise ValueError(
            f"Parameter {name!r} has shape {tuple(column.shape)}; expected a number or {len(u)}, one per sample. "
            "Flatten it or repeat it for each sample."
        )
    return column.expand(len(u))


def _check_values(columns: Mapping[str, Tensor]) -> None:
    for name, column in columns.items():
        if not (finite := torch.isfinite(column)).all():
            raise ValueError(f"Parameter {name!r} is not finite: {float(column[~finite][0])}. Give finite numbers.")
        if name in VISCOSITIES and (column < 0).any():
            raise ValueError(f"Parameter {name!r} is negative: {float(column.min()):.4g}. A viscosity is zero or more.")


def _check_names(kind: str, given: Mapping[str, object], known: Mapping[str, object], equation: str) -> None:
    if not isinstance(given, Mapping):
        usual = ", ".join(f"{name!r}: {value!r}" for name, value in known.items())
        raise ValueError(f"{kind.capitalize()}s are {given!r}; expected values by name, e.g. {{{usual}}}.")
    for name in given:
        if name not in known:
            raise ValueError(f"{equation!r} has no {kind} {name!r}. {suggestion(name, known)}")
