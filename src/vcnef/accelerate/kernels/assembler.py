"""Triton's assembler: one that Triton 3.6 ships miscompiles these kernels, and it ships a newer one beside it."""

from __future__ import annotations

import os

MISCOMPILES = ("12.8",)
"""Versions of ptxas whose optimiser breaks products of matrices in parts on Hopper: wrong numbers, illegal addresses.
The same code is right without optimisation, and by 12.9 and 13.0 with it."""


def avoid_broken() -> None:
    """Let Triton use its newer assembler, the one for Blackwell, where the default one is broken; a choice of the
    user's (`TRITON_PTXAS_PATH`) stands."""
    from triton import knobs

    if "TRITON_PTXAS_PATH" not in os.environ and knobs.nvidia.ptxas.version in MISCOMPILES:
        os.environ["TRITON_PTXAS_PATH"] = knobs.nvidia.ptxas_blackwell.path
