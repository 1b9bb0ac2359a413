"""A step of Adam or AdamW for all weights as one kernel. What is right is what torch's optimisers do.

Of each number w with its gradient g, at step n:

    m ← m + (1 − β₁)(g − m),  v ← β₂ v + (1 − β₂) g²,  w ← w − η m / (1 − β₁ⁿ) / (√(v / (1 − β₂ⁿ)) + ε)

after g ← g + λ w (Adam) or w ← (1 − ηλ) w (AdamW). torch launches a kernel for every thirty tensors, in which one block
takes all of a matrix: 170 µs for the hundred weights of a small model on an H200, most of which is waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.kernels.weights import lack, switched_off

BLOCK = 1024
"""Numbers of a program."""
WARPS = 4


def serves(weights: Sequence[Tensor]) -> bool:
    """Whether these can be updated so: all in single precision, each in one piece, on a GPU that is served."""
    plain = all(each.dtype in (torch.float32, torch.complex64) and each.is_contiguous() for each in weights)
    devices = {each.device for each in weights}
    return plain and not switched_off() and len(devices) == 1 and lack(*devices) is None


def chunk(states: Sequence[tuple[Tensor, ...]]) -> Int[Tensor, "chunks 6"]:
    """Of each weight w, m, v and n in chunks: where in memory the numbers of each are, which are the chunk's own in the
    vector of all gradients, and how many there are."""
    rows, first = [], 0
    for weight, mean, square, count in states:
        size = weight.numel() * (2 if weight.is_complex() else 1)
        for begin in range(0, size, BLOCK):
            places = (each.data_ptr() + begin * 4 for each in (weight, mean, square))
            rows.append([*places, count.data_ptr(), first + begin, min(BLOCK, size - begin)])
        first += size
    return torch.tensor(rows, device=states[0][0].device)


def update(
    chunks: Int[Tensor, "chunks 6"],
    gradients: Float[Tensor, " all"],
    rate: float | Float[Tensor, ""],
    betas: tuple[float, float],
    eps: float,
    decay: float,
    *,
    decoupled: bool,
) -> None:
    """Weights and moments move; the counts are those of this step. The rate may live on the device."""
    from vcnef.kernels import adam_triton as kernels

    with torch.cuda.device_of(gradients):
        kernels.adam[(len(chunks),)](
            *(chunks, gradients, rate, eps, decay),
            BETAS=tuple(betas),
            LOGARITHMS=tuple(map(log2, betas)),
            DECOUPLED=decoupled,
            RATE_ON_DEVICE=isinstance(rate, Tensor),
            BLOCK=BLOCK,
            num_warps=WARPS,
        )
