"""What was probably meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str]) -> str:
    """Sentences with the nearest of the known names and all of them, to end an error message.

    >>> suggestion("atention", ["attention", "width"])
    "Did you mean 'attention'? There are attention, width."
    """
    names = list(known)
    if near := nearest(name, names):
        return f"{near} There are {', '.join(names)}."
    return f"Use one of {', '.join(names)}." if names else "There are none."


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence with the nearest of the known names, or nothing where none is near."""
    near = get_close_matches(name, list(known), n=2, cutoff=0.5)
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else ""
