"""What a page asks, checked: JSON in, a question of bounded size out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from sys import float_info
from typing import Any

from vcnef.explorer.grids import FEWEST_POINTS, MOST_POINTS, Grids
from vcnef.explorer.states import NAMES, Shape
from vcnef.problem import Problem
from vcnef.suggest import suggestion

MOST_TIMES = 512
MOST_VALUES = 2**22
"""Points · times of one answer."""
MOST_MODES = 16
LARGEST = 10.0
"""Of modes, drawn lines and parameters, in units of the largest value in training: a solver's steps shrink as fields
grow."""
FURTHEST = 4.0
"""Trained horizons that may be asked for."""
SANE = {"beta": (-20.0, 20.0), "nu": (0.0, 20.0), "eta": (0.0, 1.0), "zeta": (0.0, 1.0)}
"""Parameters with which the solvers work."""
UNKNOWN = 1e5
"""Taken for the largest value of a parameter in training where that is not known, or zero."""


@dataclass(frozen=True)
class Ask:
    """A trajectory to be shown: `times` of them from 0 to `last`, on `points` cells along the first axis."""

    model: int
    shape: Shape
    params: Mapping[str, float]
    last: float
    times: int
    points: int
    page: str = ""

    def key(self) -> str:
        """Return a key that is equal for questions with equal answers."""
        return repr((self.model, self.shape, sorted(self.params.items()), self.last, self.times, self.points))


def model_number(asked: Mapping[str, Any], count: int) -> int:
    return _whole(asked.get("model", 0), "model", 0, count - 1)


def parameter_bounds(name: str, problem: Problem, *, solver: bool) -> tuple[float, float]:
    """Return the bounds of values: where the solver works, if there is one, else some way beyond training."""
    low, high = problem.ranges.get(name, (0.0, 0.0))
    most = LARGEST * (max(abs(low), abs(high)) or UNKNOWN)
    bounds = SANE[name] if solver and name in SANE else (-most, most)
    return min(low, bounds[0]), max(high, bounds[1])


def read_ask(
    asked: Mapping[str, Any], number: int, problem: Problem, grids: Grids, horizon: float, size: float, *, solver: bool
) -> Ask:
    """Return the question in a page's JSON; `size` is the largest value that the fields had in training."""
    _check_names(asked, ("model", "state", "params", "last", "times", "points", "page", "format"), "question")
    points = _whole(asked.get("points", grids.start), "points", FEWEST_POINTS, MOST_POINTS)
    times = _whole(asked.get("times", 41), "times", 2, MOST_TIMES)
    values = prod(grids.sides(points)) * times
    if values > MOST_VALUES:
        raise ValueError(
            f"{points} points along {problem.ndim} axes at {times} times are {values} values; "
            f"at most {MOST_VALUES} are answered. Ask for fewer points or times."
        )
    last = _number(asked.get("last", horizon), "last")
    if not 0 < last <= FURTHEST * horizon:
        raise ValueError(f"The last time is {last:g}; expected more than 0 and at most {FURTHEST * horizon:g}.")
    page = str(asked.get("page", ""))[:64]
    shape = _shape(_mapping(asked.get("state", {}), "state"), problem, LARGEST * size)
    return Ask(number, shape, _params(asked.get("params", {}), problem, solver), last, times, points, page)


def _params(given: Any, problem: Problem, solver: bool) -> dict[str, float]:
    values = {}
    for name, value in _mapping(given, "params").items():
        if name not in problem.parameters:
            raise ValueError(
                f"There is no parameter {name!r} of {problem.name}. {suggestion(name, problem.parameters)}"
            )
        low, high = parameter_bounds(name, problem, solver=solver)
        values[name] = _number(value, name)
        if not low <= values[name] <= high:
            why = "where the solver works" if solver else "not too far from training"
            raise ValueError(f"{name} is {values[name]:g}; expected {low:g} to {high:g}, {why}.")
    return values


def _shape(given: Mapping[str, Any], problem: Problem, largest: float) -> Shape:
    _check_names(given, ("preset", "seed", "modes", "drawn"), "state")
    preset = given.get("preset", "sine")
    if preset not in NAMES:
        raise ValueError(f"There is no initial state {preset!r}. {suggestion(str(preset), NAMES)}")
    seed = _whole(given.get("seed", 0), "seed", 0, 2**31 - 1)
    modes = _lists(given.get("modes", {}), "modes", problem, (0, MOST_MODES), largest)
    drawn = _lists(given.get("drawn", {}), "drawn", problem, (4, MOST_POINTS), largest)
    if drawn and problem.ndim > 1:
        raise ValueError(f"A line was drawn for {problem.name} in {problem.ndim} dimensions; only 1D can be drawn.")
    return Shape(preset, seed, modes, drawn)


def _lists(
    given: Any, what: str, problem: Problem, lengths: tuple[int, int], largest: float
) -> dict[str, tuple[float, ...]]:
    lists = {}
    for channel, values in _mapping(given, what).items():
        if channel not in problem.channels:
            raise ValueError(f"There is no channel {channel!r}. {suggestion(channel, problem.channels)}")
        if not isinstance(values, list) or not lengths[0] <= len(values) <= lengths[1]:
            raise ValueError(f"{what} of {channel} is not a list of {lengths[0]} to {lengths[1]} numbers.")
        lists[channel] = tuple(_number(value, f"{what} of {channel}") for value in values)
        if any(abs(value) > largest for value in lists[channel]):
            raise ValueError(
                f"{what} of {channel} goes beyond {largest:g}; expected values nearer to the trained ones."
            )
    return lists


def _check_names(given: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"A {what} has no {name!r:.40}. {suggestion(name, known)}")


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {value!r:.40}; expected names with their values.")
    return value


def _number(value: Any, what: str) -> float:
    # JSON knows whole numbers that no float holds.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= float_info.max:
        raise ValueError(f"{what} is {value!r:.40}; expected a finite number.")
    return float(value)


def _whole(value: Any, what: str, low: int, high: int) -> int:
    number = _number(value, what)
    if number != int(number) or not low <= number <= high:
        raise ValueError(f"{what} is {value!r:.40}; expected a whole number from {low} to {high}.")
    return int(number)
