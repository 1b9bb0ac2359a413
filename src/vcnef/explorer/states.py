"""Initial states that a page can ask for: shapes with a name, random ones with a seed, modes on top, drawn lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import pi
from types import MappingProxyType

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.grid import cell_centres
from vcnef.pde import Equation
from vcnef.problem import Problem

RANDOM = "random"
HIGHEST_MODE = 4
"""Of random states of a problem whose equation is not known."""
PART = 0.6
"""Of half the trained range of a field that a named shape of size one takes."""

Ranges = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Shape:
    """What an initial state looks like: a preset for all channels, and for some of them modes or a drawn line."""

    preset: str = "sine"
    seed: int = 0
    modes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """By channel the amplitudes of sin(2π k s) for k = 1, 2, …, in units of the field, added to the preset."""
    drawn: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """By channel values at the centres of equal cells, in place of the preset; in 1D."""


def make_state(
    shape: Shape, problem: Problem, ranges: Ranges, known: Equation | None, points: int | Sequence[int]
) -> Float[Tensor, "1 *x c"]:
    """Return the initial state on so many cells along each axis."""
    parts = _parts(problem.ndim, points)
    if shape.preset == RANDOM and known is not None:
        u0 = known.initial_states([0], seed=shape.seed, resolution=points, dtype=torch.float64)[0]
    else:
        u0 = torch.stack([_plain(shape, parts, ranges, channel, problem) for channel in problem.channels], dim=-1)
    for channel, values in shape.drawn.items():
        u0[..., problem.channels.index(channel)] = _resample(values, len(u0), problem.closes[0])
    for channel, amplitudes in shape.modes.items():
        for number, amplitude in enumerate(amplitudes, start=1):
            u0[..., problem.channels.index(channel)] += amplitude * _waves(parts, number)
    return u0[None].float()


def level(channel: str, ranges: Ranges) -> tuple[float, float]:
    """Return middle and half width of the values that a channel had in training; (0, 1) where they are not known."""
    low, high = ranges.get(channel, (-1.0, 1.0))
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    # A field that swings about zero is not meant to have a mean.
    return (0.0 if abs(middle) < 0.5 * half else middle), half or 1.0


def _plain(
    shape: Shape, parts: Float[Tensor, "*x D"], ranges: Ranges, channel: str, problem: Problem
) -> Float[Tensor, " *x"]:
    middle, half = level(channel, ranges)
    if shape.preset == RANDOM:
        values = _random(parts, shape.seed, problem.channels.index(channel))
    else:
        values = PRESETS[shape.preset](parts)
    return middle + PART * half * values


def _parts(ndim: int, points: int | Sequence[int]) -> Float[Tensor, "*x D"]:
    """Return coordinates as parts of the domain, between 0 and 1."""
    return cell_centres(((0.0, 1.0),) * ndim, points, dtype=torch.float64)


def _waves(parts: Float[Tensor, "*x D"], number: int, phase: float = 0.0) -> Float[Tensor, " *x"]:
    return torch.sin(2 * pi * number * parts + phase).prod(dim=-1)


def _box(parts: Float[Tensor, "*x D"]) -> Float[Tensor, " *x"]:
    return ((parts - 0.5).abs() < 0.2).all(dim=-1).to(parts.dtype)


def _bump(parts: Float[Tensor, "*x D"]) -> Float[Tensor, " *x"]:
    return torch.exp(-((parts - 0.5) ** 2).sum(dim=-1) / (2 * 0.08**2))


def _random(parts: Float[Tensor, "*x D"], seed: int, stream: int) -> Float[Tensor, " *x"]:
    """Return a sum of waves of random numbers, phases and sizes, largest value one."""
    generator = np.random.default_rng([seed, stream])
    values = torch.zeros(parts.shape[:-1], dtype=parts.dtype)
    for _ in range(4):
        numbers = torch.from_numpy(generator.integers(-HIGHEST_MODE, HIGHEST_MODE + 1, parts.shape[-1]))
        size, phase = generator.random(2)
        values += size * torch.sin(2 * pi * ((parts * numbers).sum(dim=-1) + phase))
    return values / values.abs().max().clamp(min=1e-12)


def _resample(values: Sequence[float], points: int, periodic: bool) -> Float[Tensor, " n"]:
    """Linear between the centres of cells, and around the end where the domain is periodic."""
    centres = (np.arange(len(values)) + 0.5) / len(values)
    wanted = (np.arange(points) + 0.5) / points
    return torch.from_numpy(
        np.interp(wanted, centres, np.asarray(values, dtype=np.float64), period=1.0 if periodic else None)
    )


PRESETS: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {
        "sine": lambda parts: _waves(parts, 1),
        "two sines": lambda parts: 0.6 * _waves(parts, 1) + 0.4 * _waves(parts, 3, 1.0),
        "box": _box,
        "bump": _bump,
    }
)
NAMES = (*PRESETS, RANDOM)
