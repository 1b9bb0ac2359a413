"""The equations by name, and `solve`, the border at which a user's arrays are checked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.checks import check_plain
from vcnef.conversion import Asked, convert_question
from vcnef.labels import POINT, params_of, states_of, units_beside, units_of_states
from vcnef.pde.advection import advection
from vcnef.pde.burgers import burgers
from vcnef.pde.compressible_ns import compressible_ns
from vcnef.pde.equation import OWN, OWN_EQUATIONS, Equation
from vcnef.pde.gas import VACUUM
from vcnef.problem import SPACE
from vcnef.suggest import suggestion
from vcnef.units import check_units

EQUATIONS: Mapping[str, Callable[[str], Equation]] = MappingProxyType(
    {
        "advection": advection,
        "burgers": burgers,
        "cns1d": partial(compressible_ns, 1),
        "cns2d": partial(compressible_ns, 2),
        "cns3d": partial(compressible_ns, 3),
    }
)

GENERATIONS = ("documented", "2022")

FEWEST_CELLS = 4
"""A limited slope needs two neighbours and a face needs two slopes."""


def equation(name: str | Equation, *, generation: str = "documented") -> Equation:
    """Return the equation of that name; generation "2022" has the accidents of the benchmark's first files.

    >>> equation("burgers").problem.parameters
    ('nu',)
    """
    if isinstance(name, Equation):
        return name
    if not is_known(name):
        raise ValueError(f"There is no equation {name!r}. {suggestion(name, [*EQUATIONS, *OWN_EQUATIONS])}")
    known = GENERATIONS[:1]
    if name in EQUATIONS:
        known = GENERATIONS
    if generation not in known:
        raise ValueError(f"There is no generation {generation!r} of {name!r}. {suggestion(generation, known)}")
    if name in OWN_EQUATIONS and name not in EQUATIONS:
        return OWN_EQUATIONS[name]
    return EQUATIONS[name](generation)


def equations() -> dict[str, Equation]:
    """Return all equations by name: those of the benchmark as they are documented, and your own."""
    return {name: equation(name) for name in (*EQUATIONS, *OWN_EQUATIONS)}


def is_known(name: str) -> bool:
    """Return whether there is an equation of that name, the package's or your own."""
    return name in EQUATIONS or name in OWN_EQUATIONS


def noted_generation(attributes: Mapping[str, Any]) -> str:
    """Return the generation of the equation that data obey, as it is noted beside them, or "documented"."""
    noted = attributes.get("generation")
    if noted not in GENERATIONS:
        return "documented"
    return noted


def solve(
    name: str | Equation,
    u0: Any,
    *,
    t: Any,
    params: Any = None,
    domain: Sequence[Sequence[int | float]] | None = None,
    generation: str = "documented",
) -> Float[Tensor, "b t *x c"]:
    """Run the classical solver on given initial states `u0 [b *x c]` at time 0; returns the states at times `t`.

    `u0` and `t` are arrays of any kind: NumPy, torch, or labelled ones. The axes and channels of a labelled u0 are
    taken by their names, and its coordinates and parameters are those that it says, or the equation refuses it; units
    other than the equation's are converted with a warning where the factor is certain.
    `params` are numbers or one value per sample, by name; the equation's defaults stand in for those left out.
    """
    chosen = equation(name, generation=generation)
    asked, said = convert_question(chosen.problem, Asked(u0, t, params), f"the equation {chosen.name!r}")
    u0, t, params = asked.u0, asked.t, asked.params
    for sentence in said:
        warnings.warn(sentence, UserWarning, stacklevel=2)
    if hasattr(u0, "dims"):
        box: Sequence[Sequence[int | float]] = chosen.problem.domain
        if domain is not None:
            box = domain
        u0, params = _unlabelled(chosen, u0, params or {}, box)
    check_units(units_beside(t, None, params), chosen.problem.units, "the question", f"the equation {chosen.name!r}")
    if isinstance(params, Mapping):
        params = dict(params)
        for name, value in params.items():
            if hasattr(value, "dims"):
                params[name] = np.asarray(value)
    states = _real(u0, "u0")
    _check_states(chosen, states)
    times = _real(t, "t").to("cpu", torch.float64)
    _check_times(times)
    if domain is not None:
        check_domain(chosen, domain)
    return chosen.solve(states, times, params, domain=domain)


def _unlabelled(
    chosen: Equation, u0: Any, params: Mapping[str, Any], domain: Sequence[Sequence[int | float]]
) -> tuple[Any, dict[str, Any]]:
    """Return the states `[b *x c]` and parameters of a labelled array with the equation's names and points."""
    problem, whose = chosen.problem, f"the equation {chosen.name!r}"
    ordered = states_of(problem, u0, whose)
    if POINT in ordered.dims:
        raise ValueError(f"u0 lies on scattered points; {whose} is solved on cells. Give it on a uniform grid.")
    noted = {name: unit for name, unit in units_of_states(problem, u0).items() if name not in params}
    check_units(noted, problem.units, "u0", whose)
    check_domain(chosen, domain)
    for axis, (low, high) in zip(SPACE, domain, strict=False):
        if axis in ordered.coords:
            _check_points(axis, ordered[axis].values, low, high)
    beside = {name: torch.as_tensor(np.array(each, dtype="f8")) for name, each in params_of(problem, u0).items()}
    return ordered.values, {**beside, **params}


