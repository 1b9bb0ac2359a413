"""What a surrogate is asked: arrays of several forms in, checked tensors out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.arrays import as_tensor, by_name, make_grid, make_params
from vcnef.data.labelled import CHANNEL, POINT, SAMPLE, SYNONYMS, TIME, join, points_of
from vcnef.data.layout import OF_STATES, Letters, arrange, orders, read_layout, spell_layout
from vcnef.problem import SPACE, Problem
from vcnef.suggest import suggestion
from vcnef.surrogate.points import UNIFORM, are_scattered, usual_points
from vcnef.surrogate.records import read_records

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
    labelled = hasattr(u0, "dims")
    if labelled:
        if layout is not None:
            raise ValueError(f"layout is {layout!r}, but a labelled u0 names its axes itself. Leave layout out.")
        given = {**_labelled_params(problem, u0), **given}
        array = _labelled_states(problem, u0, earlier)
        x = points_of(array, SPACE[: problem.ndim]) if x is None else x
        u0 = array.values
    if x is None:
        check_uniform(problem, trained.get("grid"))
    values = as_tensor(u0, "u0", dtype)
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
    times = _times(t)
    given, record_t = read_records(problem, given, params_t, float(times.max()), window)
    table = _params(problem, given, len(states), record_t, dtype)
    if len(states) == 1:
        states = states.expand(len(table), *states.shape[1:])
    sides = tuple(states.shape[1 + bool(earlier) : -1])
    grid = usual_points(problem, trained, sides) if x is None else read_grid(problem, x, sides)
    return Question(states, grid, times, table, record_t if table.ndim == 3 else None)


def _labelled_params(problem: Problem, u0: Any) -> dict[str, Any]:
    known = u0.variables if hasattr(u0, "data_vars") else u0.coords
    # Of what changes with time, the value at one time says too little.
    named = [name for name in problem.parameters if name in known and name not in problem.varying]
    return {name: u0[name].values for name in named}


def _labelled_states(problem: Problem, u0: Any, earlier: tuple[float, ...]) -> Any:
    """The labelled array `[sample, *x, channel]` of one in any order, or of a dataset; of a history, with its times."""
    array = u0.rename({dim: SYNONYMS[dim] for dim in u0.dims if dim in SYNONYMS})
    if hasattr(array, "data_vars"):
        array = _field_of(array)
    remembered = (TIME,) if earlier and TIME in array.dims else ()
    if remembered:
        _check_gaps(array, earlier)
    elif array.sizes.get(TIME) == 1:
        array = array.isel({TIME: 0})
    axes = SPACE[: problem.ndim]
    space = (POINT,) if POINT in array.dims else axes
    missing = [dim for dim in space if dim not in array.dims]
    unknown = [str(dim) for dim in array.dims if dim not in (SAMPLE, *remembered, *space, CHANNEL)]
    if missing or unknown:
        raise ValueError(
            f"u0 has the dimensions {tuple(array.dims)}; this surrogate of {problem.name} expects {SAMPLE}, "
            f"{', '.join(axes)} and {CHANNEL}. Select one time, or rename them with u0.rename(...)."
        )
    complete = array.expand_dims([dim for dim in (SAMPLE, CHANNEL) if dim not in array.dims])
    if CHANNEL in complete.coords:
        names = [str(name) for name in complete[CHANNEL].values]
        if set(names) != set(problem.channels) or len(names) != len(problem.channels):
            raise ValueError(
                f"u0 has the channels {', '.join(names)}; this surrogate of {problem.name} expects "
                f"{', '.join(problem.channels)}. Rename or add the fields that differ."
            )
        complete = complete.isel({CHANNEL: [names.index(name) for name in problem.channels]})
    return complete.transpose(SAMPLE, *remembered, *space, CHANNEL)


def _check_gaps(array: Any, earlier: tuple[float, ...]) -> None:
    """Whether labelled times are as far apart as the frames of training."""
    if TIME not in array.coords or array.sizes[TIME] != 1 + len(earlier):
        return
    gaps, expected = np.diff(array[TIME].values.astype(float)), earlier[-1]
    if not np.allclose(gaps, expected, rtol=1e-3):
        raise ValueError(
            f"The frames of u0 are {gaps.min():.4g} to {gaps.max():.4g} apart; expected {expected:.4g}, as in "
            "training. Give the frames at such times before u0."
        )


def _field_of(dataset: Any) -> Any:
    """One array with a channel dimension out of the variables that live in space."""
    fields = {name: each for name, each in dataset.data_vars.items() if {*SPACE, POINT} & {*each.dims}}
    if not fields:
        there = ", ".join(f"{name} over {tuple(each.dims)}" for name, each in dataset.data_vars.items())
        raise ValueError(
            f"u0 is a dataset without a variable over {', '.join(SPACE)} or {POINT}; it has {there or 'none at all'}. "
            "Rename the dimensions with u0.rename(...)."
        )
    field = join(fields)
    return field if CHANNEL in field.coords or CHANNEL in field.dims else field.expand_dims({CHANNEL: [field.name]})


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
        raise ValueError(f"t is {t!r}; expected one or more finite times since u0, none of them negative.")
    return times


def _precision(given: Any) -> torch.dtype:
    """Double for arrays of it; plain numbers are single, as the labels of data are."""
    arrays = given if isinstance(given, list | tuple) else [given]
    double = any(str(getattr(each, "dtype", "")).endswith("float64") for each in arrays)
    return torch.float64 if double else torch.float32
