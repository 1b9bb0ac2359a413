"""The order of an array's axes in letters, "n t c x", and orders that can only be a mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from einops import rearrange
from torch import Tensor

from vcnef.problem import SPACE

LETTERS = ("n", "t", "c", *SPACE)
"""Samples, times, channels and the space axes."""
EXAMPLES = {3: "n t x", 4: "n t c x", 5: "n t c x y", 6: "n t c x y z"}
"""A layout for each number of axes, for messages."""
OF_TRAJECTORIES = (("n", "t", "c"), ("n", "t"), ("t", "c"), ("t",))
OF_STATES = (("n", "c"), ("n",), ("c",), ())
"""What an array may have beside its space axes; one sample and one channel need no axis."""
Letters = tuple[str, ...]


def read_layout(layout: Any, needed: Letters = ("t", "x")) -> Letters:
    """Return the letters of a layout; capitals, spaces and commas do not matter."""
    text = layout if isinstance(layout, str) else ""
    letters = tuple(text.lower().replace(",", "").replace(" ", ""))
    wrong = [letter for letter in letters if letter not in LETTERS or letters.count(letter) > 1]
    missing = [letter for letter in needed if letter not in letters]
    axes = [axis for axis in SPACE if axis in letters]
    if wrong or missing or axes != list(SPACE[: len(axes)]):
        example = "n t c x" if "t" in needed else "n c x"
        raise ValueError(
            f"layout is {layout!r}; expected a letter for each axis, once: n for samples, t for times, c for channels, "
            f"and x, y, z for space, of which {' and '.join(needed)} must be there, e.g. layout={example!r}."
        )
    return letters


def spell_layout(letters: Sequence[str]) -> str:
    """Return the letters as a layout is written: n t c x."""
    return " ".join(letters)


def usual_layout(ndim: int, *, times: bool = True) -> Letters:
    """Return the layout of this library for so many space axes."""
    return ("n", *("t" if times else ""), *SPACE[:ndim], "c")


def arrange(array: Any, letters: Letters, what: str = "u") -> Any:
    """Return an array in the layout of this library; one sample or one channel has no axis of its own before.

    An array that is mapped to a file stays so: its axes are renamed, and nothing is read.
    """
    array = array if isinstance(array, Tensor) else np.asanyarray(array)
    if array.ndim != len(letters):
        raise ValueError(
            f"{what} has shape {tuple(array.shape)}, {array.ndim} axes; the layout {spell_layout(letters)!r} names "
            f"{len(letters)}. Give a letter for each axis."
        )
    target = usual_layout(sum(axis in letters for axis in SPACE), times="t" in letters)
    if letters == target:
        return array
    ours = " ".join(letter if letter in letters else "1" for letter in target)
    arranged = rearrange(array, f"{spell_layout(letters)} -> {ours}")
    return arranged.contiguous() if isinstance(arranged, Tensor) else arranged


def lengths_of(t: Any, x: Any, channels: Any = None) -> dict[str, int]:
    """Return how many times, points along each axis and channels are given beside an array, by their letters."""
    lengths = {} if t is None or np.ndim(t) != 1 else {"t": len(t)}
    if channels is not None and not isinstance(channels, str):
        lengths["c"] = len(channels)
    return lengths | dict(zip(SPACE, _sides(x), strict=False))


def _sides(x: Any) -> tuple[int, ...]:
    """The number of points along each axis, of axes, of a whole grid or of scattered points."""
    if x is None:
        return ()
    if isinstance(x, list | tuple) and all(np.ndim(line) == 1 for line in x):
        return tuple(map(len, x))
    try:
        shape = tuple(x.shape) if hasattr(x, "shape") else np.shape(x)
    except ValueError:  # lists of different lengths, which are refused later
        return ()
    return shape if len(shape) == 1 else shape[:-1]


def choose_layout(layout: Any, shape: Sequence[int], lengths: Mapping[str, int]) -> Letters | None:
    """Return the layout of u: the given one, or that of this library, or that without channels where x fits so alone.

    Lengths of times and points that fit another order only are refused with the layout to give, and so is an axis of
    space with a single point. None is for an array that fits no order.
    """
    letters = read_layout(layout) if layout is not None else _find_layout(shape, lengths)
    if letters and len(letters) == len(shape):
        _check_sides(shape, letters)
    return letters


def _find_layout(shape: Sequence[int], lengths: Mapping[str, int]) -> Letters | None:
    usual = usual_layout(len(shape) - 3) if 4 <= len(shape) <= 6 else None
    if usual and _fits(usual, shape, lengths):
        return usual
    other = next(orders(shape, lengths, OF_TRAJECTORIES), None)
    # Only the axis of the one channel is missing.
    if other is None or other == ("n", "t", *(axis for axis in SPACE if axis in lengths)):
        return other or usual
    read_as = f"as {spell_layout(usual)!r} " if usual else ""
    raise ValueError(
        f"u has shape {tuple(shape)}, which {read_as}does not fit {_spell_lengths(lengths)}. "
        f"Give layout={spell_layout(other)!r}, if that is the order of its axes."
    )


def _fits(letters: Letters, shape: Sequence[int], lengths: Mapping[str, int]) -> bool:
    """Whether an order has all axes that lengths are known of, and no others of space, at those lengths."""
    given = [axis for axis in SPACE if axis in lengths]
    if given and given != [axis for axis in SPACE if axis in letters]:
        return False
    if lengths.get("c", 1) > 1 and "c" not in letters:
        return False
    sizes = dict(zip(letters, shape, strict=True))
    return all(sizes.get(letter, length) == length for letter, length in lengths.items())


def orders(shape: Sequence[int], lengths: Mapping[str, int], beside: Sequence[Letters]) -> Iterator[Letters]:
    """Orders of the axes in which the lengths fit, the likeliest first; none where too few lengths are known."""
    given = [axis for axis in SPACE if axis in lengths]
    axes = [tuple(given)] if given else [SPACE[:1], SPACE[:2], SPACE[:3]] if lengths.get("c", 1) > 1 else []
    for space in axes:
        for others in beside:
            if len(others) + len(space) == len(shape):
                yield from (each for each in permutations((*others, *space)) if _fits(each, shape, lengths))


def _spell_lengths(lengths: Mapping[str, int]) -> str:
    words = {"t": "times", "c": "channels"} | {axis: f"points along {axis}" for axis in SPACE}
    return ", ".join(f"{length} {words[letter]}" for letter, length in lengths.items())


def _check_sides(shape: Sequence[int], letters: Letters) -> None:
    """Refuse an axis of space with one point: it is that of channels, or too many."""
    lone = next((place for place, letter in enumerate(letters) if letter in SPACE and shape[place] == 1), None)
    if lone is None:
        return
    # What ends with an axis of one too was given that for its channel, and has one too many.
    too_many = shape[-1] == 1 and len(shape) > 4
    way = f"leave it out with np.squeeze(u, {lone})" if too_many else f"say layout={EXAMPLES[max(4, len(shape))]!r}"
    raise ValueError(
        f"u has shape {tuple(shape)}, which as {spell_layout(letters)!r} has a single point along {letters[lone]}; "
        f"expected two or more along each axis. If that axis is the one of channels, {way}."
    )
