"""Test trajectories by parameter value, and whether the model has seen that value in training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vcnef.data.arrays import columns_of
from vcnef.problem import DIGITS, within

MOST_VALUES = 40
"""Where there are more values than this they were drawn from a range, and are told apart as seen and unseen only."""


@dataclass(frozen=True)
class Grouping:
    """A number for each trajectory, and for each number the values it stands for and whether they were seen."""

    member: Int[Tensor, " n"]
    values: tuple[dict[str, tuple[float, float]], ...]
    """Smallest and largest value of each parameter in the group."""
    seen: tuple[bool | None, ...]
    """None where the model does not say what it was trained on."""


def group_by_value(data: Any, trained: Any, provenance: Mapping[str, Any]) -> Grouping:
    """Groups of trajectories with the same parameters, in ascending order.

    `trained` is the problem that the model was trained on. A value is seen when it is one of
    `provenance["parameter_values"]`; where the model does not list them, when it lies in the trained ranges; and
    without those nobody knows.
    """
    columns = columns_of(data.params.cpu(), data.problem)
    # What changes with time makes no groups.
    names = tuple(name for name in columns if name not in data.problem.varying)
    params = torch.stack([columns[name] for name in names], dim=1) if names else data.params.new_empty(len(data), 0)
    rounded = torch.tensor([[float(f"{value:.6g}") for value in row] for row in params.tolist()]).reshape(params.shape)
    rows, member = rounded.unique(dim=0, return_inverse=True) if names else (params[:1], torch.zeros(len(params)))
    listed = provenance.get("parameter_values")
    known = (
        _among(rows, names, _by_name(listed, trained.parameters)) if listed else _within(rows, names, trained.ranges)
    )
    member = member.long()
    if len(rows) > MOST_VALUES:
        # From here on a group is "unseen" or "seen"; empty ones drop out.
        kinds, member = known[member].long().unique(return_inverse=True)
        known = kinds.bool()
    values = tuple(_ranges(params[member == i], names) for i in range(len(known)))
    told = listed or all(name in trained.ranges for name in names)
    return Grouping(member, values, tuple(known.tolist()) if told else (None,) * len(known))


def _among(rows: Float[Tensor, "g p"], names: tuple[str, ...], listed: list[dict[str, float]]) -> Bool[Tensor, " g"]:
    """Which rows are in a list of values; a parameter that the list does not name matches nothing."""
    table = torch.tensor([[each.get(name, torch.nan) for name in names] for each in listed], dtype=rows.dtype)
    near = (rows[:, None] - table).abs() <= DIGITS * table.abs()
    return near.all(dim=2).any(dim=1)


def _by_name(listed: Iterable[Any], parameters: tuple[str, ...]) -> list[dict[str, float]]:
    """Trained values that are given by name, in the order of the parameters, or as bare numbers of a single one."""
    named = []
    for each in listed:
        values = [each] if isinstance(each, int | float) else each
        named.append(dict(values) if isinstance(values, Mapping) else dict(zip(parameters, values, strict=True)))
    return named


def _within(rows: Float[Tensor, "g p"], names: tuple[str, ...], ranges: Mapping[str, Any]) -> Bool[Tensor, " g"]:
    """Which rows lie in all ranges."""
    inside = torch.ones(len(rows), dtype=torch.bool)
    for column, name in enumerate(names):
        low, high = ranges.get(name, (-torch.inf, torch.inf))
        inside &= within(rows[:, column], low, high)
    return inside


def _ranges(params: Float[Tensor, "n p"], names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    low, high = params.amin(dim=0).tolist(), params.amax(dim=0).tolist()
    return {name: (float(f"{a:.6g}"), float(f"{b:.6g}")) for name, a, b in zip(names, low, high, strict=True)}
