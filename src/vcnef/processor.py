"""What a processor announces and cannot do."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
FIRST = 8192
"""Characters that hold what it says of the first core."""

LARGEST_PALETTE = bytes.fromhex("53 b81d000000 31c9 0fa2 5b c3")
"""x86-64 code: eax of cpuid(0x1d, 0), the number of layouts that the tiles of AMX may have."""

ISA = "ONEDNN_MAX_CPU_ISA"
WITHOUT_TILES = "AVX512_CORE_FP16"
"""What every processor with AMX has beside it."""


def avoid_broken() -> None:
    """Keep oneDNN from the tiles of AMX where a virtual machine announces them and hides their layouts: it takes these
    for empty then, and a product in bf16 ends in an illegal instruction. It must be said before oneDNN is first used; a
    choice of the user's (`ONEDNN_MAX_CPU_ISA`) stands."""
    if ISA not in os.environ and _announces_tiles() and _largest_palette() == 0:
        os.environ[ISA] = WITHOUT_TILES


def _announces_tiles() -> bool:
    if platform.machine() != "x86_64" or not CPUINFO.exists():
        return False
    with CPUINFO.open() as about:
        return "amx_tile" in about.read(FIRST)  # there may be hundreds of cores, all alike


def _largest_palette() -> int | None:
    """None where no code may be run that was not there from the start."""
    try:
        with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as memory:
            memory.write(LARGEST_PALETTE)
            place = ctypes.c_char.from_buffer(memory)
            found = int(ctypes.CFUNCTYPE(ctypes.c_uint32)(ctypes.addressof(place))())
            del place  # memory that somebody looks into is not given back
            return found
    except OSError:
        return None
