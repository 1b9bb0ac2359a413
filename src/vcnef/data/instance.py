"""One trajectory out of many, for models that are the solution of one instance."""

from __future__ import annotations

from dataclasses import replace

import torch

from vcnef.data.stored import StoredTrajectories
from vcnef.data.trajectories import Trajectories


def pick_instance(data: Trajectories | StoredTrajectories, number: int) -> Trajectories:
    """Trajectory `number` of all files together, in memory."""
    if not 0 <= number < len(data):
        raise ValueError(
            f"instance is {number}, but the data have {len(data)} trajectories. Choose one from 0 to {len(data) - 1}."
        )
    row = torch.tensor([number])
    return Trajectories(
        data.read(row), data.t, data.grid, data.params[row], data.problem, data.attributes,
        subset="instance", split_in_order=data.split_in_order,
    )  # fmt: skip


def hide_truth(data: Trajectories) -> Trajectories:
    """The same trajectories with their initial states at all times: enough to train on the equation, and no more."""
    return replace(data, u=data.u[:, :1].expand_as(data.u), subset="train")
