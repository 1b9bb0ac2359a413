"""Train, valid and test: which trajectories of each file belong to which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

SPLITS = ("train", "valid", "test")
TEST_SHARE = 0.1
"""The benchmark's rule: a tenth of each file is its test set."""
VALID_SHARE = 0.05
"""A twentieth chooses checkpoints, so that the test set is touched by evaluation alone."""
SHUFFLE_SEED = 0
"""One for all data and versions: a surrogate is judged on what it was not trained on, years later too."""


def rows_of_split(data: Any, name: str, *, valid: float, test: float) -> Int[Tensor, " n"]:
    """Return which trajectories of a whole data set are those of one split, in ascending order."""
    if data.subset is not None:
        raise ValueError(f"These trajectories are already the {data.subset} split; split the whole data set.")
    return split_rows(data.parts, name, valid=valid, test=test, in_order=data.split_in_order, read=data.read)


def split_rows(
    parts: Sequence[int],
    name: str,
    *,
    valid: float = VALID_SHARE,
    test: float = TEST_SHARE,
    in_order: bool = False,
    read: Callable[[Tensor], Tensor] | None = None,
) -> Int[Tensor, " n"]:
    """Return the indices of one split in the concatenation of parts (files) of the given sizes, ascending.

    Rows are dealt out to test, valid and train in an order that is always the same for as many of them: a shuffled one,
    or, with `in_order`, that of the file. Each part is split by itself, but for parts of different sizes that share
    initial states by index, as files of one equation do: those are all split where the largest is. So a test state of
    one parameter value is never a training state of another. `read` gives the trajectories of some rows, to tell
    whether they share states.
    """
    if name not in SPLITS:
        raise ValueError(f"There is no split {name!r}; expected one of {', '.join(SPLITS)}.")
    if not 0.0 <= valid <= 0.5:
        raise ValueError(f"The validation share is {valid:g}; expected 0 to 0.5 of each file.")
    offsets = list(accumulate(parts, initial=0))[:-1]
    together = len(set(parts)) > 1 and read is not None and _shared(read(torch.tensor(offsets))[:, 0])
    rows = []
    for samples, offset in zip(parts, offsets, strict=True):
        size = max(parts) if together else samples
        chosen = _deal(torch.arange(size) if in_order else shuffled(size), name, valid, test)
        held_out = size - len(chosen)
        chosen = chosen[chosen < samples].sort().values
        if name == "train" and not len(chosen):
            raise ValueError(
                f"A file of {samples} trajectories begins with the same initial states as one of {max(parts)}, of "
                f"which {held_out} are held out: none would be left to train on. Give files of equal length."
            )
        rows.append(chosen + offset)
    return torch.cat(rows)


def shuffled(samples: int) -> Int[Tensor, " n"]:
    """Return so many row numbers in an order without meaning, the same on every machine and with every library.

    Each row has a random key of its own (splitmix64 of its number), so that fewer rows stand in the same order.
    """
    key = np.arange(1, samples + 1, dtype=np.uint64) + np.uint64(SHUFFLE_SEED)
    key *= np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    key ^= key >> np.uint64(31)
    return torch.from_numpy(np.argsort(key, kind="stable"))


def _shared(states: Float[Tensor, "n *x c"]) -> bool:
    """Whether two of them are the same; all experiments may begin at rest."""
    rows = states.flatten(1)
    moving = rows[(rows != rows[:, :1]).any(dim=1)]
    return len(moving.unique(dim=0)) < len(moving)


def _deal(rows: Int[Tensor, " n"], name: str, valid: float, test: float) -> Int[Tensor, " m"]:
    """The rows of one split: first come those of test, then those of valid, then those of train.

    Without a test split its rows are trained on, so that those of valid are the same in any case.
    """
    samples = len(rows)
    needed = 3 if test else 2 if valid else 1
    if samples < needed:
        what = "1 trajectory" if samples == 1 else f"{samples} trajectories"
        remedy = "Judge them with split='all'" if name == "test" else "Give more, all of them in one array or file"
        raise ValueError(f"A file or array of {what} cannot be split; at least {needed} are needed. {remedy}.")
    tested = max(1, int((test or TEST_SHARE) * samples))
    held_out = tested + (max(1, int(valid * samples)) if valid else 0)
    splits = {"test": rows[:tested], "valid": rows[tested:held_out], "train": rows[held_out:]}
    if not test:
        splits |= {"test": rows[:0], "train": torch.cat([splits["test"], splits["train"]])}
    return splits[name]
