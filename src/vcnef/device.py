"""Where to compute: a device by its name, or the best one that is there."""

from __future__ import annotations

import os

import torch


def choose_device(name: torch.device | str | None = None) -> torch.device:
    """The device of that name, if this machine has it; without one a GPU, else the processor.

    Where a launcher has started a process per GPU, each gets its own.
    """
    try:
        chosen = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ValueError(
            f"The device is {str(name)!r}, which this machine does not have; expected cpu, cuda or cuda:0. "
            "Leave it out to choose."
        ) from None
    if chosen.type == "meta":
        raise ValueError("The device is 'meta', on which nothing has values; expected cpu, cuda or cuda:0.")
    if chosen.type == "cuda" and chosen.index is None and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return chosen
