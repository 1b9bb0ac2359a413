"""Surrogates of one instance: whether they are asked about that one."""

from __future__ import annotations

from math import isclose, pi
from typing import Any

import torch
from jaxtyping import Bool, Complex, Float
from torch import Tensor

from vcnef.grid import axes, is_scattered
from vcnef.problem import Problem

TOLERANCE = 0.05
"""Of its standard deviation, by which what describes an initial state may differ between resolutions."""
HIGHEST = {1: 7, 2: 3, 3: 1}
"""Number of the shortest waves along each axis that are compared."""


def describe_instance(
    number: int, problem: Problem, u0: Float[Tensor, "1 *x c"], grid: Float[Tensor, "*x D"]
) -> dict[str, Any]:
    """What tells an instance from others: its number, and of its initial fields mean, deviation and longest waves."""
    described = {"number": number, "moments": _moments(u0)[0]}
    if is_scattered(grid):
        return described
    points = min(u0.shape[1:-1])
    waves = _waves(problem, u0, grid, _highest(problem, points))[0]
    return described | {"points": points, "waves": torch.view_as_real(waves).tolist()}


def check_instance(
    instance: dict[str, Any] | None,
    problem: Problem,
    u0: Float[Tensor, "b *x c"],
    grid: Float[Tensor, "*x D"],
    params: Float[Tensor, "b *r p"],
) -> None:
    """Refuse other initial states and parameters than those that a surrogate of one instance is the solution for."""
    if instance is None:
        return
    for name, column in zip(problem.parameters, params.T.tolist(), strict=True):
        own = problem.ranges[name][0]
        if other := [value for value in column if not isclose(value, own, rel_tol=1e-4)]:
            raise ValueError(
                f"The model is the solution for {name}={own:g} alone, got {name}={other[0]:g}. Train another for it."
            )
    only = f"The model is the solution from one initial state, trajectory {instance['number']} of its training data"
    for row, moments in enumerate(_moments(u0)):
        pairs = zip(problem.channels, instance["moments"], moments, strict=True)
        for channel, (mean, std), (other_mean, other_std) in pairs:
            if max(abs(other_mean - mean), abs(other_std - std)) > _room(mean, std):
                raise ValueError(
                    f"{only}, whose {channel} is {mean:.3g} ± {std:.3g}; state {row} has {other_mean:.3g} ± "
                    f"{other_std:.3g}. Train another for it."
                )
    if (differs := _other_shape(instance, problem, u0, grid)).any():
        row, channel = differs.nonzero()[0].tolist()
        raise ValueError(
            f"{only}; the {problem.channels[channel]} of state {row} has its mean and deviation, but another shape, or "
            "the same elsewhere. Train another for it."
        )


def _other_shape(
    instance: dict[str, Any], problem: Problem, u0: Float[Tensor, "b *x c"], grid: Float[Tensor, "*x D"]
) -> Bool[Tensor, "b c"]:
    """Whether the longest waves of each state and channel differ; where they cannot be compared, they do not."""
    points = min(*u0.shape[1:-1], instance.get("points", 0))
    highest = _highest(problem, instance.get("points", 0))
    # A model may be older than this comparison.
    if "waves" not in instance or is_scattered(grid) or points <= 2 * highest:
        return torch.zeros(len(u0), len(problem.channels), dtype=torch.bool)
    trained = torch.view_as_complex(torch.tensor(instance["waves"], dtype=torch.float64))
    room = torch.tensor([_room(mean, std) for mean, std in instance["moments"]])
    numbers = torch.cartesian_prod(*[_numbers(highest).abs()] * problem.ndim).reshape(-1, problem.ndim).sum(dim=1)
    # A grid that leaves out points of another one may lie half a cell beside it.
    allowed = room[:, None] + trained.abs() * numbers * pi / points
    return ((_waves(problem, u0, grid, highest) - trained).abs() > allowed).any(dim=-1)


def _waves(
    problem: Problem, u0: Float[Tensor, "b *x c"], grid: Float[Tensor, "*x D"], highest: int
) -> Complex[Tensor, "b c n"]:
    """⟨u e^(−2πi k·s)⟩ of each sample and channel, s the parts of the domain, for all k of these numbers at most."""
    values = u0.cpu().movedim(-1, 1).to(torch.complex128)
    for line, (low, high) in zip(axes(grid.cpu().double()), problem.domain, strict=True):
        phase = ((line - low) / (high - low))[:, None] * _numbers(highest)
        # Takes one axis of space away and puts that of the waves last.
        values = torch.tensordot(values, torch.exp(-2j * pi * phase) / len(line), dims=([2], [0]))
    return values.flatten(2)


def _numbers(highest: int) -> Float[Tensor, " k"]:
    return torch.arange(-highest, highest + 1, dtype=torch.float64)


def _highest(problem: Problem, points: int) -> int:
    """That so many points along an axis resolve."""
    return min(HIGHEST[problem.ndim], (points - 1) // 2)


def _room(mean: float, std: float) -> float:
    return TOLERANCE * std + 1e-4 * abs(mean)


def _moments(u0: Float[Tensor, "b *x c"]) -> list[list[list[float]]]:
    """Mean and standard deviation over space, of each sample and channel."""
    values = u0.double().flatten(1, -2)
    pairs = values.mean(dim=1), values.std(dim=1, correction=0)
    return [[list(pair) for pair in zip(*each, strict=True)] for each in zip(*(p.tolist() for p in pairs), strict=True)]
