"""Labelled arrays (xarray): names of dimensions, coordinates and parameters, in and out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from vcnef.data.arrays import (
    Domain,
    by_name,
    from_arrays,
    note_periodic,
    noted_periodic,
    usual_names,
)
from vcnef.data.layout import spell_layout, usual_layout
from vcnef.data.notes import NOTE, read_note, understand, write_note
from vcnef.data.seams import warn_of_seams
from vcnef.data.trajectories import Trajectories
from vcnef.grid import axes, is_scattered
from vcnef.labels import CHANNEL, POINT, SAMPLE, SYNONYMS, TIME, join, points_of, units_beside, units_of
from vcnef.periodicity import per_axis, settle
from vcnef.problem import COORDINATES, SPACE, Problem

OVER = ((SAMPLE,), (SAMPLE, TIME), (TIME, SAMPLE))
"""Dimensions of parameters that differ between samples, also with time."""
NUMBERS = "fiu"
"""Kinds of NumPy's types that parameters may have."""


def from_labelled(labelled: Any, **given: Any) -> Trajectories:
    """Trajectories of a `DataArray` or `Dataset`; what is given joins its parameters and replaces the rest."""
    labels = unpack(labelled, given["x"], given["t"])
    params = {**labels["params"], **by_name(given["params"])}
    told = {key: value for key, value in given.items() if value is not None}
    # What the labels note of the sides is known only below.
    layout = spell_layout(usual_layout(labels["u"].ndim - 3))
    data = from_arrays(**(labels | {"periodic": False} | told | {"params": params, "layout": layout}))
    attributes = {name: value for name, value in labelled.attrs.items() if name not in told}
    noted = noted_problem(attributes, data.problem.ndim)
    if "x" in told:  # Other points lie in a box of their own.
        told["domain"] = data.problem.domain
    else:
        noted = fit_to_points(noted, data.problem.domain, data.grid)
    closed = {} if "periodic" in told else {"periodic": True}
    problem = replace(data.problem, **closed | {key: value for key, value in noted.items() if key not in told})
    if closed:
        warn_of_seams(replace(data, problem=problem), said="periodic" in noted)
    units = units_of(labelled, problem.channels, problem.parameters)
    # What is given beside replaces the labels, and their units with them.
    replaced = {*by_name(given["params"]), *(SPACE if "x" in told else ()), *((TIME,) if "t" in told else ())}
    units = {name: unit for name, unit in units.items() if name not in replaced}
    problem = replace(problem, units=units | units_beside(given["t"], given["x"], given["params"]))
    note = understand(read_note(labelled.attrs.get(NOTE)), len(data))
    note["attributes"] = {**data.attributes, **note["attributes"]}
    return replace(data, problem=problem, **note)


def unpack(labelled: Any, x: Any = None, t: Any = None) -> dict[str, Any]:
    """The arguments of `from_arrays` that labelled data hold: u in our layout, and coordinates but for given ones."""
    array = fields_of(labelled) if isinstance(labelled, xr.Dataset) else labelled
    array = array.rename({dim: SYNONYMS[dim] for dim in array.dims if dim in SYNONYMS})
    scattered = POINT in array.dims
    known = tuple(axis for axis in SPACE if axis in (array.coords if scattered else array.dims))
    space = (POINT,) if scattered else known
    unknown = [str(dim) for dim in array.dims if dim not in (SAMPLE, TIME, CHANNEL, *space)]
    if unknown or TIME not in array.dims or not (known or (scattered and x is not None)):
        raise ValueError(
            f"The labelled array has the dimensions {tuple(array.dims)}; expected {SAMPLE}, {TIME}, {CHANNEL} and "
            f"some of x, y, z, or {POINT} with x, y, z as coordinates over it. Rename them with array.rename(...)."
        )
    _check_axes(array, known)
    _check_labels(array, {TIME: t} if scattered else {TIME: t} | dict.fromkeys(space, x))
    missing = [dim for dim in (SAMPLE, CHANNEL) if dim not in array.dims]
    ordered = array.expand_dims(missing).transpose(SAMPLE, TIME, *space, CHANNEL)
    labels: dict[str, Any] = {"u": ordered.values, "t": None, "x": points_of(ordered, known) if x is None else x}
    if TIME in ordered.coords:
        labels["t"] = ordered[TIME].values
    # One that was selected by its name has kept it.
    if CHANNEL in ordered.coords:
        labels["channels"] = tuple(str(name) for name in ordered[CHANNEL].values)
    elif CHANNEL in missing and array.name is not None:
        labels["channels"] = (str(array.name),)
    elif CHANNEL in array.dims:  # labelled, so that no axis of space is taken for it
        labels["channels"] = usual_names(array.sizes[CHANNEL])
    labels["params"] = {
        str(name): _values_of(coordinate)
        for name, coordinate in array.coords.items()
        if name not in array.dims and coordinate.dtype.kind in NUMBERS and coordinate.dims in _of_parameters(name)
    }
    return labels


