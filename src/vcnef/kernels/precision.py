"""Which numbers fused kernels multiply: a choice of the caller, who opens a context; without one no kernel runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import torch

OPERANDS: dict[str, torch.dtype | None] = {
    "fp32": None,
    "tf32": None,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
"""Operands of the kernels' products, all summed in fp32; "fp32" is the plain code, "tf32" too, with faster products."""

Packed = TypeVar("Packed")


class _Choice(NamedTuple):
    operands: torch.dtype | None
    packed: dict[object, object] | None


NO_CHOICE = _Choice(None, None)
_choice: ContextVar[_Choice] = ContextVar("choice", default=NO_CHOICE)
_turn = RLock()
"""To use torch's switches, which are those of the whole process."""


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Within this context modules without gradients may run as fused kernels, with operands of that precision.

    Their weights are packed once per context and must not change in it. Threads take turns with "fp32" and "tf32".
    """
    if name not in OPERANDS:
        raise ValueError(f"precision is {name!r}; expected one of {', '.join(map(repr, OPERANDS))}.")
    token = _choice.set(_Choice(OPERANDS[name], {}))
    try:
        with _alone(name) if OPERANDS[name] is None else nullcontext():
            yield
    finally:
        _choice.reset(token)


@contextmanager
def _alone(name: str) -> Iterator[None]:
    # Else one thread would multiply as another chose, and what the first one found be restored before the last is done.
    with _turn, single_precision(name):
        yield


@contextmanager
def single_precision(name: str) -> Iterator[None]:
    """Within this context torch multiplies and convolves numbers of single precision as "fp32" or as "tf32"."""
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


def _switch(products: str | None, convolutions: bool | None, each: list[str]) -> None:
    # All of them, the newer ones last: compilers ask the older ones, and those change the newer.
    if products is not None:
        torch.set_float32_matmul_precision(products)
    if convolutions is not None:
        torch.backends.cudnn.allow_tf32 = convolutions
    for place, value in zip(_places(), each, strict=True):
        place.fp32_precision = value


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
