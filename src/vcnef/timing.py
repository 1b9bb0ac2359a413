"""Seconds and bytes that a call takes, on any device, and how both are written."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

REPEATS = 5
ENOUGH_SECONDS = 20.0
"""A slow call is not repeated for longer than this."""


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
    begun = time.perf_counter()
    call()
    synchronise(device)
    return time.perf_counter() - begun


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


def spell_seconds(value: int | float) -> str:
    """12.3 ms, 2.5 s or 1,234 s; limits lie where three digits would round up to a thousand."""
    size, unit = (1e3 * value, "ms") if value < 0.9995 else (value, "s")
    return f"{size:.3g} {unit}" if size < 999.5 else f"{size:,.0f} {unit}"


def spell_bytes(size: int | float) -> str:
    """512 B, 12.3 kB, 4.2 MB or 1,234 GB."""
    units = iter(("B", "kB", "MB", "GB"))
    unit = next(units)
    while size >= 999.5 and unit != "GB":
        size, unit = size / 1000, next(units)
    return f"{size:.3g} {unit}" if size < 999.5 else f"{size:,.0f} {unit}"
