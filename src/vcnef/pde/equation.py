"""What an equation is here: its fields and parameters by name, its right-hand side, initial states, and a solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.grid import cell_centres
from vcnef.pde.definition import check_definition, middle, options_of
from vcnef.pde.derivatives import FiniteDifference
from vcnef.pde.fluxes import Law, Spectral
from vcnef.pde.formula import POINTS, Formula
from vcnef.pde.initial import Draws, OneByOne
from vcnef.pde.modes import solve_by_modes
from vcnef.periodicity import settle
from vcnef.problem import Problem
from vcnef.spelling import spell_value
from vcnef.suggest import suggestion

Value = int | float | Sequence[int | float] | np.ndarray | np.number | Tensor
"""Of a parameter: a number, or one per sample."""

VISCOSITIES = ("nu", "eta", "zeta")
OWN = "own"
"""The generation of equations that are no benchmark's."""
OWN_EQUATIONS: dict[str, Equation] = {}
"""Those that users have defined, by name."""


Sampler = Callable[..., Tensor]
"""Random initial states `[b *x c]` in double precision from `(draws, grid, domain, **options)`."""


@dataclass(frozen=True)
class Equation:
    """A time-dependent equation u_t = f(u): its right-hand side, and what makes data of it.

    >>> def growth(u, d, p):
    ...     return p["D"] * d(u, "x", 2) + p["r"] * u * (1 - u)
    >>> fisher = Equation("fisher", growth, parameters={"D": (0.002, 0.01), "r": 2.0})

    One that is defined is known by its name from then on, in this process: to `vcnef.solve`, `generate`, `evaluate` and
    to the physics-informed loss of data that have this name. Defining it anew replaces it. The files of this room each
    describe one of the benchmark's; `vcnef.pde.equation(name)` gives it.
    """

    name: str
    rate: Any = None
    """f, as a function of fields, derivatives and parameters (`vcnef.pde.formula.Formula` says of which), or a
    conservation law. Without it there is no residual, and no solver but your own."""
    _: KW_ONLY
    channels: Sequence[str] = ("u",)
    parameters: Any = field(default_factory=dict)
    """The value of each parameter where none is given, or the (low, high) range that generated samples draw from."""
    domain: Any = ((0.0, 1.0),)
    """(low, high) of each axis."""
    periodic: Any = True
    """Whether the domain closes on itself, along all axes or along each, as (True, False); else it has walls, and data
    between them need a solver of your own."""
    initial: Callable[..., Any] | None = None
    """One random initial state, `f(rng, x)` with NumPy's generator and the points `x [*space, D]`; keywords are options
    that `generate` takes."""
    solver: Callable[..., Any] | None = None
    """States `[b t *x c]` from `(u0 [b *x c], times, params, spacing)`: at ascending times since `u0`, with a `[b]` of
    each parameter and the sides of a cell. By default, on periodic domains, Fourier modes and steps of fourth order."""
    exact: Callable[..., Any] | None = None
    """The solution where it is known, from `(u0, t, params, domain)`: answers are judged by it."""
    resolution: int = 128
    """Cells along each axis, frames (the initial one included) and last time of generated data."""
    frames: int = 21
    horizon: float = 1.0
    stored_options: Mapping[str, object] = field(default_factory=dict)
    """Options of the solver for data that are generated, where those must stay as they were."""
    generation: str = OWN
    """Of a benchmark's, either "documented", or "2022": with the accidents that its first files carry."""
    sampler: Sampler | None = None
    """Initial states of many samples at once, in place of `initial`."""
    initial_options: Mapping[str, object] = field(default_factory=dict)
    """Options of the initial distribution and their values; `initial_states` takes each by name."""

    def __post_init__(self) -> None:
        if self.generation != OWN:
            return
        check_definition(self)
        # A line may be given as its two ends alone.
        box = self.domain
        if np.shape(box) == (2,):
            box = (box,)
        object.__setattr__(self, "domain", tuple((float(low), float(high)) for low, high in box))
        object.__setattr__(self, "channels", tuple(self.channels))
        object.__setattr__(self, "periodic", settle(self.periodic, len(self.domain)))
        if self.initial is not None:
            object.__setattr__(self, "sampler", OneByOne(self.initial))
            object.__setattr__(self, "initial_options", options_of(self.initial) | dict(self.initial_options))
        # A problem looks at its names and at the ends of its axes.
        spacing = tuple((high - low) / POINTS for low, high in self.problem.domain)
        if isinstance(self.law, Formula):
            method = FiniteDifference(spacing, self.periodic)
            if self.periodic is True:
                method = Spectral(spacing)
            self.law.try_out(method, self.defaults)
        OWN_EQUATIONS[self.name] = self

    @cached_property
    def problem(self) -> Problem:
        """Return fields, parameters and domain by name."""
        return Problem(self.name, tuple(self.channels), tuple(self.parameters), self.domain, self.periodic)

    @cached_property
    def law(self) -> Law | Formula | None:
        """Return what computes the right-hand side, and its parts."""
        if self.rate is None or isinstance(self.rate, Law):
            return self.rate
        return Formula(self.name, self.rate, tuple(self.channels), len(self.domain))

    @cached_property
    def defaults(self) -> dict[str, float]:
        """Return the value of each parameter where none is given; of a range its middle, as samples draw from it."""
        return {name: middle(value) for name, value in self.parameters.items()}

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return what samples draw their parameters from where nothing is said of them."""
        return {name: value for name, value in self.parameters.items() if isinstance(value, tuple)}

    @property
    def solvable(self) -> bool:
        """Return whether there is a solver."""
        return self.solver is not None or (self.law is not None and self.periodic is True)

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
        """Return random initial states; sample k depends on (seed, indices[k], attempt) alone, not on batch or device.

        Numbers are drawn on the CPU and fields evaluated on the device in double precision, then rounded to `dtype`.
        `attempt`, one for all or one per sample, gives another draw under the same index.
        """
        if self.sampler is None:
            raise ValueError(
                f"{self.name!r} has no random initial states. Define it with some: Equation({self.name!r}, …, "
                "initial=f), where f(rng, x) is one state; or solve it from your own with vcnef.solve."
            )
        _check_names("option of the initial states", options, self.initial_options, self.name)
        if isinstance(attempt, int):
            attempt = [attempt] * len(indices)
        draws = Draws(seed, tuple(indices), tuple(attempt), torch.device(device))
        domain = self.problem.domain
        grid = cell_centres(domain, resolution, dtype=torch.float64, device=device)
        states = self.sampler(draws, grid, domain, **{**self.initial_options, **options})
        return self._with_channels(states, tuple(grid.shape[:-1])).to(dtype)

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
        """Return states at the ascending times `t` from `u0` at time 0, with parameters that are numbers or `[b]`.

        Values are not finite where a run blew up. `compiled` fuses the steps into kernels; by default on CUDA only.
        """
        columns = {name: column.clone() for name, column in self.columns(params, u0).items()}
        _check_finite(columns)
        if self.generation != OWN:
            _check_viscosities(columns)
        times = torch.as_tensor(t, dtype=torch.float64).tolist()
        if domain is None:
            domain = self.problem.domain
        if self.solver is None:
            self._check_solvable()
            return solve_by_modes(self.law, u0, times, columns, domain)
        spacing = tuple((high - low) / n for (low, high), n in zip(domain, u0.shape[1:-1], strict=True))
        if compiled is not None:
            options["compiled"] = compiled
        u = torch.as_tensor(self.solver(u0, times, columns, spacing, **options), dtype=u0.dtype, device=u0.device)
        if u.shape != (len(u0), len(times), *u0.shape[1:]):
            raise ValueError(
                f"The solver of {self.name!r} returns shape {tuple(u.shape)}; expected "
                f"{(len(u0), len(times), *u0.shape[1:])}: samples, times, space and channels."
            )
        return u

    def columns(self, params: Mapping[str, Value] | None, u: Float[Tensor, "b ..."]) -> dict[str, Float[Tensor, " b"]]:
        """Return one value of each parameter per sample of `u`: what is given, or else the default."""
        given: Mapping[str, Value] = {}
        if params is not None:
            given = params
        _check_names("parameter", given, self.defaults, self.name)
        return {name: _column(name, given.get(name, default), u) for name, default in self.defaults.items()}

    def _check_solvable(self) -> None:
        if not self.solvable:
            why = "has walls, of which its rate says nothing"
            if self.law is None:
                why = "has no rate"
            raise ValueError(
                f"{self.name!r} {why}; expected a solver of your own. Define it with one: Equation({self.name!r}, …, "
                "solver=f), where f(u0, times, params, spacing) gives the states."
            )

    def _with_channels(self, states: Tensor, sides: tuple[int, ...]) -> Float[Tensor, "b *x c"]:
        """Return states with the axis of channels, which a single field may lack."""
        count = len(self.channels)
        if count == 1 and states.shape[1:] == sides:
            return states[..., None]
        if states.shape[1:] != (*sides, count):
            raise ValueError(
                f"An initial state of {self.name!r} has shape {tuple(states.shape[1:])}; expected {(*sides, count)}: "
                f"space, and the channels {', '.join(self.channels)}."
            )
        return states


def _column(name: str, value: Value, u: Tensor) -> Tensor:
    try:
        column = torch.as_tensor(value, dtype=u.dtype, device=u.device)
    except (TypeError, ValueError):
        raise ValueError(f"Parameter {name!r} is {spell_value(value)}; expected a number, or one per sample.") from None
    if column.ndim > 1 or (column.ndim == 1 and len(column) not in (1, len(u))):
        raise ValueError(
            f"Parameter {name!r} has shape {tuple(column.shape)}; expected a number or {len(u)}, one per sample. "
            "Flatten it or repeat it for each sample."
        )
    return column.expand(len(u))


def _check_finite(columns: Mapping[str, Tensor]) -> None:
    for name, column in columns.items():
        finite = torch.isfinite(column)
        if not finite.all():
            raise ValueError(f"Parameter {name!r} is not finite: {float(column[~finite][0])}. Give finite numbers.")


def _check_viscosities(columns: Mapping[str, Tensor]) -> None:
    for name, column in columns.items():
        if name in VISCOSITIES and (column < 0).any():
            raise ValueError(f"Parameter {name!r} is negative: {float(column.min()):.4g}. A viscosity is zero or more.")


def _check_names(kind: str, given: Mapping[str, object], known: Mapping[str, object], equation: str) -> None:
    if not isinstance(given, Mapping):
        usual = ", ".join(f"{name!r}: {value!r}" for name, value in known.items())
        raise ValueError(f"{kind.capitalize()}s are {given!r}; expected values by name, e.g. {{{usual}}}.")
    for name in given:
        if name not in known:
            raise ValueError(f"{equation!r} has no {kind} {name!r}. {suggestion(name, known)}")
