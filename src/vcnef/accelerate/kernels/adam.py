"""A step of Adam or AdamW for all weights as one kernel.

Of each number w with its gradient g, at step n:

    m ← m + (1 − β₁)(g − m),  v ← β₂ v + (1 − β₂) g²,  w ← w − η m / (1 − β₁ⁿ) / (√(v / (1 − β₂ⁿ)) + ε)

after g ← g + λ w (Adam) or w ← (1 − ηλ) w (AdamW). torch launches a kernel for every thirty tensors, in which one block
takes all of a matrix: 170 µs for the hundred weights of a small model on an H200, most of which is waiting.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from math import log2
from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.accelerate.kernels.operation import Example, Operation, Sizes
from vcnef.accelerate.kernels.requirements import SWITCH, lack, switched_off

BLOCK = 1024
"""Numbers of a program."""

WARPS = 4

State = tuple[Tensor, Tensor, Tensor, Tensor]
"""A weight w, its m and v, and the number n of its steps."""


def obstacle(device: torch.device, dtype: torch.dtype, *, contiguous: bool = True) -> str | None:
    """Return why the kernel cannot update weights of this kind, or None."""
    if switched_off():
        return f"{SWITCH} is 0"
    if dtype not in (torch.float32, torch.complex64):
        return f"weights are {dtype}"
    return lack(device) if contiguous else "a weight that is not in one piece of memory"


def obstacle_of_all(weights: Sequence[Tensor]) -> str | None:
    """Return the same of all weights together, which have to be on one device."""
    if len({each.device for each in weights}) > 1:
        return "weights are on several devices"
    for each in weights:
        reason = obstacle(each.device, each.dtype, contiguous=each.is_contiguous())
        if reason is not None:
            return reason
    return None


def chunk(states: Sequence[tuple[Tensor, ...]]) -> Int[Tensor, "chunks 6"]:
    """Return the numbers of all weights in chunks. A row has the addresses of a chunk's w, m and v and of its n, its
    place in the vector of all gradients, and its length."""
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
    """Change weights and moments in place; the counts n already include this step. The rate may be on the device."""
    with torch.cuda.device_of(gradients):
        adam_kernel[(len(chunks),)](
            *(chunks, gradients, rate, eps, decay),
            BETAS=tuple(betas),
            LOGARITHMS=tuple(map(log2, betas)),
            DECOUPLED=decoupled,
            RATE_ON_DEVICE=isinstance(rate, Tensor),
            BLOCK=BLOCK,
            num_warps=WARPS,
        )


@triton.jit(do_not_specialize=["rate", "eps", "decay"])
@no_type_check
def adam_kernel(
    chunks, gradients, rate, eps, decay,
    BETAS: tl.constexpr, LOGARITHMS: tl.constexpr, DECOUPLED: tl.constexpr, RATE_ON_DEVICE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """One program per chunk."""
    chunk = chunks + tl.program_id(0) * 6
    place = tl.arange(0, BLOCK)
    inside = place < tl.load(chunk + 5)
    weight_at, mean_at = _floats(chunk) + place, _floats(chunk + 1) + place
    square_at, step = _floats(chunk + 2) + place, tl.load(_floats(chunk + 3)).to(tl.float64)
    eta = tl.load(rate) if RATE_ON_DEVICE else rate

    w, g = tl.load(weight_at, mask=inside), tl.load(gradients + tl.load(chunk + 4) + place, mask=inside)
    m, v = tl.load(mean_at, mask=inside), tl.load(square_at, mask=inside)
    if DECOUPLED:
        w *= 1 - eta * decay
    else:
        g += decay * w
    m += (1 - BETAS[0]) * (g - m)
    v = BETAS[1] * v + (1 - BETAS[1]) * g * g
    # In double precision: in the first steps these are differences of almost equal numbers.
    of_mean = (1 - tl.exp2(step * LOGARITHMS[0])).to(tl.float32)
    of_square = (1 - tl.exp2(step * LOGARITHMS[1])).to(tl.float32)
    w -= eta / of_mean * m / (tl.sqrt(v) / tl.sqrt(of_square) + eps)
    tl.store(weight_at, w, mask=inside)
    tl.store(mean_at, m, mask=inside)
    tl.store(square_at, v, mask=inside)


@triton.jit
@no_type_check
def _floats(address):
    return tl.load(address).to(tl.pointer_type(tl.float32))


def step(
    states: Sequence[State],
    gradients: Sequence[Tensor],
    rate: float | Float[Tensor, ""],
    betas: tuple[float, float],
    eps: float,
    decay: float,
    decoupled: bool,
) -> list[Tensor]:
    """`update` for states whose chunks are not kept. Returns their w, m and v, changed in place."""
    flat = [(torch.view_as_real(each) if each.is_complex() else each).flatten() for each in gradients]
    update(chunk(states), torch.cat(flat), rate, betas, eps, decay, decoupled=decoupled)
    return list(chain.from_iterable(state[:3] for state in states))


def step_baseline(
    states: Sequence[State],
    gradients: Sequence[Tensor],
    rate: float | Float[Tensor, ""],
    betas: tuple[float, float],
    eps: float,
    decay: float,
    decoupled: bool,
) -> list[Tensor]:
    found = []
    for state, gradient in zip(states, gradients, strict=True):
        w, m, v, g = (torch.view_as_real(each) if each.is_complex() else each for each in (*state[:3], gradient))
        if decoupled:
            w = (1 - rate * decay) * w
        else:
            g = g + decay * w
        m = m + (1 - betas[0]) * (g - m)
        v = betas[1] * v + (1 - betas[1]) * g**2
        of_mean, of_square = (1 - beta ** state[3].double() for beta in betas)
        w = w - rate * (m / of_mean / ((v / of_square).sqrt() + eps)).float()
        found += [torch.view_as_complex(each) if state[0].is_complex() else each for each in (w, m, v)]
    return found


def examples(sizes: Sizes) -> Iterator[Example]:
    """Yield weights in one chunk and in several, of complex ones and of a single number, after different steps."""
    shapes = {(3,): torch.float32, (50, 45): torch.float32, (30, 20): torch.complex64, (): torch.float32}
    for decoupled in (False, True):
        for on_device in (False, True):
            rate = torch.tensor(0.1, device=sizes.device) if on_device else 0.1
            data = []
            for place, (shape, dtype) in enumerate(shapes.items()):
                w, m, g = torch.randn(3, *shape, dtype=dtype, device=sizes.device)
                v = torch.view_as_complex(torch.rand(*shape, 2)) if dtype.is_complex else torch.rand(shape)
                data += [w, m, v.to(sizes.device), torch.tensor(1.0 + 4 * place, device=sizes.device), g]
            label = ("decoupled" if decoupled else "coupled") + (", rate on the device" if on_device else "")
            yield Example(label, data, [], partial(_arrange, rate, decoupled))


def _arrange(rate: float | Tensor, decoupled: bool, *tensors: Tensor) -> tuple:
    """Return copies of the states, since a step changes them."""
    places = range(0, len(tensors), 5)
    states = [tuple(each.clone() for each in tensors[place : place + 4]) for place in places]
    return states, tensors[4::5], rate, (0.8, 0.95), 1e-3, 0.3, decoupled


ADAM = Operation("adam", step, step_baseline, obstacle, examples, differentiable=False, tolerance={torch.float32: 1e-6})
