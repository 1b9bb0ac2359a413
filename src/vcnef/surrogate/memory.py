"""How many points fit into a given amount of memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
LIVE = 8
"""Tensors as large as the largest one that are alive at once: 4 to 6 were measured."""


def parse_bytes(limit: str | float | int) -> float:
    """Bytes of "2GB", "500 MB" or a plain number."""
    match = re.fullmatch(r"\s*([\d.]+(?:e\+?\d+)?)\s*([KMGT]?i?B?)\s*", str(limit), re.IGNORECASE)
    unit = match and match[2].upper().replace("I", "")
    try:
        size = float(match[1]) * UNITS[unit if not unit or unit.endswith("B") else unit + "B"]
    except (TypeError, ValueError, KeyError):
        size = 0.0
    if not size > 0:
        raise ValueError(f"memory_limit is {limit!r}; expected a size such as '2GB', '500MB' or a number of bytes.")
    return size


def points_within(limit: str | float | int | None, usual: int, frame: int, largest: Callable[[], int]) -> int:
    """Points (samples · times · points of the grid) that may be computed at once: as `usual`, or fewer.

    `frame` is the number of points of one time of one sample, `largest` the bytes of the largest tensor on its way.
    """
    if limit is None:
        return usual
    allowed, needed = parse_bytes(limit), LIVE * largest()
    if needed > allowed:
        raise ValueError(
            f"One time of one sample on {frame} points needs about {needed / 1e6:.3g} MB, more than "
            f"memory_limit={limit!r}. Raise the limit or give u0 on a coarser grid."
        )
    return min(int(allowed / needed) * frame, usual)


def largest_tensor(compute: Callable[[], Tensor]) -> int:
    """Bytes of the largest tensor that is made on the way."""
    with torch.no_grad(), _Watch() as watch:
        compute()
    return watch.largest


class _Watch(TorchDispatchMode):
    """Notes the largest tensor that any operation makes; attention has some that no layer returns."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 1

    def __torch_dispatch__(self, operation: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        made = operation(*args, **(kwargs or {}))
        # A view, of a weight for instance, is not made.
        known = {each.untyped_storage().data_ptr() for each in tree_leaves(args) if isinstance(each, Tensor)}
        for each in tree_leaves(made):
            if isinstance(each, Tensor) and each.untyped_storage().data_ptr() not in known:
                self.largest = max(self.largest, each.nbytes)
        return made
