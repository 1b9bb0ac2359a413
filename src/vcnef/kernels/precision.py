"""Which numbers fused kernels multiply: a choice of the caller, who opens a context; without one no kernel runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

import torch

OPERANDS: dict[str, torch.dtype | None] = {
    "fp32": None,
    "tf32": None,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
"""Operands of the kernels' products, all summed in fp32; "fp32" is the plain code, "tf32" too, with faster products."""
PRODUCTS = {"fp32": "highest", "tf32": "high"}
"""How torch multiplies matrices of single precision; convolutions go with them."""

Packed = TypeVar("Packed")


class _Choice(NamedTuple):
    operands: torch.dtype | None
    packed: dict[object, object] | None


NO_CHOICE = _Choice(None, None)
_choice: ContextVar[_Choice] = ContextVar("choice", default=NO_CHOICE)


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Within this context modules without gradients may run as fused kernels, with operands of that precision.

    Their weights are packed once per context and must not change in it.
    """
    if name not in OPERANDS:
        raise ValueError(f"precision is {name!r}; expected one of {', '.join(map(repr, OPERANDS))}.")
    token, cudnn = _choice.set(_Choice(OPERANDS[name], {})), torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), cudnn.allow_tf32
    if name in PRODUCTS:
        torch.set_float32_matmul_precision(PRODUCTS[name])
        cudnn.allow_tf32 = name == "tf32"
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        cudnn.allow_tf32 = before[1]
        _choice.reset(token)


def operands() -> torch.dtype | None:
    """What the caller chose, or None for no kernels: they have no gradients, and a compiler fuses by itself."""
    return None if torch.compiler.is_compiling() or torch.is_grad_enabled() else _choice.get().operands


def packed_once(key: object, pack: Callable[[], Packed]) -> Packed:
    """What `pack` gives the first time for this key in the context of precision; outside of one, always anew."""
    packed = _choice.get().packed
    if packed is None:
        return pack()
    if key not in packed:
        packed[key] = pack()
    return packed[key]
