"""How much memory there is."""

from __future__ import annotations

import os
from pathlib import Path

CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container may read how much of the machine's memory is its own."""
STATE_OF_MEMORY = "/proc/meminfo"
"""Where Linux says how much of it is free, or can be freed."""


def machine_memory() -> float:
    """Bytes of memory in this machine, or in this container of it; infinite where the system does not say."""
    limits = [_container_memory(path) for path in CONTAINER_LIMITS]
    try:
        return min(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")), *limits)
    except (AttributeError, ValueError, OSError):
        return min(limits)


def free_memory() -> float:
    """Bytes that can still be taken, as far as the system says."""
    try:
        lines = Path(STATE_OF_MEMORY).read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        return min(1024.0 * int(available.split()[1]), machine_memory())
    except (OSError, ValueError, StopIteration, IndexError):
        return machine_memory()


def _container_memory(path: str | Path) -> float:
    try:
        return float(Path(path).read_text())
    except (ValueError, OSError):  # "max", or no container
        return float("inf")
