"""Checks of what is given that every room shares."""

from __future__ import annotations


def check_at_least(least: int, **sizes: int) -> None:
    """Raise a `ValueError` that names the first size below `least`."""
    for name, size in sizes.items():
        if size < least:
            raise ValueError(f"{name} is {size}; expected at least {least}.")
