"""Labelled arrays (xarray): the names of their dimensions, and states, channels and units by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vcnef.problem import SPACE, Problem
from vcnef.units import noted_unit, units_of_channels

SAMPLE, TIME, CHANNEL = "sample", "t", "channel"
POINT = "point"
"""The one space dimension of scattered points, over which x, y and z are coordinates."""
SYNONYMS = {
    "n": SAMPLE, "b": SAMPLE, "batch": SAMPLE, "trajectory": SAMPLE, "time": TIME,
    "c": CHANNEL, "channels": CHANNEL, "field": CHANNEL, "variable": CHANNEL,
}  # fmt: skip


def states_of(problem: Problem, u0: Any, whose: str, earlier: tuple[float, ...] = ()) -> Any:
    """The labelled array `[sample, *x, channel]` of one in any order, or of a dataset.

    Of a history, whose other frames are `earlier` by these times, it is `[sample, t, *x, channel]`.
    """
    array = u0.rename({dim: SYNONYMS[dim] for dim in u0.dims if dim in SYNONYMS})
    if hasattr(array, "data_vars"):
        array = _state_of(array)
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
            f"u0 has the dimensions {tuple(array.dims)}; {whose} expects {SAMPLE}, "
            f"{', '.join(axes)} and {CHANNEL}. Select one time, or rename them with u0.rename(...)."
        )
    complete = array.expand_dims([dim for dim in (SAMPLE, CHANNEL) if dim not in array.dims])
    if CHANNEL in complete.coords:
        names = [str(name) for name in complete[CHANNEL].values]
        if set(names) != set(problem.channels) or len(names) != len(problem.channels):
            raise ValueError(
                f"u0 has the channels {', '.join(names)}; {whose} expects "
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


def _state_of(dataset: Any) -> Any:
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


def units_of_states(problem: Problem, u0: Any) -> dict[str, str]:
    """The units that labelled states note, by the names of the problem."""
    named = CHANNEL in u0.coords and u0[CHANNEL].ndim == 1
    channels = [str(name) for name in u0[CHANNEL].values] if named else problem.channels
    return units_of(u0, channels, problem.parameters)


def params_of(problem: Problem, u0: Any) -> dict[str, Any]:
    """The parameters that labelled states bring along; of those that change with time one value says too little."""
    known = u0.variables if hasattr(u0, "data_vars") else u0.coords
    return {name: u0[name] for name in problem.parameters if name in known and name not in problem.varying}


def points_of(array: Any, space: Sequence[str]) -> tuple[np.ndarray, ...] | np.ndarray | None:
    """The coordinates along each axis, or of scattered points `[point, axis]`; None where there are none at all."""
    known = [axis for axis in space if axis in array.coords]
    missing = [axis for axis in space if axis not in known]
    if known and missing:
        raise ValueError(
            f"The labelled array has coordinates for {', '.join(known)}, but none for {', '.join(missing)}. "
            f"Add them with array.assign_coords({missing[0]}=...), or leave out all with array.drop_vars({known})."
        )
    lines = tuple(array[axis].values for axis in known)
    return (np.stack(lines, axis=-1) if POINT in array.dims else lines) if known else None


def join(fields: Mapping[Any, Any]) -> Any:
    """One array with the fields as its channels. One alone stays as it is, for it may have a channel dimension."""
    import xarray as xr

    if len(fields) == 1:
        return next(iter(fields.values()))
    if several := [str(name) for name, each in fields.items() if each.sizes.get(CHANNEL, 1) > 1]:
        raise ValueError(
            f"the dataset has several channels in {', '.join(several)} and other fields beside. Select one variable, "
            f"or split it by to_dataset(dim={CHANNEL!r})."
        )
    index = xr.IndexVariable(CHANNEL, [str(name) for name in fields])
    return xr.concat([each.rename(None) for each in fields.values()], dim=index, coords="minimal", compat="override")


def units_of(labelled: Any, channels: Sequence[str], parameters: Iterable[str]) -> dict[str, str]:
    """The units that labelled data note, by the names of channels, parameters and coordinates."""
    synonyms = synonyms_of(labelled)
    noted = {synonyms.get(name, str(name)): noted_unit(each.attrs) for name, each in labelled.coords.items()}
    if hasattr(labelled, "data_vars"):
        noted |= {str(name): noted_unit(each.attrs) for name, each in labelled.data_vars.items()}
        whole = [each for each in labelled.data_vars.values() if CHANNEL in each.rename(synonyms_of(each)).dims]
    else:
        whole = [labelled]
    if "units" in labelled.coords and labelled["units"].size == len(channels):
        noted |= dict(zip(channels, np.atleast_1d(labelled["units"].values), strict=True))
    for each in whole:
        noted |= units_of_channels(each.attrs, channels)
    known = (*channels, *parameters, TIME, *SPACE)
    return {name: str(unit) for name, unit in noted.items() if unit and name in known}


def synonyms_of(labelled: Any) -> dict[Any, str]:
    """Our names of its dimensions, by other ones; of dimensions alone, for c may be the speed of waves."""
    return {name: SYNONYMS[name] for name in labelled.dims if name in SYNONYMS}


def units_beside(t: Any, x: Any, params: Any) -> dict[str, str]:
    """The units of times, points and parameters that are given as labelled arrays themselves."""
    lines = x if isinstance(x, list | tuple) else [x]
    arrays = {**dict(zip(SPACE, lines, strict=False)), **(params if isinstance(params, Mapping) else {}), TIME: t}
    noted = {name: unit_beside(name, each) for name, each in arrays.items()}
    return {name: unit for name, unit in noted.items() if unit}


def units_of_records(params: Any, params_t: Any) -> dict[str, str]:
    """The units of the times at which parameters are recorded, by the names of the records."""
    noted = {"params_t": noted_unit(getattr(params_t, "attrs", None) or {})}
    for name, each in (params if isinstance(params, Mapping) else {}).items():
        for time in (TIME, "time"):
            if hasattr(each, "dims") and time in each.coords:
                noted[name] = noted_unit(each[time].attrs)
    return {name: unit for name, unit in noted.items() if unit}


def unit_beside(name: str, array: Any) -> str | None:
    """The unit of a labelled array, which its own coordinate may note in its place."""
    unit = noted_unit(getattr(array, "attrs", None) or {})
    own = getattr(array, "coords", {})
    return noted_unit(own[name].attrs) if unit is None and hasattr(array, "dims") and name in own else unit
