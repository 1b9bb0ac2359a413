"""Which channels keep their mean over the domain, as mass does: found in the data, or named by their user."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.windows import looked_at
from vcnef.grid import axes, is_even, is_scattered
from vcnef.suggest import suggestion

SHARE = 1e-4
"""Of a channel's spread, by which its mean may drift: solvers round, and a model is off by more."""


class Conserved(NamedTuple):
    """The channels whose mean every answer is to keep, and `why`, in words."""

    channels: tuple[str, ...]
    why: str


def conserved_means(data: Any, asked: str | Sequence[str], log: Sequence[str] = ()) -> Conserved:
    """Return the channels whose mean over the domain stays the same in all trajectories that are looked at.

    `asked` is "auto", or names of channels; those are taken, and a warning says where the data speak against them. Only
    where a mean over points is the integral are there any: on a grid of equal steps, whose points are the centres of
    cells. `log` names channels that are normalised in their logarithm, whose means a model cannot keep.
    """
    channels, named = data.problem.channels, () if asked == "auto" else tuple(asked)
    if not named and asked != "auto":
        return Conserved((), "none was asked for")
    _check_names(named, channels, log)
    obstacle = _obstacle(data)
    if obstacle is not None:
        if named:
            raise ValueError(
                f"data.conserve names {', '.join(named)}, but {obstacle}, so that a mean over points is no integral. "
                "Set data.conserve=[], or give the data on a grid of equal steps."
            )
        return Conserved((), obstacle)
    drifts = dict(zip(channels, _drifts(data), strict=True))
    if named:
        _doubt({name: drifts[name] for name in named})
        return Conserved(named, f"named by you; in the data {_spell(drifts, named)}")
    found = tuple(name for name in channels if drifts[name] <= SHARE and name not in log)
    if found:
        return Conserved(found, f"in the data {_spell(drifts, found)}")
    return Conserved((), _spell(drifts, channels))


def _check_names(named: Sequence[str], channels: Sequence[str], log: Sequence[str]) -> None:
    for name in named:
        if name not in channels:
            raise ValueError(f"data.conserve names {name!r}, which is no channel. {suggestion(name, channels)}")
        if name in log:
            raise ValueError(
                f"data.conserve names {name}, which data.log has normalised in its logarithm; the mean of that is "
                "another one. Leave it out of one of them."
            )


def _obstacle(data: Any) -> str | None:
    """Why a mean over points is no integral, or None."""
    if is_scattered(data.grid):
        return "the points are scattered"
    if not all(is_even(line) for line in axes(data.grid)):
        return "the grid is uneven"
    return None


def _drifts(data: Any) -> list[float]:
    """How far the mean of each channel leaves its first value at most, in units of the channel's spread."""
    u: Float[Tensor, "n t *x c"] = looked_at(data)
    means: Float[Tensor, "n t c"] = u.flatten(2, -2).mean(dim=2)
    drifts = (means - means[:, :1]).abs().amax(dim=(0, 1))
    # Of a channel that never changes there is nothing to keep.
    changes = u.flatten(0, -2).std(dim=0) > 0
    return torch.where(changes & drifts.isfinite(), drifts, torch.inf).tolist()


def _doubt(drifts: dict[str, float]) -> None:
    drifting = [name for name, drift in drifts.items() if not drift <= SHARE]
    if drifting:
        warnings.warn(
            f"data.conserve names {', '.join(drifting)}, but {_spell(drifts, drifting)}: every answer will be wrong by "
            "as much. Leave out what is not conserved. Where points lie on both ends of an axis, they are taken for "
            "the centres of cells, and a mean over them is no integral.",
            UserWarning,
            stacklevel=4,
        )


def _spell(drifts: dict[str, float], names: Sequence[str]) -> str:
    parts = [f"that of {name} by {drifts[name]:.1e}" for name in names if drifts[name] < float("inf")]
    said = f"means drift by so much of their channel's spread at most: {', '.join(parts)}"
    return said if parts else "no channel changes"
