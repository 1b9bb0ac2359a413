"""Checks of what is given that every room shares."""

from __future__ import annotations

from collections.abc import Collection


def check_at_least(least: int, **sizes: int) -> None:
    """Raise a `ValueError` that names the first size below `least`."""
    for name, size in sizes.items():
        if size < least:
            raise ValueError(f"{name} is {size}; expected at least {least}.")


def check_lengths(ndim: int, lengths: Collection[float] | None) -> None:
    """Raise a `ValueError` if there are lengths of the domain, but not one above 0 for each axis."""
    if lengths is not None and (len(lengths) != ndim or min(lengths) <= 0):
        raise ValueError(f"lengths is {lengths}; expected {ndim} of them, all above 0. Give one for each axis.")


def check_choice(name: str, value: object, choices: Collection[object]) -> None:
    """Raise a `ValueError` that names a value which is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}.")