def _values_of(parameter: xr.DataArray) -> np.ndarray:
    """Over samples, or samples and times in this order."""
    return parameter.transpose(SAMPLE, TIME).values if parameter.ndim == 2 else parameter.values


def _check_axes(array: xr.DataArray, space: tuple[str, ...]) -> None:
    """Refuse y without x, and z without y: models know axes by their number, and call the first one x."""
    renamed = {old: new for old, new in zip(space, SPACE, strict=False) if old != new}
    if renamed:
        # A slice at one y has it as a coordinate still.
        taken = [new for new in renamed.values() if new in array.coords and new not in space]
        steps = [f"drop_vars({taken})"] if taken else []
        steps.append(f"rename({', '.join(f'{old}={new!r}' for old, new in renamed.items())})")
        raise ValueError(
            f"The labelled array has the space axes {', '.join(space)}; expected {', '.join(SPACE[: len(space)])}. "
            f"Rename them with array.{'.'.join(steps)}."
        )


def _check_labels(array: xr.DataArray, given: Mapping[str, Any]) -> None:
    """Refuse to take default times or points where coordinates of another name lie along those dimensions."""
    without = {dim for dim, values in given.items() if values is None and dim not in array.coords}
    numbers = {str(name): each for name, each in array.coords.items() if each.dtype.kind in NUMBERS + "mM"}
    if lost := [name for name, each in numbers.items() if each.dims and without.issuperset(each.dims)]:
        dim = array[lost[0]].dims[0]
        raise ValueError(
            f"The labelled array has no coordinate {dim}, but {', '.join(lost)} in its place. Name what it is with "
            f"array.assign_coords({dim}=...), or leave out what is none with array.drop_vars({lost})."
        )


def _of_parameters(name: Any) -> tuple[tuple[str, ...], ...]:
    """The dimensions that a parameter may have. A single y is where other data were cut off, and none."""
    return ((SAMPLE,),) if name in COORDINATES else ((), *OVER)


def fields_of(dataset: xr.Dataset) -> xr.DataArray:
    """One array with a channel dimension out of the variables that live in space and time."""
    dataset = dataset.rename({dim: SYNONYMS[dim] for dim in dataset.dims if dim in SYNONYMS})
    dataset = dataset.set_coords([name for name in SPACE if name in dataset and dataset[name].dims == (POINT,)])
    places = {*SPACE, POINT}
    fields = {name: each for name, each in dataset.data_vars.items() if TIME in each.dims and places & {*each.dims}}
    if not fields:
        names, dims = sorted(map(str, dataset.data_vars)), sorted(map(str, dataset.dims))
        raise ValueError(
            f"the dataset has no variable over {TIME} and x or {POINT}; its variables are {names}, its dimensions "
            f"{dims}. Call them {SAMPLE}, {TIME}, x, y, z with dataset.rename(...)."
        )
    others = {name: each for name, each in dataset.data_vars.items() if name not in fields}
    _check_used(others)
    beside = {name: each for name, each in others.items() if each.dims in ((), *OVER)}
    return join({name: each.assign_coords(beside) for name, each in fields.items()})


