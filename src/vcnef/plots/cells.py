"""Where the cells of a field are, and pictures of fields on them, whether they are equal or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable

from vcnef.plots import style
from vcnef.problem import SPACE

EVEN = 0.1
"""Of a cell, by which borders may lie beside those of equal cells: the eye does not see it."""


class Line(NamedTuple):
    """The cells along one axis: a point in each, and their borders, one more."""

    points: np.ndarray
    borders: np.ndarray


def along_axes(sides: Sequence[int], domain: Sequence[Sequence[int | float]] | None, x: Any = None) -> list[Line]:
    """Return the cells along each axis: equal ones in `domain`, or around the points `x`, borders halfway between.

    Without either, sides go from 0 to 1. `x` is as in `vcnef.from_arrays`: the points along each axis.
    """
    if x is not None:
        return _around_points(sides, x)
    if domain is None:
        domain = ((0.0, 1.0),) * len(sides)
    _check_count(domain, "domain", "sides", len(sides), "(low, high) for each space axis")
    lines = []
    for (low, high), side in zip(domain, sides, strict=True):
        borders = np.linspace(low, high, side + 1)
        lines.append(Line((borders[:-1] + borders[1:]) / 2, borders))
    return lines


def _around_points(sides: Sequence[int], x: Any) -> list[Line]:
    """Return cells around the points along each axis; along a line, x may be its points themselves."""
    given = list(x)
    if len(sides) == 1 and np.ndim(x[0]) == 0:
        given = [x]
    _check_count(given, "x", "axes", len(sides), "the points along each axis")
    lines = []
    for name, points, side in zip(SPACE, given, sides, strict=False):
        line = style.as_array(points, name, "n")
        style.check_axis(line, name, side)
        lines.append(Line(line, style.edges(line)))
    return lines


def middle(line: Line) -> int:
    """Return the number of the cell that holds the middle of them all; of two, the later one."""
    # As parts of the whole they ascend, whichever way the axis goes.
    parts = (line.borders - line.borders[0]) / (line.borders[-1] - line.borders[0])
    return int(np.searchsorted(parts, 0.5 + 1e-6, side="right")) - 1


def picture(
    axis: Axes, field: np.ndarray, lines: Sequence[Line], *, interpolation: str | None = None, **colours: Any
) -> ScalarMappable:
    """Draw a field `[x y]` on its cells; its first axis runs to the right."""
    across, up = lines[0].borders, lines[1].borders
    axis.set(xticks=[], yticks=[])
    style.bare(axis)
    # Pictures have rows first.
    if _even(across) and _even(up):
        extent = (across[0], across[-1], up[0], up[-1])
        return axis.imshow(field.T, origin="lower", extent=extent, interpolation=interpolation, **colours)
    axis.set_aspect("equal")
    return axis.pcolormesh(across, up, field.T, rasterized=True, **colours)


def _even(borders: np.ndarray) -> bool:
    equal = np.linspace(borders[0], borders[-1], len(borders))
    return bool(np.abs(borders - equal).max() <= EVEN * np.abs(equal[1] - equal[0]))


def _check_count(given: Sequence[Any], name: str, what: str, expected: int, words: str) -> None:
    if len(given) != expected:
        raise ValueError(f"{name} has {len(given)} {what}; expected {expected}. Give {words}.")
