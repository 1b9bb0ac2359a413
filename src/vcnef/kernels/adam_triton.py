"""The kernel of `adam`, which says what it computes; imported only where it runs."""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rate", "eps", "decay"])
@no_type_check
def adam(
    chunks,
    gradients,
    rate,
    eps,
    decay,
    BETAS: tl.constexpr,
    LOGARITHMS: tl.constexpr,
    DECOUPLED: tl.constexpr,
    RATE_ON_DEVICE: tl.constexpr,
    BLOCK: tl.constexpr,
):
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
