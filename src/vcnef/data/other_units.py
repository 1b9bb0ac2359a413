"""Trajectories in the units of a model, where the factors are certain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.precision import check_not_lost
from vcnef.data.stored import StoredTrajectories
from vcnef.data.trajectories import Trajectories, ranges
from vcnef.problem import SPACE
from vcnef.units import Conversion, along_all_axes, conversions, factors_of

Read = Callable[[np.ndarray, tuple[slice, ...]], np.ndarray]


def convert_trajectories(
    data: Trajectories | StoredTrajectories, expected: Mapping[str, str]
) -> tuple[Trajectories | StoredTrajectories, dict[str, Conversion]]:
    """Return trajectories in the units that are expected, and what was converted, by name.

    Units without a certain factor stay as they are. Fields that are in files stay there, and are multiplied as they
    are read.
    """
    problem = data.problem
    axes = SPACE[: problem.ndim]
    noted = along_all_axes(problem.units, axes)
    found = conversions(noted, expected)
    if not found:
        return data, found
    params = _multiply(data.params, problem.parameters, found)
    domain = []
    for (low, high), factor in zip(problem.domain, factors_of(axes, found), strict=True):
        domain.append((low * factor, high * factor))
    units = dict(problem.units)
    for name, each in found.items():
        units[name] = each.into
    problem = replace(problem, domain=tuple(domain), ranges=ranges(problem, params), units=units)
    changed: dict[str, Any] = {
        "t": _multiply(data.t[:, None], ("t",), found)[:, 0],
        "grid": _multiply(data.grid, axes, found),
        "params": params,
        "problem": problem,
    }
    if isinstance(data, Trajectories):
        return replace(data, u=_multiply(data.u, problem.channels, found), **changed), found
    sources = []
    for source in data.sources:
        sources.append(replace(source, read=_multiplying(source.read, problem.channels, found)))
    return replace(data, sources=tuple(sources), **changed), found


def _multiplying(read: Read, names: Sequence[str], found: Mapping[str, Conversion]) -> Read:
    """A reader of fields, each of which is multiplied."""

    def read_converted(rows: np.ndarray, cut: tuple[slice, ...]) -> np.ndarray:
        return _multiply(torch.from_numpy(read(rows, cut)), names, found).numpy()

    return read_converted


def _multiply(
    values: Float[Tensor, "*_ c"], names: Sequence[str], found: Mapping[str, Conversion]
) -> Float[Tensor, "*_ c"]:
    """Return values whose last axis is that of the names, each multiplied by its factor, in double precision."""
    if found.keys().isdisjoint(names) or not values.numel():
        return values
    converted = values.clone()
    for i, name in enumerate(names):
        if name in found:
            factor = found[name].factor
            check_not_lost(float(values[..., i].abs().max()) * factor, name)
            converted[..., i] = (values[..., i].double() * factor).to(values.dtype)
    return converted
