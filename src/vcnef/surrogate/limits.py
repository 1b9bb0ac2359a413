"""How large a network may become, asked while it is built without memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules import module as modules

from vcnef.data.machine import machine_memory
from vcnef.spelling import spell_bytes

MOST_WEIGHTS = 20_000
"""Tensors of one network; the largest of ours has some hundreds."""
BYTES_OF_A_NUMBER = 4


class TooLargeError(ValueError):
    """A network has more weights than it may have."""


@contextmanager
def limited_to(most: int, most_numbers: int | float) -> Iterator[None]:
    """Stop the building of a network that has more tensors, or numbers in them."""
    count, numbers = 0, 0.0

    def register(module: Any, name: str, value: Tensor | None) -> None:
        nonlocal count, numbers
        count += 1
        numbers += 0 if value is None else value.numel()
        if count > most or numbers > most_numbers:
            raise TooLargeError(f"more than {count - 1} tensors of {numbers:.3g} numbers")

    handle = modules.register_module_parameter_registration_hook(register)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def within_memory(name: str) -> Iterator[None]:
    """Build without memory inside, and refuse a network whose weights this machine cannot hold.

    What else goes wrong is left to the building with memory: a builder of one's own may need values.
    """
    memory = machine_memory()
    try:
        with torch.device("meta"), limited_to(MOST_WEIGHTS, memory / BYTES_OF_A_NUMBER):
            yield
    except TooLargeError as error:
        raise ValueError(
            f"The model {name!r} with these options is larger than a machine with {spell_bytes(int(memory))} of memory "
            f"can hold: {error}. Choose a smaller width or depth."
        ) from None
    except Exception as error:
        # Torch has no class of its own for sizes that it cannot count.
        if isinstance(error, OverflowError) or "overflow" in str(error).lower():
            raise ValueError(f"The model {name!r} with these options is too large. Choose a smaller width.") from None
