"""Labelled states, times, points and parameters in the units of a model or an equation, where the factor is certain."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vcnef.labels import CHANNEL, TIME, synonyms_of, unit_beside, units_of_states
from vcnef.problem import SPACE, Problem
from vcnef.units import UNIT_KEYS, Conversion, along_all_axes, conversions, factors_of, noted_unit

NUMBERS = "fiu"
"""Kinds of NumPy's types that are multiplied; others are refused where they are read."""


class Asked(NamedTuple):
    """What a model is asked, as `Surrogate.predict` takes it."""

    u0: Any
    t: Any
    params: Any
    x: Any = None
    params_t: Any = None


def convert_question(problem: Problem, asked: Asked, whose: str) -> tuple[Asked, list[str]]:
    """Return a question with all that notes other units in those of the problem, and a sentence for each name.

    What has no certain factor, or notes no unit, stays as it is.
    """
    u0, t, params, x, params_t = asked
    said: list[str] = []
    if hasattr(u0, "dims"):
        replaced: set[str] = set()
        if isinstance(params, Mapping):
            replaced.update(params)
        if x is not None:
            replaced.update(SPACE)
        u0, said = convert_states(problem, u0, whose, replaced)
        if said and TIME in conversions(units_of_states(problem, asked.u0), problem.units) and not unit_beside(TIME, t):
            said.append(f"t notes no unit and is taken to be in {problem.units[TIME]!r}, unlike the time of u0.")
    t = _convert_array(problem, TIME, t, TIME, whose, said)
    params_t = _convert_array(problem, TIME, params_t, "params_t", whose, said)
    if isinstance(params, Mapping):
        params = dict(params)
        for name, given in params.items():
            params[name] = _convert_parameter(problem, name, given, whose, said)
    return Asked(u0, t, params, _convert_points(problem, x, whose, said), params_t), said


def convert_states(problem: Problem, u0: Any, whose: str, replaced: Collection[str] = ()) -> tuple[Any, list[str]]:
    """Return labelled states with their parameters and coordinates in the units of a problem, and a sentence for each.

    Names in `replaced` are given in another place, so that their labels do not count.
    """
    array = u0.rename(synonyms_of(u0))
    noted = units_of_states(problem, array)
    axes = [axis for axis in SPACE[: problem.ndim] if axis in array.coords]
    found = conversions(along_all_axes(noted, axes), problem.units)
    for name in replaced:
        found.pop(name, None)
    if not found or not _can_be_multiplied(problem, array, found):
        return u0, []
    converted = _convert_fields(problem, array, noted, found)
    said = []
    for name, each in found.items():
        if name in converted.coords:
            converted = converted.assign_coords({name: _variable(converted[name], each)})
        said.append(each.describe(f"u0's {name}", whose))
    return converted.assign_attrs(_in_units(converted.attrs, found, problem.ndim)), said


def _can_be_multiplied(problem: Problem, array: Any, found: Collection[str]) -> bool:
    """Return whether states hold numbers, and as many channels as the problem where they do not name them."""
    if not hasattr(array, "data_vars") and not _are_numbers(array):
        return False
    for name, each in getattr(array, "variables", array.coords).items():
        if (name in found or (CHANNEL in each.dims and each.ndim > 1)) and not _are_numbers(each):
            return False
    return array.sizes.get(CHANNEL) in (None, len(_channels_of(problem, array)))


def _are_numbers(array: Any) -> bool:
    return array.dtype.kind in NUMBERS


def _convert_fields(problem: Problem, array: Any, noted: Mapping[str, str], found: Mapping[str, Conversion]) -> Any:
    """Return the array, or the dataset, with its fields multiplied and all of their units noted beside them."""
    known = dict(noted)
    for name, each in found.items():
        known[name] = each.into
    channels = _channels_of(problem, array)
    if set(channels).isdisjoint(found) and not hasattr(array, "data_vars"):
        return array
    if "units" in array.coords:
        # They are in the attributes from here on.
        array = array.drop_vars("units")
    if not hasattr(array, "data_vars"):
        return _multiply_channels(array, channels, known, found)
    fields = {}
    for name, each in array.data_vars.items():
        if CHANNEL in each.dims:
            fields[name] = _multiply_channels(each, channels, known, found)
        elif name in found:
            fields[name] = _variable(each, found[name])
        elif name in known:
            fields[name] = each.assign_attrs(units=known[name])
    return array.assign(fields)


