"""Numbers of trajectories: all of them block by block, or some from first to last."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

BLOCK_BYTES = 64 * 2**20
"""Of fields that are read or written at once."""


def bytes_of_one(data: Any) -> int:
    """Of the fields of one trajectory in single precision."""
    return 4 * len(data.t) * prod(data.resolution) * len(data.problem.channels)


def row_blocks(
    samples: int, bytes_each: int, *, most_bytes: int | None = None, most: int | None = None
) -> Iterator[Int[Tensor, " b"]]:
    """All rows in their order, as many at a time as have so many bytes, and no more than `most`; one at least."""
    size = max(1, (BLOCK_BYTES if most_bytes is None else most_bytes) // max(1, bytes_each))
    size = size if most is None else min(size, most)
    for first in range(0, samples, size):
        yield torch.arange(first, min(first + size, samples))


def cut_shape(shape: tuple[int, ...], cut: tuple[slice, ...]) -> tuple[int, ...]:
    """The shape of an array of which a part along its first axes is taken."""
    cut_sides = tuple(len(range(size)[part]) for size, part in zip(shape, cut, strict=False))
    return (*cut_sides, *shape[len(cut) :])


def cut_within(selection: tuple[slice, ...], cut: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Slices of arrays of that shape that take at once what `selection` and then `cut` take."""
    taken = list(selection)
    for axis, part in enumerate(cut):
        places = range(shape[axis])[selection[axis]][part]
        taken[axis] = slice(places.start, places.stop, places.step)
    return tuple(taken)


def check_rows(rows: Any, samples: int) -> Int[Tensor, " n"]:
    """Return numbers of trajectories as a tensor, or refuse what is none."""
    try:
        numbers = rows if isinstance(rows, Tensor) else torch.as_tensor(rows)
    except (TypeError, ValueError, RuntimeError):
        numbers = None
    whole = numbers is not None and numbers.ndim == 1 and (not numbers.is_floating_point() or not numbers.numel())
    if not whole or numbers.is_complex() or numbers.dtype == torch.bool:
        raise ValueError(f"rows are {rows!r:.60}; expected the numbers of trajectories, from 0 to {samples - 1}.")
    numbers = numbers.long()
    if numbers.numel() and not (int(numbers.min()) >= 0 and int(numbers.max()) < samples):
        raise ValueError(
            f"rows are from {int(numbers.min())} to {int(numbers.max())}; expected numbers of trajectories, from 0 to "
            f"{samples - 1}."
        )
    return numbers


def spread(samples: int, count: int) -> Int[Tensor, " b"]:
    """A few rows, evenly over all."""
    return torch.linspace(0, samples - 1, count, dtype=torch.float64).round().long()
