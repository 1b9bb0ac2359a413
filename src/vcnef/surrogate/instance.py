"""Surrogates of one instance: whether they are asked about that one."""

from __future__ import annotations

from math import isclose
from typing import Any

from jaxtyping import Float
from torch import Tensor

from vcnef.problem import Problem

TOLERANCE = 0.05
"""Of its standard deviation, by which mean and deviation of an initial state may differ between resolutions."""


def describe_instance(number: int, u0: Float[Tensor, "1 *x c"]) -> dict[str, Any]:
    """What tells an instance from others: its number, and mean and standard deviation of its initial fields."""
    return {"number": number, "moments": _moments(u0)[0]}


def check_instance(
    instance: dict[str, Any] | None, problem: Problem, u0: Float[Tensor, "b *x c"], params: Float[Tensor, "b p"]
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
    for row, moments in enumerate(_moments(u0)):
        pairs = zip(problem.channels, instance["moments"], moments, strict=True)
        for channel, (mean, std), (other_mean, other_std) in pairs:
            if max(abs(other_mean - mean), abs(other_std - std)) > TOLERANCE * std + 1e-4 * abs(mean):
                raise ValueError(
                    f"The model is the solution from one initial state, trajectory {instance['number']} of its "
                    f"training data, whose {channel} is {mean:.3g} ± {std:.3g}; state {row} has {other_mean:.3g} ± "
                    f"{other_std:.3g}. Train another for it."
                )


def _moments(u0: Float[Tensor, "b *x c"]) -> list[list[list[float]]]:
    """Mean and standard deviation over space, of each sample and channel."""
    values = u0.double().flatten(1, -2)
    pairs = values.mean(dim=1), values.std(dim=1, correction=0)
    return [[list(pair) for pair in zip(*each, strict=True)] for each in zip(*(p.tolist() for p in pairs), strict=True)]
