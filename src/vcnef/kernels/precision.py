"""Which numbers fused kernels multiply: a choice of the caller, who opens a context; without one no kernel runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

OPERANDS: dict[str, torch.dtype | None] = {
    "fp32": None,
    "tf32": None,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
"""Operands of the kernels' products, all summed in fp32; "fp32" is the plain code, "tf32" too, with faster products."""

_operands: ContextVar[torch.dtype | None] = ContextVar("operands", default=None)


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Within this context modules without gradients may run as fused kernels, with operands of that precision."""
    if name not in OPERANDS:
        raise ValueError(f"precision is {name!r}; expected one of {', '.join(map(repr, OPERANDS))}.")
    token, before = _operands.set(OPERANDS[name]), torch.get_float32_matmul_precision()
    if name == "tf32":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
        _operands.reset(token)


def operands() -> torch.dtype | None:
    """What the caller chose, or None for no kernels: they have no gradients, and a compiler fuses by itself."""
    return None if torch.compiler.is_compiling() or torch.is_grad_enabled() else _operands.get()
