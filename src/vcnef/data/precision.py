"""All is kept in single precision: whether it tells neighbouring coordinates apart, and the values of a field."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from vcnef.data.rows import spread

TOLERANCE = 1e-3
"""Part of the distance between neighbours, or of what a field varies by, that rounding may take."""
SMALLEST = float(torch.finfo(torch.float32).tiny)
"""Number of single precision with all of its digits."""
LARGEST = float(torch.finfo(torch.float32).max)
ROWS, ROWS_BYTES = 64, 64 * 2**20
"""Most trajectories of a file, and bytes of them, that are looked at."""


class LostDigitsError(ValueError):
    """Numbers that single precision cannot hold."""


def short(number: float) -> float:
    """Without the digits that single precision does not hold."""
    return float(f"{number:.7g}")


def check_digits(u: Any, channels: Sequence[str]) -> None:
    """Refuse fields of higher precision that vary little around a large value: they would come out in steps."""
    values = u.detach().cpu().numpy() if getattr(u, "dtype", None) == torch.float64 else u
    if isinstance(values, Tensor) or (values := np.asarray(values)).dtype.itemsize <= 4:
        return
    every = tuple(range(values.ndim - 1))
    # How many they are is checked elsewhere.
    for channel, low, high in zip(channels, values.min(axis=every), values.max(axis=every), strict=False):
        check_not_lost(max(abs(float(low)), abs(float(high))), f"Channel {channel!r}")
        rounding = 2.0**-24 * max(abs(float(low)), abs(float(high)))
        if 0 < TOLERANCE * float(high - low) < rounding:
            raise ValueError(
                f"Channel {channel!r} is between {float(low)!r} and {float(high)!r}: single precision, in which fields "
                "are kept, rounds away more than a thousandth of that. Subtract its mean."
            )


def check_not_lost(largest: Any, what: str) -> None:
    """Refuse values all of which single precision would make zero or leave few digits of, and those beyond its end."""
    if 0 < largest < SMALLEST:
        raise LostDigitsError(
            f"{what} is up to {float(largest):.3g}; single precision, in which it is kept, has no digits below "
            f"{SMALLEST:.3g}. Give it in other units."
        )
    if LARGEST < largest < inf:
        raise LostDigitsError(
            f"{what} is up to {float(largest):.3g}; single precision, in which it is kept, ends at {LARGEST:.3g}. "
            "Give it in other units."
        )


def some_rows(samples: int, bytes_each: int) -> np.ndarray:
    """Numbers of trajectories to be looked at where reading all of them would take long: evenly from first to last."""
    count = max(1, min(samples, ROWS, ROWS_BYTES // bytes_each))
    return spread(samples, count).numpy()


def check_resolved(line: Float64[Tensor, " n"], what: str) -> None:
    """Refuse increasing coordinates that lie so far from zero that rounding moves them, or makes them equal."""
    if len(line) < 2:
        return
    # A long axis from zero on is rounded too, but nothing is better then.
    tolerance = min(max(TOLERANCE, 2 * _lost(line - line[0])), 0.5)
    if _lost(line) > tolerance:
        _refuse(what, line)


def check_points_resolved(points: Float64[Tensor, "n D"]) -> None:
    """The same of scattered points, by the distance that so many have in their box."""
    for column in points.unbind(dim=1):
        spacing = float(column.max() - column.min()) / len(points) ** (1 / points.shape[1])
        if float((column.float().double() - column).abs().max()) > TOLERANCE * spacing > 0:
            _refuse("x", column)


def _lost(line: Float64[Tensor, " n"]) -> float:
    """The largest part of a gap that rounding takes or adds."""
    gaps = line.diff()
    return float(((line.float().double().diff() - gaps).abs() / gaps).max())


def _refuse(what: str, line: Float64[Tensor, " n"]) -> None:
    low, high = line.min().item(), line.max().item()
    raise ValueError(
        f"{what} has {len(line)} values from {low!r} to {high!r}, too close for single precision so far from 0. "
        f"Subtract the first one, and leave out values that are closer still."
    )
