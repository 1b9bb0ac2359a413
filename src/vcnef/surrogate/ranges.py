"""The values that training data hold, by channel: what a surrogate may be trusted with."""

from __future__ import annotations

import torch

from vcnef.data import StoredTrajectories, Trajectories
from vcnef.data.rows import spread

ROWS = 512
"""Trajectories that are looked at where reading all of them would take long."""


def field_ranges(train: Trajectories | StoredTrajectories) -> dict[str, list[float]]:
    """Smallest and largest value of each channel, over all times and points."""
    rows = spread(len(train), min(len(train), ROWS))
    low, high = [], []
    for some in rows.split(16):
        u = train.read(some)
        low.append(u.flatten(0, -2).amin(dim=0))
        high.append(u.flatten(0, -2).amax(dim=0))
    ends = zip(torch.stack(low).amin(dim=0).tolist(), torch.stack(high).amax(dim=0).tolist(), strict=True)
    return {channel: list(pair) for channel, pair in zip(train.problem.channels, ends, strict=True)}
