"""Train, valid and test: which trajectories of each file belong to which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from jaxtyping import Int
from torch import Tensor

SPLITS = ("train", "valid", "test")
TEST_SHARE = 0.1
"""The benchmark's rule: the first tenth of each file is its test set."""
VALID_SHARE = 0.05
"""The next twentieth chooses checkpoints, so that the test set is touched by evaluation alone."""


def split_rows(parts: Sequence[int], name: str, *, valid: float = VALID_SHARE) -> Int[Tensor, " n"]:
    """Indices of one split in the concatenation of parts (files) of the given sizes.

    Each part is split by itself. Files of one equation share initial states by index, so a test state of one
    parameter value is never a training state of another.
    """
    if name not in SPLITS:
        raise ValueError(f"There is no split {name!r}; expected one of {', '.join(SPLITS)}.")
    if not 0.0 <= valid <= 0.5:
        raise ValueError(f"The validation share is {valid:g}; expected 0 to 0.5 of each file.")
    offsets = accumulate(parts, initial=0)
    return torch.cat(
        [torch.arange(*_bounds(n, name, valid)) + offset for n, offset in zip(parts, offsets, strict=False)]
    )


def _bounds(samples: int, name: str, valid: float) -> tuple[int, int]:
    if samples < 3:
        raise ValueError(f"A file of {samples} trajectories cannot be split; at least 3 are needed.")
    test = max(1, int(TEST_SHARE * samples))
    held_out = test + (max(1, int(valid * samples)) if valid else 0)
    return {"test": (0, test), "valid": (test, held_out), "train": (held_out, samples)}[name]
