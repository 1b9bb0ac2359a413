"""Seconds and bytes that a call takes, on any device."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

REPEATS = 5
ENOUGH_SECONDS = 20.0
"""A slow call is not repeated for longer than this."""


clock: Callable[[], float] = time.perf_counter
"""What seconds are read from. Benchmarks that compute on one thread of a shared machine set `time.process_time`, so
that the work of others does not count; it counts neither other processes nor what is waited for."""


def time_model(call: Callable[[], Any], device: torch.device | str = "cpu", repeats: int = REPEATS) -> float:
    """Median of the seconds that `call()` takes, after one call that is not counted.

    On a GPU the clock stops when the work is done, not when it has been handed over.
    """
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; expected at least 1. Give a positive number of measurements.")
    call()
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < ENOUGH_SECONDS:
        seconds.append(time_once(call, device))
    return median(seconds)


def time_once(call: Callable[[], Any], device: torch.device | str = "cpu") -> float:
    """Seconds of a single call."""
    synchronise(device)
    begun = clock()
    call()
    synchronise(device)
    return clock() - begun


def peak_memory(call: Callable[[], Any], device: torch.device | str = "cpu") -> int | None:
    """Bytes of GPU memory in use at the peak of `call()`, weights and inputs included; None without a CUDA device."""
    if torch.device(device).type != "cuda":
        return None
    synchronise(device)
    torch.cuda.reset_peak_memory_stats(device)
    call()
    synchronise(device)
    return torch.cuda.max_memory_allocated(device)


def synchronise(device: torch.device | str) -> None:
    """Wait until the device has done what it was given."""
    if torch.device(device).type != "cpu":
        torch.accelerator.synchronize(device)