def _check_points(axis: str, line: np.ndarray, low: float, high: float) -> None:
    """Refuse points that are not one in each cell of the domain, in their order."""
    cell = (high - low) / len(line)
    offsets = line - (low + cell * (np.arange(len(line)) + 0.5))
    # Points may lie anywhere in their cells, as at their left ends, but equally in all of them.
    if not (np.abs(offsets) < 0.75 * cell).all() or np.ptp(offsets) > 0.01 * cell:
        raise ValueError(
            f"u0 is given at {len(line)} points of {axis} from {line[0]:g} to {line[-1]:g}; expected one in each of as "
            f"many equal cells from {low:g} to {high:g}. Give the domain of u0, domain=((low, high), ...), or its "
            "values at such points."
        )


def _real(array: Any, what: str) -> Tensor:
    """Return a tensor of any array of real numbers, of single precision where that holds them."""
    if isinstance(array, Tensor):
        check_plain(array, what)
        if array.is_complex():
            raise ValueError(_not_real(what, array.dtype))
        if array.dtype == torch.float64:
            return array
        return array.to(torch.float32)
    given = np.asarray(array)
    if given.dtype.kind not in "fiub":
        raise ValueError(_not_real(what, given.dtype))
    dtype = "f4"
    if given.dtype.kind == "f" and given.itemsize > 4:
        dtype = "f8"
    # A copy: torch takes no array that is read backwards, or in another order of bytes.
    return torch.from_numpy(np.array(given, dtype=dtype))


def _not_real(what: str, dtype: object) -> str:
    return f"{what} is of type {dtype}; expected real numbers. Give an array of them."


def check_domain(chosen: Equation, domain: Sequence[Sequence[int | float]]) -> None:
    """Raise an error unless the axes are as many as the equation has, and each those of a box."""
    if len(domain) != chosen.problem.ndim:
        raise ValueError(
            f"The domain has {len(domain)} axes; {chosen.name!r} has {chosen.problem.ndim}. "
            f"Give one (low, high) pair per axis, e.g. {chosen.problem.domain}."
        )
    for axis in domain:
        if np.shape(axis) != (2,):
            raise ValueError(f"The domain has the axis {axis}; expected a (low, high) pair for each axis.")
        low, high = axis
        if not 0 < high - low < inf:
            raise ValueError(f"The domain has the axis ({low}, {high}); expected finite ends, the lower one first.")


def _check_states(chosen: Equation, u0: Tensor) -> None:
    problem, shape = chosen.problem, tuple(u0.shape)
    if u0.ndim != problem.ndim + 2:
        raise ValueError(
            f"u0 has {u0.ndim} axes {shape}; {chosen.name!r} expects {problem.ndim + 2}: "
            f"samples, {problem.ndim} of space, channels. Add what is missing, e.g. u0[..., None] for a scalar field."
        )
    if shape[-1] != len(problem.channels):
        raise ValueError(
            f"u0 has {shape[-1]} channels on its last axis; {chosen.name!r} expects {len(problem.channels)}. "
            f"Stack them in the order {', '.join(problem.channels)}."
        )
    if not len(u0):
        raise ValueError(f"u0 has shape {shape}, which is no sample; expected at least one. Give some initial states.")
    if min(shape[1:-1]) < FEWEST_CELLS:
        raise ValueError(
            f"u0 has {shape[1:-1]} cells; expected at least {FEWEST_CELLS} along each axis. Use a finer grid."
        )
    if not torch.isfinite(u0).all():
        count = int((~torch.isfinite(u0)).sum())
        raise ValueError(f"u0 has {count} values that are not finite. Remove or repair those samples first.")
    for channel, least in (("density", 0.0), ("pressure", VACUUM)):
        if channel in problem.channels and chosen.generation != OWN:
            smallest = float(u0[..., problem.channels.index(channel)].min())
            if smallest <= least:
                raise ValueError(
                    f"The {channel} of u0 goes down to {smallest:.4g}; expected more than {least:g}. "
                    f"Check the channel order, {', '.join(problem.channels)}, and take other units if it is right."
                )


def _check_times(t: Tensor) -> None:
    if t.ndim != 1 or len(t) == 0:
        raise ValueError(f"t has shape {tuple(t.shape)}; expected a list of output times. Give e.g. t=[0.0, 0.5, 1.0].")
    if not torch.isfinite(t).all() or t[0] < 0 or (t.diff() <= 0).any():
        raise ValueError(
            f"Output times run from {t[0]:.4g} to {t[-1]:.4g} and are not finite, ascending and from 0 on. "
            "Sort them, drop repeated ones, and count time from the state u0."
        )
