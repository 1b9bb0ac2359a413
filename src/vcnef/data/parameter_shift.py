"""Whether a set that judges has other parameters than what is trained on, by more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import lgamma, log, sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.arrays import columns_of

CHANCE = 1e-4
"""How seldom sets that are drawn at random may look so."""
FAR, MANY = 0.5, 20
"""Beyond the range of so many values, in parts of it: so far a single one hardly gets by chance. Fewer values know less
of their range."""


def columns_over_time(data: Any) -> dict[str, Float[Tensor, " n"]]:
    """Return one number for each trajectory and parameter, by what it is; three where it changes with time.

    Those are its mean, smallest and largest value: neighbouring values of one trajectory are no independent draws.
    """
    columns = {}
    for name, values in columns_of(data.params.cpu().double(), data.problem).items():
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {
                f"the mean of {name} over time": values.mean(dim=1),
                f"the smallest {name}": values.amin(dim=1),
                f"the largest {name}": values.amax(dim=1),
            }
    return columns


def describe_shifts(
    name: str, judged: Mapping[str, Float[Tensor, " m"]], trained: Mapping[str, Float[Tensor, " n"]], *, given: bool
) -> Iterator[str]:
    """Say of each parameter, in a sentence with figures, if the set `name` has it otherwise than training.

    In a set that was `given` beside the data a single value far outside is enough; in one that was drawn from them
    there has to be more than chance puts there.
    """
    # Each parameter is asked three questions: below, above, and in between.
    chance = CHANCE / (3 * max(1, len(judged)))
    for parameter, found in judged.items():
        known = trained[parameter]
        if not len(found) or not len(known):
            continue
        outside = int(((found < known.min()) | (found > known.max())).sum())
        if outside and ((given and _is_far(found, known)) or _is_unlikely_outside(found, known, chance)):
            yield (
                f"{outside} of {len(found)} trajectories of the {name} set have {parameter} outside of the "
                f"{_range(known)} that is trained on: theirs is {_range(found)}. There the model extrapolates; "
                "train on such values too, or take its errors as those of extrapolation."
            )
        elif _is_distributed_otherwise(found, known, chance):
            yield (
                f"{parameter} is distributed otherwise in the {name} set than in training: half of its values lie in "
                f"{_middle(found)}, of those of training in {_middle(known)}. Errors on it are those of another mix of "
                "cases."
            )


def _is_unlikely_outside(found: Float[Tensor, " m"], known: Float[Tensor, " n"], chance: float) -> bool:
    """Whether so many of the smallest values, or of the largest, are hardly drawn into one set by chance."""
    for count in (int((found < known.min()).sum()), int((found > known.max()).sum())):
        if count and _log_chance_of_first(count, len(found), len(known)) < log(chance):
            return True
    return False


def _log_chance_of_first(count: int, drawn: int, others: int) -> float:
    """log of the chance that the first `count` of all are among those drawn: C(drawn, count) / C(all, count)."""
    all_of_them = drawn + others
    return lgamma(drawn + 1) - lgamma(drawn - count + 1) - lgamma(all_of_them + 1) + lgamma(all_of_them - count + 1)


def _is_far(found: Float[Tensor, " m"], known: Float[Tensor, " n"]) -> bool:
    """Whether a value lies far beyond the range, as it is and, of positive values, in the logarithm too."""
    scales = [(found, known)]
    if float(torch.cat([found, known]).min()) > 0:
        scales.append((found.log(), known.log()))
    beyond = []
    for values, trained in scales:
        low, high = float(trained.min()), float(trained.max())
        width = max(high - low, 1e-6 * max(abs(low), abs(high)))
        far = FAR * max(1.0, MANY / len(known)) * width
        beyond.append(max(float(values.max()) - high, low - float(values.min())) > far)
    return all(beyond)


def _is_distributed_otherwise(found: Float[Tensor, " m"], known: Float[Tensor, " n"], chance: float) -> bool:
    """The test of Kolmogorov and Smirnov, which errs to the safe side where values repeat."""
    values = torch.cat([found, known])
    shares = [
        torch.searchsorted(each.sort().values, values, right=True).double() / len(each) for each in (found, known)
    ]
    largest = float((shares[0] - shares[1]).abs().max())
    return largest > sqrt(-log(chance / 2) / 2 * (1 / len(found) + 1 / len(known)))


def _range(values: Float[Tensor, " n"]) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _middle(values: Float[Tensor, " n"]) -> str:
    low, high = torch.quantile(values, torch.tensor([0.25, 0.75], dtype=values.dtype)).tolist()
    return f"{low:.4g} to {high:.4g}"