def _channels_of(problem: Problem, array: Any) -> list[str]:
    """The channels of states in their order: as they are named, or else those of the problem."""
    if CHANNEL in array.coords and array[CHANNEL].ndim == 1:
        return array[CHANNEL].values.astype(str).tolist()
    return list(problem.channels)


def _multiply_channels(
    array: Any, channels: Sequence[str], known: Mapping[str, str], found: Mapping[str, Conversion]
) -> Any:
    """Return an array with each of its channels multiplied, and their units as a list."""
    # A single channel needs no axis; of several without one, the shape is refused where it is read.
    factors = np.array(factors_of(channels, found))
    by = factors[0]
    if CHANNEL in array.dims:
        shape = [1] * array.ndim
        shape[array.dims.index(CHANNEL)] = len(channels)
        by = factors.reshape(shape)
    converted = array.copy(data=array.values.astype("f8") * by)
    converted.attrs = _without_units(array.attrs) | {"units": [known.get(name, "") for name in channels]}
    return converted


def _variable(array: Any, conversion: Conversion) -> tuple[Any, np.ndarray, dict[Any, Any]]:
    """Return dimensions, values and attributes of one that was multiplied."""
    values = np.asarray(array.values.astype("f8") * conversion.factor)
    return array.dims, values, _without_units(array.attrs) | {"units": conversion.into}


def _without_units(attributes: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in attributes.items() if str(key).lower() not in UNIT_KEYS}


def _in_units(attributes: Mapping[Any, Any], found: Mapping[str, Conversion], ndim: int) -> dict[Any, Any]:
    """The domain that data note of themselves, which is in the units of their points."""
    ends = np.asarray(attributes.get("domain", ()))
    if ends.dtype.kind not in NUMBERS or ends.size != 2 * ndim:
        return {}
    factors = np.array(factors_of(SPACE[:ndim], found))
    return {"domain": (ends.reshape(ndim, 2) * factors[:, None]).ravel()}


def _convert_array(problem: Problem, name: str, array: Any, what: str, whose: str, said: list[str]) -> Any:
    """Return one labelled array in the unit that a problem has for a name; a sentence of it joins those `said`."""
    if not hasattr(array, "assign_coords") or hasattr(array, "data_vars") or not _are_numbers(array):
        return array
    unit = unit_beside(name, array)
    found = conversions({name: unit}, problem.units) if unit else {}
    if not found:
        return array
    said.append(found[name].describe(what, whose))
    dims, values, attributes = _variable(array, found[name])
    # Its own coordinate, if it has one, holds the old values.
    others = array.drop_vars(name, errors="ignore").coords
    return type(array)(values, coords=others, dims=dims, name=array.name, attrs=attributes)


def _convert_parameter(problem: Problem, name: str, given: Any, whose: str, said: list[str]) -> Any:
    """Return a parameter in its unit, and the times of its record, if it has some, in theirs."""
    for time in (TIME, "time"):
        if not hasattr(given, "assign_coords") or time not in given.coords or not _are_numbers(given[time]):
            continue
        unit = noted_unit(given[time].attrs)
        found = conversions({TIME: unit}, problem.units) if unit else {}
        if found:
            said.append(found[TIME].describe(f"{time} of the parameter {name}", whose))
            given = given.assign_coords({time: _variable(given[time], found[TIME])})
    return _convert_array(problem, name, given, f"the parameter {name}", whose, said)


def _convert_points(problem: Problem, x: Any, whose: str, said: list[str]) -> Any:
    """Return points in their unit; of several axes all note theirs, or none is certain."""
    if not isinstance(x, list | tuple):
        return _convert_array(problem, SPACE[0], x, SPACE[0], whose, said)
    sentences: list[str] = []
    converted = []
    for axis, line in zip(SPACE, x, strict=False):
        if not unit_beside(axis, line):
            return x
        converted.append(_convert_array(problem, axis, line, axis, whose, sentences))
    said += sentences
    return converted
