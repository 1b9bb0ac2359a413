"""Whether what a model's folder says of scales and training is of the kinds that `save` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from numbers import Real
from typing import Any

from torch import Tensor

from vcnef.data import Scaling
from vcnef.problem import Problem
from vcnef.surrogate.points import SCATTERED, UNEVEN, UNIFORM

COUNTS = ("width", "heads", "depth", "modulations", "steps", "history")
"""Options of models that count something."""


def check_scaling(scaling: Scaling, problem: Problem) -> None:
    """Refuse scales of other channels or parameters, and those by which nothing can be scaled."""
    fields, params = scaling.fields, scaling.params
    if fields.channels != problem.channels:
        raise ValueError(
            f"its scales are of the channels {', '.join(map(str, fields.channels))}, its problem has "
            f"{', '.join(problem.channels)}"
        )
    for what, values in (("mean", fields.mean), ("std", fields.std), ("log", fields.log)):
        if tuple(values.shape) != (len(problem.channels),):
            raise ValueError(f"its {what} of fields is not one number for each of {', '.join(problem.channels)}")
    count = len(problem.parameters)
    for what, column in (("centre", params.centre), ("half_width", params.half_width), ("log", params.log)):
        if len(column) != count or not all(isinstance(each, Real) for each in column):
            raise ValueError(f"its {what} of parameters is {column!r:.40}; expected {count} numbers")
    spreads = {"std of fields": fields.std, "half_width of parameters": params.half_width, "horizon": [scaling.horizon]}
    centres = {"mean of fields": fields.mean, "centre of parameters": params.centre}
    for what, numbers in (spreads | centres).items():
        listed = numbers.tolist() if isinstance(numbers, Tensor) else numbers
        least = 0.0 if what in spreads else -float("inf")
        if not all(isfinite(each) and each > least for each in listed):
            raise ValueError(f"its {what} is {list(listed)!r:.60}; expected finite numbers{' above 0' * (least == 0)}")


def check_options(options: Any) -> None:
    """Refuse options that no builder takes: JSON has infinity, and truth where counts are meant looks like one."""
    if not isinstance(options, Mapping):
        raise ValueError(f"its options are {options!r:.40}; expected values by name")
    for name, value in options.items():
        if isinstance(value, float) and not isfinite(value):
            raise ValueError(f"its option {name} is {value}; expected a finite number")
        if name in COUNTS and value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ValueError(f"its option {name} is {value!r:.40}; expected a whole number")


def check_provenance(provenance: Any, problem: Problem) -> None:
    """Refuse values of other kinds than those that questions are compared with; unknown names are left alone."""
    if not isinstance(provenance, Mapping):
        raise ValueError(f"its provenance is {provenance!r:.40}; expected values by name")
    for name, (is_right, expected) in KINDS.items():
        if name in provenance and not is_right(provenance[name]):
            raise ValueError(f"its {name} is {provenance[name]!r:.40}; expected {expected}")
    if unknown := [name for name in provenance.get("field_ranges", {}) if name not in problem.channels]:
        raise ValueError(f"its field_ranges name {unknown[0]!r}, which is no channel of {', '.join(problem.channels)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_list(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, list | tuple) and all(map(of, value))


def _is_pair(value: Any) -> bool:
    return _is_list(value, _is_number) and len(value) == 2 and value[0] <= value[1]


def _are_ranges(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_pair, value.values()))


def _are_sides(value: Any) -> bool:
    return _is_list(value, _is_size) and 1 <= len(value) <= 3


def _are_times(value: Any) -> bool:
    return _is_list(value, _is_number) and len(value) > 0 and list(value) == sorted(value)


def _is_record(value: Any) -> bool:
    return isinstance(value, Mapping)


def _are_fingerprints(value: Any) -> bool:
    parts = {"points": list, "times": list, "codes": str}
    return _is_record(value) and all(isinstance(value.get(name), kind) for name, kind in parts.items())


KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "resolution": (_are_sides, "the number of points along each axis"),
    "horizon": (lambda value: _is_number(value) and value > 0, "a time above 0"),
    "frame_gap": (lambda value: _is_number(value) and value >= 0, "a time"),
    "grid": (lambda value: value in (None, UNIFORM, UNEVEN, SCATTERED), f"{UNIFORM}, {UNEVEN} or {SCATTERED}"),
    "ends": (lambda value: _is_list(value, _is_pair), "two points for each axis"),
    "field_ranges": (_are_ranges, "the least and the largest value of each channel"),
    "times": (_are_times, "ascending times"),
    "valid": (lambda value: _is_number(value) and 0 <= value <= 0.5, "a share from 0 to 0.5"),
    "test": (lambda value: _is_number(value) and 0 <= value <= 0.5, "a share from 0 to 0.5"),
    "split_in_order": (lambda value: isinstance(value, bool), "true or false"),
    "trajectories": (_is_size, "a number of them"),
    "parameter_values": (lambda value: _is_list(value, lambda row: _is_list(row, _is_number)), "lists of numbers"),
    "train": (lambda value: isinstance(value, str), "a text"),
    **dict.fromkeys(
        ("generated", "instance", "conserved", "seen", "sets", "recipe", "window"), (_is_record, "values by name")
    ),
}
"""By the names of a provenance, what may stand there, and its name in words."""
KINDS["seen"] = (_are_fingerprints, "points, times and codes of trajectories")
RECORDS = ("generated", "instance", "conserved", "sets", "recipe", "window")
KINDS |= dict.fromkeys(RECORDS, (_is_record, "values by name"))
