"""Along which axes a domain closes on itself, and along which it ends: at walls, or at open sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

SPACE = ("x", "y", "z")
"""The space axes, of which a problem has the first few."""

Periodic = bool | tuple[bool, ...]
"""Of all axes together, or of each where they differ."""


def per_axis(periodic: Any, ndim: int) -> tuple[bool, ...]:
    """Return for each axis whether the domain closes along it.

    `periodic` is True or False for all axes, one of them for each, or some of them by name; unnamed axes close.

    >>> per_axis({"y": False}, 2)
    (True, False)
    """
    check_periodic(periodic)
    names = SPACE[:ndim]
    if isinstance(periodic, Mapping):
        if unknown := [name for name in periodic if name not in names]:
            raise ValueError(f"periodic names the axis {unknown[0]!r}; expected some of {', '.join(names)}.")
        return tuple(bool(periodic.get(name, True)) for name in names)
    if is_flag(periodic):
        return (bool(periodic),) * ndim
    closes = tuple(bool(each) for each in periodic)
    if len(closes) != ndim:
        raise ValueError(
            f"periodic is {closes}, for {len(closes)} axes; expected one value for each of {', '.join(names)}, "
            "or True or False for all."
        )
    return closes


def settle(periodic: Any, ndim: int) -> Periodic:
    """Return the same as problems have it: one answer where it is that of all axes, else one for each."""
    closes = per_axis(periodic, ndim)
    return closes[0] if len(set(closes)) == 1 else closes


def of_points(periodic: Periodic, sides: Sequence[int]) -> tuple[bool, ...]:
    """Return for each side of an array of points whether the domain closes along it.

    Scattered points stand in a single row, whatever the axes: they close where all axes do.
    """
    scattered = len(sides) == 1
    return (periodic is True,) if scattered else per_axis(periodic, len(sides))


def check_periodic(given: Any) -> None:
    """Refuse what is neither True or False, nor one of them for each axis."""
    if is_flag(given):
        return
    values = given.values() if isinstance(given, Mapping) else given
    if isinstance(values, str) or not isinstance(values, Iterable) or not all(map(is_flag, values)):
        raise ValueError(
            f"periodic is {given!r}; expected True or False, for all axes, one for each, as (True, False), or by name, "
            "as {'y': False}."
        )


def is_flag(value: Any) -> bool:
    """Whether it is True or False, of Python or NumPy."""
    return isinstance(value, bool | np.bool_)


def spell_axes(closes: Sequence[bool]) -> str:
    """Return in words along which axes a domain closes: along x and y, along no axis.

    >>> spell_axes((True, False))
    'along x'
    """
    names = [name for name, each in zip(SPACE, closes, strict=False) if each]
    return f"along {' and '.join(names)}" if names else "along no axis"
