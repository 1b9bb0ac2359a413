"""What a surrogate is asked: arrays of several forms in, checked tensors out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.arrays import as_tensor, by_name, make_grid, make_params
from vcnef.data.layout import OF_STATES, Letters, arrange, orders, read_layout, spell_layout
from vcnef.data.precision import check_not_lost
from vcnef.labels import (
    POINT,
    TIME,
    params_of,
    points_of,
    states_of,
    units_beside,
    units_of_records,
    units_of_states,
)
from vcnef.problem import SPACE, Problem
from vcnef.spelling import spell_value
from vcnef.suggest import suggestion
from vcnef.surrogate.points import UNIFORM, are_scattered, usual_points
from vcnef.surrogate.records import read_records
from vcnef.units import check_units

FAR_FEWER = 4
"""From fewer points than one in so many of those of training on, an answer means little."""


@dataclass(frozen=True, eq=False)
class Question:
    """Initial states, points, times since then and parameters, in physical units.

    Points and times are as precise as the arrays that were given: labelled ones are joined where their coordinates are
    equal, and a rounded label would lose what it stands for.
    """

    u0: Float[Tensor, "b *_ c"]
    grid: Float[Tensor, "*x D"]
    t: Float[Tensor, " t"]
    params: Float[Tensor, "b p"] | Float[Tensor, "b r p"]
    params_t: Float[Tensor, " r"] | None = None
    """Times since u0 at which parameters are known that change with time."""
    start: Any = None
    """The time of u0 on the clock of the data, where the equation depends on it."""

    @property
    def state(self) -> Float[Tensor, "b *x c"]:
        """The initial state, of a history the last frame."""
        return self.u0 if self.u0.ndim == self.grid.ndim + 1 else self.u0[:, -1]

    def tensors(self, device: torch.device, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
        """As `Surrogate.answer` takes them: on the device of the model, in its precision."""
        return tuple(each.to(device, dtype) for each in (self.u0, self.grid, self.t, self.params))


def read_question(
    problem: Problem,
    u0: Any,
    t: Any,
    params: Any,
    x: Any,
    provenance: Mapping[str, Any] | None = None,
    layout: str | None = None,
    dtype: torch.dtype = torch.float32,
    *,
    params_t: Any = None,
    window: float = inf,
    earlier: tuple[float, ...] = (),
) -> Question:
    """The question in arrays; without `x` the points are the usual ones, if the surrogate was trained on a grid.

    Parameters that are functions of time are asked at the ends of windows. `earlier` are the times before u0 of the
    other frames of its history, if it has one.
    """
    trained, given = provenance or {}, by_name(params)
    check_units(_units(problem, u0, t, given, x), problem.units, "the question", f"this surrogate of {problem.name}")
    for name, unit in units_of_records(given, params_t).items():
        check_units({TIME: unit}, problem.units, f"the times of {name}", f"this surrogate of {problem.name}")
    labelled = hasattr(u0, "dims")
    if labelled:
        if layout is not None:
            raise ValueError(f"layout is {layout!r}, but a labelled u0 names its axes itself. Leave layout out.")
        given = {**params_of(problem, u0), **given}
        array = states_of(problem, u0, f"this surrogate of {problem.name}", earlier)
        x = points_of(array, SPACE[: problem.ndim]) if x is None else x
        u0 = array.values
    if x is None:
        check_uniform(problem, trained.get("grid"))
    # In double precision until it is known that nothing is lost.
    values = as_tensor(u0, "u0", _precision(u0) if dtype == torch.float32 else dtype)
    if layout is not None:
        letters = read_layout(layout) if earlier else read_layout_of_states(layout)
        values = arrange(values, letters, "u0")
    known, scattered = _known_lengths(problem, trained), are_scattered(x, problem.ndim)
    if earlier:
        states = _histories(problem, values, 1 + len(earlier), scattered=scattered)
    else:
        states = _states(problem, values, known, scattered=scattered)
        if x is None and layout is None and not labelled:
            _check_order(values, states, known)
    if not states.numel():
        raise ValueError(f"u0 has shape {tuple(states.shape)} and nothing in it. Give at least one initial state.")
    if states.dtype != dtype:
        for name, field in zip(problem.channels, states.unbind(dim=-1), strict=True):
            check_not_lost(float(field.abs().max()), f"The {name} of u0")
        states = states.to(dtype)
    times = _times(t)
    given, record_t = read_records(problem, given, params_t, float(times.max()), window)
    table = _params(problem, given, len(states), record_t, dtype)
    if len(states) == 1:
        states = states.expand(len(table), *states.shape[1:])
    sides = tuple(states.shape[1 + bool(earlier) : -1])
    grid = usual_points(problem, trained, sides) if x is None else read_grid(problem, x, sides)
    return Question(states, grid, times, table, record_t if table.ndim == 3 else None)


def _units(problem: Problem, u0: Any, t: Any, params: Mapping[str, Any], x: Any) -> dict[str, str]:
    """Everything that is noted of units; what is given beside u0 replaces what its labels say."""
    noted = units_of_states(problem, u0) if hasattr(u0, "dims") else {}
    replaced = {*params, *(() if x is None else SPACE)}
    return {name: unit for name, unit in noted.items() if name not in replaced} | units_beside(t, x, params)


def read_layout_of_states(layout: Any) -> Letters:
    """Return the letters of a layout without times, which states have not."""
    letters = read_layout(layout, needed=("x",))
    if "t" in letters:
        raise ValueError(
            f"layout is {layout!r}, with times; u0 is at one time. Select it, and leave t out: "
            f"layout={spell_layout([letter for letter in letters if letter != 't'])!r}."
        )
    return letters


def _known_lengths(problem: Problem, trained: Mapping[str, Any]) -> dict[str, int]:
    """The lengths of the axes of an initial state as they were in training."""
    sides = trained.get("resolution", ())
    points = dict(zip(SPACE, sides, strict=False)) if len(sides) == problem.ndim else {}
    return {"c": len(problem.channels)} | points


def _check_order(u0: Tensor, states: Float[Tensor, "b *x c"], known: Mapping[str, int]) -> None:
    """Refuse states on unlikely points where another order of the axes has those of training."""
    trained = [known[axis] for axis in SPACE if axis in known]
    sides = tuple(states.shape[1:-1])
    if len(trained) != len(sides) or all(_is_likely(side, side0) for side, side0 in zip(sides, trained, strict=True)):
        return
    if other := next(orders(u0.shape, known, OF_STATES), None):
        read_as = " × ".join(map(str, sides))
        raise ValueError(
            f"u0 has shape {tuple(u0.shape)}: read as usual, {len(states)} states on {read_as} points, while the "
            f"surrogate was trained on {' × '.join(map(str, trained))}; as {spell_layout(other)!r} it has these. "
            f"Give layout={spell_layout(other)!r} if that is the order of its axes, and otherwise the points, x=...."
        )


def _is_likely(side: int, trained: int) -> bool:
    """Whether a surrogate may be asked on so many points: some times as many, or one in two to four."""
    return side % trained == 0 or (trained % side == 0 and side * FAR_FEWER >= trained)


def _histories(problem: Problem, u0: Tensor, frames: int, *, scattered: bool) -> Float[Tensor, "b h *x c"]:
    """`[b h *x c]`, the frames that an answer begins with, of an array that may lack the sample or channel axis."""
    space = (POINT,) if scattered else SPACE[: problem.ndim]
    channels, rank = len(problem.channels), len(space)
    complete = u0[..., None] if channels == 1 and (u0.shape[-1:] != (1,) or u0.ndim == rank + 1) else u0
    complete = complete[None] if complete.ndim == rank + 2 else complete
    if complete.ndim != rank + 3 or complete.shape[1] != frames or complete.shape[-1] != channels:
        raise ValueError(
            f"u0 has shape {tuple(u0.shape)}; this surrogate of {problem.name} remembers {frames} frames and expects "
            f"[sample, {frames}, {', '.join(space)}, {channels}], the initial state last. Give the frames before it, "
            "or layout=... if its axes are in another order."
        )
    return complete


def _states(problem: Problem, u0: Tensor, known: Mapping[str, int], *, scattered: bool) -> Float[Tensor, "b *x c"]:
    """`[b *x c]` of an array that may lack the sample axis, or the channel axis of a scalar field."""
    space = (POINT,) if scattered else SPACE[: problem.ndim]
    channels, rank = len(problem.channels), len(space)
    last = u0.shape[-1] if u0.ndim else 0
    if u0.ndim == rank + 2 and last == channels:
        return u0
    if u0.ndim == rank + 1 and last == channels:
        return u0[None]
    if channels == 1 and u0.ndim == rank + 1:
        return u0[..., None]
    if channels == 1 and u0.ndim == rank:
        return u0[None, ..., None]
    other = next(orders(u0.shape, known, OF_STATES), None)
    fix = "Add or reorder axes." if other is None else f"Give layout={spell_layout(other)!r}, if that is their order."
    raise ValueError(
        f"u0 has shape {tuple(u0.shape)}; this surrogate of {problem.name} expects [sample, {', '.join(space)}, "
        f"{channels}] with the channels {', '.join(problem.channels)} last. {fix}"
    )


def check_names(problem: Problem, given: Mapping[str, Any]) -> None:
    """Whether all that is given are parameters of the problem."""
    for name in given:
        if name not in problem.parameters:
            known = suggestion(str(name), problem.parameters)
            raise ValueError(f"There is no parameter {name!r} of {problem.name}. {known}")


def _params(
    problem: Problem, given: Mapping[str, Any], samples: int, times: Tensor | None, dtype: torch.dtype
) -> Float[Tensor, "b p"] | Float[Tensor, "b r p"]:
    check_names(problem, given)
    values = {}
    for name in problem.parameters:
        low, high = problem.ranges.get(name, (0.0, 1.0))
        if name not in given and low != high:
            trained = f" (trained on {low:g} to {high:g})" if name in problem.ranges else ""
            raise ValueError(f"The parameter {name}{trained} is missing. Pass params={{'{name}': …}}.")
        # A surrogate of a single parameter value needs not be told it.
        values[name] = given.get(name, low)
    if samples == 1:
        samples = max([1, *(_samples_of(as_tensor(value, name)) for name, value in values.items())])
    return make_params(values, samples, None if times is None else len(times), dtype)[1]


def _samples_of(values: Tensor) -> int:
    return len(values) if values.ndim == 2 else values.numel()


def check_uniform(problem: Problem, trained: str | None) -> None:
    """Whether points need not be told; a surrogate from before that was known is believed."""
    if trained not in (None, UNIFORM):
        raise ValueError(
            f"This surrogate of {problem.name} was trained on {trained}, so the shape of u0 does not say where its "
            "points are. Pass their coordinates as x."
        )


def read_grid(problem: Problem, x: Any, shape: tuple[int, ...]) -> Float[Tensor, "*x D"]:
    grid = make_grid(x, shape)[0]
    if grid.shape[-1] != problem.ndim:
        raise ValueError(f"x has {grid.shape[-1]} coordinates per point; {problem.name} has {problem.ndim} space axes.")
    return grid.to(_precision(x))


def _times(t: Any) -> Float[Tensor, " t"]:
    times = torch.atleast_1d(as_tensor(t, "t", _precision(t)))
    if times.ndim != 1 or not times.numel() or not bool((times.isfinite() & (times >= 0)).all()):
        raise ValueError(f"t is {spell_value(t)}; expected one or more finite times since u0, none of them negative.")
    return times


def _precision(given: Any) -> torch.dtype:
    """Double for arrays of it; plain numbers are single, as the labels of data are."""
    arrays = given if isinstance(given, list | tuple) else [given]
    double = any(str(getattr(each, "dtype", "")).endswith("float64") for each in arrays)
    return torch.float64 if double else torch.float32
