"""Gradients in one piece of memory: a few kernels for all of them, whatever the number of weights."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn


def moving(weights: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    """Those with a gradient, complex ones first: their pairs of numbers have to begin at an even place."""
    return sorted((each for each in weights if each.grad is not None), key=lambda each: not each.is_complex())


@torch.no_grad()
def in_one_piece(weights: Iterable[nn.Parameter]) -> Float[Tensor, " all"]:
    """The gradients of `moving` weights as one vector, of which each is a part from then on."""
    chosen = moving(weights)
    parts = [torch.view_as_real(each.grad) if each.is_complex() else each.grad for each in chosen]
    if not parts:
        return torch.empty(0)
    if (whole := _piece(parts)) is not None:
        return whole
    whole = torch.cat([part.flatten() for part in parts])
    for weight, part, own in zip(chosen, parts, whole.split([part.numel() for part in parts]), strict=True):
        view = own.view(part.shape)
        weight.grad = torch.view_as_complex(view) if weight.is_complex() else view
    return whole


def _piece(parts: list[Tensor]) -> Tensor | None:
    """The vector that these are parts of, one after the other, if there is one."""
    memory, begin = parts[0].untyped_storage().data_ptr(), parts[0].storage_offset()
    end = begin
    for part in parts:
        next_to_it = part.untyped_storage().data_ptr() == memory and part.storage_offset() == end
        if not (next_to_it and part.is_contiguous() and part.dtype == parts[0].dtype):
            return None
        end += part.numel()
    return parts[0].as_strided((end - begin,), (1,))


def clip(weights: Iterable[nn.Parameter], largest: float) -> None:
    """g ← g / max(1, ‖g‖ / largest), with the norm of all gradients together."""
    whole = in_one_piece(weights)
    whole /= (torch.linalg.vector_norm(whole) / largest).clamp(min=1.0)
