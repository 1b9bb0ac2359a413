"""Whether data look like a symmetry that their user vouches for, where the equation is not known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.data.augment import Permute, Reflect, Setting, Shift, Symmetry
from vcnef.data.rows import spread
from vcnef.problem import SPACE

DRAWS = 199
TELLING = 2.0
"""Means are off where they are so many times as large as in every draw."""
FEWEST = 8
NUMBERS = 2**19
"""Of all frames that are looked at; a look takes seconds."""
ROUNDING = 1e-6
FIRST = "in the first frame"


class Finding(NamedTuple):
    """What was found, in words, and whether it speaks against the symmetry."""

    words: str
    doubtful: bool = False


def examine(symmetry: Symmetry, data: Any) -> Finding:
    """Compare trajectories with transformed ones.

    Where fields are as likely as their transforms, means over samples are, up to chance, those of data of which each
    sample is transformed by a draw of its own. Initial states may be drawn otherwise; that says nothing of the
    equation. But where they are drawn so, what follows from them has to be so, too.
    """
    name = type(symmetry).__name__.lower()
    if not isinstance(symmetry, Shift | Reflect | Permute):
        return Finding(f"{name}: vouched for by you; data cannot show it")
    rows = _independent(data)
    if len(rows) < FEWEST:
        return Finding(f"{name}: vouched for by you; {len(rows)} trajectories are too few or too large to test it on")
    last = len(data.t) - 1
    u = data.read(rows)[:, [0, min(1, last), last]]
    u = u / u.flatten(0, -2).abs().amax(dim=0).clamp(min=torch.finfo(u.dtype).tiny)
    plain = replace(symmetry, stride=1) if isinstance(symmetry, Shift) else symmetry
    transform = plain.bind(Setting(data.problem, data.t.cpu(), data.grid.cpu()))
    frames, generator = torch.tensor([[0, min(1, last), last]]), torch.Generator().manual_seed(0)
    drawn = [_sizes(transform(u, frames, generator)) for _ in range(DRAWS)]
    off = [each for each in _sizes(u).items() if _is_off(*each, drawn)]
    count = len(rows)
    if not off:
        return Finding(f"{name}: vouched for by you; {count} trajectories look alike under it")
    what = off[0][0]
    if what.endswith(FIRST):
        return Finding(
            f"{name} is vouched for, but the initial states of {count} trajectories already differ under it ({what}). "
            "That is right if they were only drawn so, and wrong if the equation depends on the place or direction.",
            doubtful=True,
        )
    return Finding(
        f"{name} is vouched for, but {count} trajectories that begin alike under it do not go on so ({what}). "
        "Leave it out, unless you know better.",
        doubtful=True,
    )


def _independent(data: Any) -> Int[Tensor, " b"]:
    """Some trajectories, with no initial state twice: samples of several parameter values may share them."""
    most = NUMBERS // (3 * prod(data.resolution) * len(data.problem.channels))
    rows = spread(len(data), min(len(data), most))
    states = data.read(rows)[:, 0].flatten(1)
    _, group = torch.unique(states, dim=0, return_inverse=True)
    seen: set[int] = set()
    chosen = []
    for row, number in zip(rows.tolist(), group.tolist(), strict=True):
        if number not in seen:
            seen.add(number)
            chosen.append(row)
    return torch.tensor(chosen, dtype=torch.long)


def _sizes(u: Float[Tensor, "b 3 *x c"]) -> dict[str, tuple[Tensor, Tensor]]:
    """By name of a quantity: the mean squares over space, per channel, of its mean over samples, and of itself; and the
    squares of the mean over both."""
    sizes = {}
    for name, values in _quantities(u):
        flat = values.flatten(1, -2)
        scale = flat.square().mean(dim=(0, 1))
        sizes[f"the mean at each point of {name}"] = flat.mean(dim=0).square().mean(dim=0), scale
        sizes[f"the mean of {name}"] = flat.mean(dim=(0, 1)).square(), scale
    return sizes


def _quantities(u: Float[Tensor, "b 3 *x c"]) -> Iterator[tuple[str, Float[Tensor, "b *x c"]]]:
    """Those of the first frame, and then those that the equation has made."""
    first, second, last = u.unbind(dim=1)
    for when, state in ((FIRST, first), ("in the last frame", last)):
        yield f"the fields {when}", state
        yield f"their squares {when}", state.square()
        for axis, name in enumerate(SPACE[: u.ndim - 3], start=1):
            yield f"their cubed slopes along {name} {when}", _slope(state, axis) ** 3
    change = second - first
    yield "the squared change to the second frame", change.square()
    for axis, name in enumerate(SPACE[: u.ndim - 3], start=1):
        yield f"change to the second frame times slope along {name}", change * _slope(first, axis)


def _slope(state: Tensor, axis: int) -> Tensor:
    return state.roll(-1, axis) - state.roll(1, axis)


def _is_off(name: str, found: tuple[Tensor, Tensor], drawn: list[dict[str, tuple[Tensor, Tensor]]]) -> bool:
    size, scale = found
    most = torch.stack([each[name][0] for each in drawn]).amax(dim=0)
    return bool(((size > TELLING * most) & (size > ROUNDING * scale)).any())
