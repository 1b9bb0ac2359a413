"""Train, valid and test: which trajectories of each file belong to which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import torch
from jaxtyping import Float, Int
from torch import Tensor

SPLITS = ("train", "valid", "test")
TEST_SHARE = 0.1
"""The benchmark's rule: the first tenth of each file is its test set."""
VALID_SHARE = 0.05
"""The next twentieth chooses checkpoints, so that the test set is touched by evaluation alone."""


def split_rows(
    parts: Sequence[int],
    name: str,
    *,
    valid: float = VALID_SHARE,
    read: Callable[[Tensor], Tensor] | None = None,
) -> Int[Tensor, " n"]:
    """Indices of one split in the concatenation of parts (files) of the given sizes.

    Each part is split by itself, but for parts of different sizes that share initial states by index, as files of one
    equation do: those are all split where the largest is. So a test state of one parameter value is never a training
    state of another. `read` gives the trajectories of some rows, to tell whether they share states.
    """
    if name not in SPLITS:
        raise ValueError(f"There is no split {name!r}; expected one of {', '.join(SPLITS)}.")
    if not 0.0 <= valid <= 0.5:
        raise ValueError(f"The validation share is {valid:g}; expected 0 to 0.5 of each file.")
    offsets = list(accumulate(parts, initial=0))[:-1]
    together = len(set(parts)) > 1 and read is not None and _shared(read(torch.tensor(offsets))[:, 0])
    rows = []
    for samples, offset in zip(parts, offsets, strict=True):
        low, high = _bounds(max(parts) if together else samples, name, valid)
        if name == "train" and low >= samples:
            raise ValueError(
                f"A file of {samples} trajectories begins with the same initial states as one of {max(parts)}, of "
                f"which {low} are held out: none would be left to train on. Give files of equal length."
            )
        rows.append(torch.arange(min(low, samples), min(high, samples)) + offset)
    return torch.cat(rows)


def _shared(states: Float[Tensor, "n *x c"]) -> bool:
    """Whether two of them are the same; all experiments may begin at rest."""
    rows = states.flatten(1)
    moving = rows[(rows != rows[:, :1]).any(dim=1)]
    return len(moving.unique(dim=0)) < len(moving)


def _bounds(samples: int, name: str, valid: float) -> tuple[int, int]:
    if samples < 3:
        what = "1 trajectory" if samples == 1 else f"{samples} trajectories"
        remedy = "Judge them with split='all'" if name == "test" else "Give more, all of them in one array or file"
        raise ValueError(f"A file or array of {what} cannot be split; at least 3 are needed. {remedy}.")
    test = max(1, int(TEST_SHARE * samples))
    held_out = test + (max(1, int(valid * samples)) if valid else 0)
    return {"test": (0, test), "valid": (test, held_out), "train": (held_out, samples)}[name]
