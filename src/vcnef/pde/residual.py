"""How far a field is from obeying its equation: the residual, in the form that the data obey, and its relative size."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.grid import cell_centres
from vcnef.grid import spacing as spacing_of
from vcnef.pde.derivatives import FiniteDifference, add_up
from vcnef.pde.equation import Equation, Value
from vcnef.pde.finite_volume import per_sample
from vcnef.pde.fluxes import METHODS, Law, Method
from vcnef.pde.formula import Formula
from vcnef.pde.registry import FEWEST_CELLS, check_domain, equation
from vcnef.periodicity import SPACE, per_axis
from vcnef.suggest import suggestion


def residual(
    name: str | Equation,
    u: Float[Tensor, "b t *x c"],
    u_t: Float[Tensor, "b t *x c"],
    params: Mapping[str, Value] | None = None,
    *,
    domain: Sequence[Sequence[int | float]] | None = None,
    method: str = "spectral",
    generation: str = "documented",
    periodic: Any = None,
    grid: Float[Tensor, "*x D"] | None = None,
    t: Float[Tensor, " t"] | Float[Tensor, "b t"] | None = None,
) -> Float[Tensor, "b t *x c"]:
    """R = u_t − f(u) in physical units; parameters are numbers or `[b]`, by default the equation's.

        advection   R = u_t + β u_x
        burgers     R = u_t + u u_x − (ν/π) u_xx,  in generation "2022" with 2 u u_x
        cns1d, cns2d, cns3d, with μ_dd = 4η/3 + ζ and μ_dj = η:
            density     R = ρ_t + ∇·(ρ v)
            pressure    R = p_t + v·∇p + γ p ∇·v − (γ − 1) Σ_dj μ_dj ρ (∂_d v_j)²
            velocity    R = v_t + (v·∇) v + ∇p / ρ − Σ_d ∂_d (μ_dj ρ ∂_d v_j) / ρ
        one of your own, u_t = f(u, d, p):  R = u_t − f

    For a gas f comes from the fluxes of mass, energy and momentum (`compressible_ns` has that form) and is brought to
    the channels point by point: R_p = (γ − 1)(R_E − v·R_ρv + ½ v² R_ρ) and R_v = (R_ρv − v R_ρ) / ρ. So each channel
    has a residual in its own unit per time, and what vanishes is still the discrete conservation law. The viscosities
    are kinematic and mixed derivatives absent, as in the data; the textbook's equations do not vanish on them.

    method: "spectral" is exact for fields that the grid resolves, and rings at shocks. "finite_volume" is what a step
        of the solver tends to as dt → 0, so it vanishes with dt for the solver's data on their own grid, shocks or
        not; on smooth fields it is of second order, of first at extrema. Equations of your own have no fluxes for it.
        "finite_difference" is of fourth order, and the one for walls: there the differences are one-sided.
    periodic: whether the fields close on themselves, along all axes or along each; by default as the equation's domain.
    grid: the points, by default the cell centres of the domain; t: the times, where the equation depends on them.
    Breaks when: density or pressure is not positive (NaN).
    """
    balance = _balance(name, u, u_t, params, domain, method, generation, periodic, grid, t)
    return balance.residual().reshape(u.shape)


def residual_norm(
    name: str | Equation,
    u: Float[Tensor, "b t *x c"],
    u_t: Float[Tensor, "b t *x c"],
    params: Mapping[str, Value] | None = None,
    *,
    domain: Sequence[Sequence[int | float]] | None = None,
    method: str = "spectral",
    generation: str = "documented",
    periodic: Any = None,
    grid: Float[Tensor, "*x D"] | None = None,
    t: Float[Tensor, " t"] | Float[Tensor, "b t"] | None = None,
) -> Float[Tensor, "b t c"]:
    """‖R‖ / (‖u_t‖ + ‖transport‖ + ‖viscosity‖) over space: 0 obeys the equation, 1 is no balance at all.

    For any prediction, per sample, time and channel; the terms are those of f, and where all of them are 0 so is this.
    Of an equation of your own f is one term: ‖R‖ / (‖u_t‖ + ‖f‖).
    """
    terms = _balance(name, u, u_t, params, domain, method, generation, periodic, grid, t).terms()
    size = add_up(map(_norm, terms))
    return (_norm(add_up(terms)) / torch.where(size > 0, size, 1.0)).reshape(*u.shape[:2], -1)


def time_derivative(u: Float[Tensor, "b t *x c"], t: Float[Tensor, " _"]) -> Float[Tensor, "b t *x c"]:
    """u_t from stored frames by differences of second order, for predictions that know no time derivative.

    Only as good as frames resolve the motion: at the benchmark's spacing of 0.05, those of a gas do not.
    """
    _check_tensors(u=u, t=t)
    if len(t) < 3 or u.shape[1] != len(t):
        raise ValueError(
            f"u has {u.shape[1]} frames for {len(t)} times; expected one frame per time, and at least 3. "
            "Predict at more times."
        )
    return torch.gradient(u, spacing=(t,), dim=1, edge_order=2)[0]


class _Balance(NamedTuple):
    """An equation at given states, samples and times in one axis."""

    law: Law | Formula
    method: Method
    u: Float[Tensor, "bt *x c"]
    u_t: Float[Tensor, "bt *x c"]
    params: Mapping[str, Tensor]
    where: Mapping[str, Tensor]

    def residual(self) -> Tensor:
        return self.u_t - self._rate()

    def terms(self) -> list[Tensor]:
        """Return the terms that add up to the residual."""
        return [self.u_t, *(-self._rate(part) for part in range(self.law.parts))]

    def _rate(self, part: int | None = None) -> Tensor:
        return self.law.rate(self.method, self.u, self.params, part, self.where)


def _norm(q: Float[Tensor, "bt *x c"]) -> Float[Tensor, "bt c"]:
    return q.flatten(1, -2).norm(dim=1)


def _balance(
    name: str | Equation,
    u: Tensor,
    u_t: Tensor,
    params: Mapping[str, Value] | None,
    domain: Sequence[Sequence[int | float]] | None,
    method: str,
    generation: str,
    periodic: Any = None,
    grid: Tensor | None = None,
    t: Tensor | None = None,
) -> _Balance:
    chosen = equation(name, generation=generation)
    if chosen.law is None:
        raise ValueError(
            f"There is no residual of {chosen.name!r}. Define it with its right-hand side: "
            f"vcnef.Equation({chosen.name!r}, f)."
        )
    _check_fields(chosen, u, u_t)
    box: Sequence[Sequence[int | float]] = chosen.problem.domain
    if domain is not None:
        box = domain
    check_domain(chosen, box)
    if periodic is None:
        periodic = chosen.periodic
    closes = per_axis(periodic, chosen.problem.ndim)
    if grid is not None and not all(closes):
        spacing = spacing_of(grid)  # between walls, points may stand on them or half a cell away
    else:
        spacing = tuple((high - low) / n for (low, high), n in zip(box, u.shape[2:-1], strict=True))
    way = _method(chosen, method, spacing, closes)
    fields = u.flatten(0, 1)
    columns = {}
    for key, values in chosen.columns(params, u).items():
        columns[key] = per_sample(values.repeat_interleave(u.shape[1]), fields[..., 0])
    where = _where(chosen.name, chosen.law.needs, u, box, grid, t)
    return _Balance(chosen.law, way, fields, u_t.flatten(0, 1), columns, where)


def _method(chosen: Equation, method: str, spacing: tuple[float, ...], closes: tuple[bool, ...]) -> Method:
    """Return the way derivatives are taken, or raise an error where it cannot be so."""
    if method not in METHODS:
        raise ValueError(f"There is no method {method!r} for a residual. {suggestion(method, METHODS)}")
    if method == "finite_volume" and isinstance(chosen.law, Formula):
        raise ValueError(
            f"{chosen.name!r} is known by its right-hand side and has no fluxes for {method!r}. Use 'spectral', or "
            "'finite_difference'."
        )
    if not all(closes) and method != "finite_difference":
        raise ValueError(
            f"{method!r} takes derivatives around a period, but the fields of {chosen.name!r} lie between walls. "
            "Use 'finite_difference'."
        )
    if method == "finite_difference":
        return FiniteDifference(spacing, closes)
    return METHODS[method](spacing)


def _where(
    name: str,
    needs: Collection[str],
    u: Tensor,
    box: Sequence[Sequence[int | float]],
    grid: Tensor | None,
    t: Tensor | None,
) -> dict[str, Tensor]:
    """Return the coordinates and times that the equation depends on."""
    found = {}
    if set(needs) & set(SPACE):
        if grid is None:
            grid = cell_centres(box, u.shape[2:-1], dtype=u.dtype, device=u.device)
        points = grid.to(u)
        for axis, letter in enumerate(SPACE[: points.shape[-1]]):
            found[letter] = points[None, ..., axis]
    if "t" in needs:
        if t is None:
            raise ValueError(f"{name!r} depends on time, and t is not given. Give the times of u, t=….")
        times = torch.as_tensor(t).to(u).expand(u.shape[:2])
        found["t"] = per_sample(times.flatten(), u[:, 0, ..., 0])
    return found


def _check_tensors(**given: Any) -> None:
    for what, values in given.items():
        if not isinstance(values, Tensor):
            raise TypeError(
                f"{what} is of type {type(values).__name__}; expected a tensor. "
                f"Convert it with torch.as_tensor({what}), a labelled array with torch.as_tensor({what}.values)."
            )


def _check_fields(chosen: Equation, u: Tensor, u_t: Tensor) -> None:
    _check_tensors(u=u, u_t=u_t)
    problem, shape = chosen.problem, tuple(u.shape)
    if u.ndim != problem.ndim + 3 or shape[-1] != len(problem.channels):
        raise ValueError(
            f"u has shape {shape}; {chosen.name!r} expects samples, times, {problem.ndim} of space and "
            f"{len(problem.channels)} channels. Stack {', '.join(problem.channels)} on the last axis."
        )
    if min(shape[2:-1]) < FEWEST_CELLS:
        raise ValueError(f"u has {shape[2:-1]} points; expected at least {FEWEST_CELLS} per axis. Use a finer grid.")
    if u_t.shape != u.shape:
        raise ValueError(
            f"u_t has shape {tuple(u_t.shape)} and u {shape}; expected the same. "
            "Give the time derivative at the times and points of u."
        )
