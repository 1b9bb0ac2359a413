"""Which numbers are multiplied: what `precision` means, and torch's switches for single precision."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from threading import RLock
from typing import Any

import torch
from torch import Tensor

HALF: dict[str, torch.dtype | None] = {"fp32": None, "tf32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
"""Operands of products by precision, all summed in fp32; "fp32" and "tf32" are single precision, the latter with
faster products."""

_turn = RLock()
"""To use torch's switches, which are those of the whole process."""


@contextmanager
def multiplying(name: str) -> Iterator[None]:
    """Compute products of single precision within this context as "fp32" or "tf32" says; threads take turns.

    Otherwise one thread would multiply as another chose, and restore what the first one found before the last is done.
    """
    if name not in HALF:
        raise ValueError(f"precision is {name!r}; expected one of {', '.join(map(repr, HALF))}.")
    single = HALF[name] is None
    with _turn if single else nullcontext(), single_precision(name) if single else nullcontext():
        yield


@contextmanager
def single_precision(name: str) -> Iterator[None]:
    """Multiply and convolve numbers of single precision within this context as "fp32" or as "tf32" says."""
    fast, before = name == "tf32", _switches()
    _switch("high" if fast else "highest", fast, ["tf32" if fast else "ieee"] * len(before[-1]))
    try:
        yield
    finally:
        _switch(*before)


def _places() -> tuple[Any, ...]:
    backends = torch.backends
    return backends.cuda.matmul, backends.mkldnn.matmul, backends.cudnn.conv, backends.cudnn.rnn


def _switches() -> tuple[str | None, bool | None, list[str]]:
    """torch's two older switches, which do not answer where somebody has used the newer ones, and the newer ones."""
    products = convolutions = None
    with suppress(RuntimeError):
        products = torch.get_float32_matmul_precision()
    with suppress(RuntimeError):
        convolutions = torch.backends.cudnn.allow_tf32
    return products, convolutions, [place.fp32_precision for place in _places()]


def _switch(products: str | None, convolutions: bool | None, newer: list[str]) -> None:
    # All of them, the newer ones last: compilers ask the older ones, and those change the newer.
    if products is not None:
        torch.set_float32_matmul_precision(products)
    if convolutions is not None:
        torch.backends.cudnn.allow_tf32 = convolutions
    for place, value in zip(_places(), newer, strict=True):
        place.fp32_precision = value


def full_precision(x: Tensor) -> AbstractContextManager:
    """Disable autocasting on the device of `x`, as `models/vcnef.py` does for inputs and outputs."""
    return torch.autocast(x.device.type, enabled=False)


# --- bf16 on a CPU --------------------------------------------------------------------------------------------------

PRODUCT = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); assert (x @ x)[0, 0] == 64"


def cpu_multiplies_bf16() -> bool:
    """Return whether this CPU has instructions for products in bf16, and they work; it would be slow without."""
    able = _capabilities()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16")) and not bf16_ends_the_process()


@cache
def bf16_ends_the_process() -> bool:
    """Return whether a product in bf16 on this CPU is an illegal instruction, tried once, in a process that may end by
    it.

    Some virtual machines announce AMX and hide its tiles. With ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 in the environment,
    set before the process starts, oneDNN does without them.
    """
    if not _capabilities().get("amx_tile"):
        return False
    return subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True, check=False).returncode < 0


def _capabilities() -> Mapping[str, Any]:
    return getattr(torch.cpu, "get_capabilities", dict)()