def _check_used(others: Mapping[Any, xr.DataArray]) -> None:
    """Refuse what would be lost of a dataset: variables beside its fields that are no parameters, nor one remark."""
    lost = {
        str(name): each.dims
        for name, each in others.items()
        if each.dims and (each.dims not in OVER or each.dtype.kind not in NUMBERS)
    }
    if lost:
        there = ", ".join(f"{name} over ({', '.join(map(str, dims))})" for name, dims in lost.items())
        raise ValueError(
            f"the dataset has {there} beside its fields; expected fields over {TIME} and x, and parameters, "
            f"numbers over {SAMPLE}, or {SAMPLE} and {TIME}. Make them channels or "
            f"parameters, or leave them out with drop_vars({list(lost)})."
        )


def noted_problem(attributes: Mapping[str, Any], ndim: int) -> dict[str, Any]:
    """Name, domain and periodicity as `to_dataset` notes them; a domain of other axes is that of other data."""
    closed = {"periodic": noted_periodic(attributes["periodic"], ndim)} if "periodic" in attributes else {}
    if "domain" not in attributes:
        return closed
    ends = np.asarray(attributes["domain"])
    if ends.dtype.kind not in "fiu" or ends.size != 2 * ndim:
        return closed
    domain = tuple((float(low), float(high)) for low, high in ends.reshape(ndim, 2))
    name = {"name": str(attributes["problem"])} if "problem" in attributes else {}
    return name | {"domain": domain} | closed


def fit_to_points(noted: dict[str, Any], box: Domain, grid: Float[Tensor, "*x D"]) -> dict[str, Any]:
    """What is noted of the whole domain, for a grid that may fill a part of it: where it does, it does not close."""
    if is_scattered(grid):
        return noted
    steps = [(high - low) / n for (low, high), n in zip(box, grid.shape[:-1], strict=True)]
    away = np.abs(np.subtract(noted.get("domain", box), box)).max(axis=1)
    # A stride moves the ends of the box by less than half a step, a point that is left out by a whole one.
    whole = away < 0.75 * np.array(steps)
    if whole.all():
        return noted
    closes = whole & per_axis(noted.get("periodic", True), len(box))
    return noted | {"domain": box, "periodic": settle(closes, len(box))}


def label_points(grid: Float[Tensor, "*x D"]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The names of the space dimensions, and the coordinates x, y, z over them."""
    names, scattered = SPACE[: grid.shape[-1]], is_scattered(grid)
    lines = zip(names, grid.unbind(-1) if scattered else axes(grid), strict=True)
    coordinates = {name: ((POINT,) if scattered else (name,), line.numpy()) for name, line in lines}
    return (POINT,) if scattered else names, coordinates


def parameter_over(
    problem: Problem, name: str, values: Float[Tensor, " n"] | Float[Tensor, "n t"]
) -> tuple[tuple[str, ...], np.ndarray]:
    """A parameter with its dimensions, from its column of a table."""
    if name in problem.varying and values.ndim == 2:
        return (SAMPLE, TIME), values.numpy()
    return (SAMPLE,), (values if values.ndim == 1 else values[:, 0]).numpy()


def to_dataset(data: Trajectories) -> xr.Dataset:
    """One variable per channel over (sample, t, x, ...) or (sample, t, point), one per parameter over (sample,)."""
    problem, u = data.problem, data.u.cpu().numpy()
    space, coordinates = label_points(data.grid.cpu())
    dims = (SAMPLE, TIME, *space)
    variables: dict[str, Any] = {name: (dims, u[..., i]) for i, name in enumerate(problem.channels)}
    for i, name in enumerate(problem.parameters):
        variables[name] = parameter_over(data.problem, name, data.params[..., i].cpu())
    dataset = xr.Dataset(variables, coords=coordinates | {TIME: data.t.cpu().numpy()})
    for name, unit in problem.units.items():
        if name in dataset.variables:
            dataset[name].attrs["units"] = unit
    sides = {"periodic": note_periodic(problem.periodic), "domain": np.array(problem.domain, dtype=np.float64).ravel()}
    return dataset.assign_attrs(problem=problem.name, **sides, **write_note(data))
