"""Parameters that change with time, as they are given to an answer: values at times, labelled arrays, functions."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.arrays import as_tensor
from vcnef.problem import Problem

NAMES = ("t", "time")
"""Dimensions of labelled arrays that are times."""


class Record(NamedTuple):
    """Values at times since u0, between which they are linear."""

    times: np.ndarray
    values: np.ndarray
    """Over samples, or one for all, and times."""


def read_records(
    problem: Problem, given: Mapping[str, Any], params_t: Any, last: float, window: float
) -> tuple[dict[str, Any], Float[Tensor, " r"] | None]:
    """Return the parameters with all records at the same times, and these; None where every parameter is constant."""
    times = _read_times(problem, params_t)
    records = {}
    for name in problem.varying:
        value = given.get(name)
        if callable(value) and not hasattr(value, "dims"):
            records[name] = _follow(name, value, last, window)
        elif set(NAMES) & set(getattr(value, "coords", ())) & set(getattr(value, "dims", ())):
            records[name] = _labelled(name, value)
        elif value is not None and np.ndim(value) and (np.ndim(value) == 2 or times is not None):
            records[name] = _at_times(name, value, times)
    if not records:
        return dict(given), None
    every = np.unique(np.concatenate([record.times for record in records.values()]))
    # One that begins later or ends earlier than the others is too short, which is said of its own times.
    begin = max(record.times[0] for record in records.values())
    end = min(record.times[-1] for record in records.values())
    every = every[(every >= begin) & (every <= end)]
    common = {}
    for name, record in records.items():
        common[name] = np.stack([np.interp(every, record.times, row) for row in record.values])
    return {**given, **common}, torch.from_numpy(every)


def _read_times(problem: Problem, params_t: Any) -> np.ndarray | None:
    if params_t is None:
        return None
    if not problem.varying:
        raise ValueError(
            f"params_t is given, but no parameter of {problem.name} changed with time in training. Leave it out, or "
            "train on values at all frames, [samples, times]."
        )
    return _ascending(params_t, "params_t")


def _ascending(given: Any, what: str) -> np.ndarray:
    times = as_tensor(given, what, torch.float64).numpy()
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise ValueError(f"{what} has shape {times.shape}; expected ascending, finite times since u0. Sort them.")
    return times


def _at_times(name: str, value: Any, times: np.ndarray | None) -> Record:
    values = np.atleast_2d(as_tensor(value, f"params[{name!r}]", torch.float64).numpy())
    if times is None:
        raise ValueError(
            f"params[{name!r}] has shape {values.shape}, but params_t is not given; expected the times since u0 of its "
            "values. Give params_t, or one value per sample for one that stays."
        )
    if values.ndim > 2 or values.shape[1] != len(times):
        raise ValueError(
            f"params[{name!r}] has shape {np.shape(value)}; expected [{len(times)}] or [sample, {len(times)}], a value "
            "for each time of params_t. For one value per sample that stays, leave params_t out."
        )
    return Record(times, values)


def _labelled(name: str, value: Any) -> Record:
    axis = next(dim for dim in value.dims if dim in NAMES)
    values = np.atleast_2d(value.transpose(..., axis).values).astype(np.float64)
    return Record(_ascending(value[axis].values, f"{axis} of params[{name!r}]"), values)


def _follow(name: str, function: Any, last: float, window: float) -> Record:
    """A function at the ends of all windows, which is all that they are told."""
    count = max(1, ceil(last / window - 1e-5))
    times = window * np.arange(count + 1)
    values = [np.atleast_1d(as_tensor(function(float(time)), f"params[{name!r}]", torch.float64)) for time in times]
    if any(value.ndim > 1 or len(value) != len(values[0]) for value in values):
        raise ValueError(
            f"params[{name!r}] gives values of shapes {sorted({value.shape for value in values})}; expected one number "
            "for each time, or one per sample."
        )
    return Record(times, np.stack(values, axis=-1))
