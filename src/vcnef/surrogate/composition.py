"""Answers at any later time, composed of those within a window."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.history import go_on
from vcnef.models.derivative import differentiating

MOST_WINDOWS = 100_000
"""One after the other, up to the last time; more are a time in another unit, or a wait without end."""
ROUNDING = 1e-5
"""Of a window; times of single precision are off by so much at most."""

FlowMap = Callable[[Tensor, Tensor, float], Tensor]
"""From states `b *x c`, times since them `t` or `b t` up to a window, and the time from u0 to them, to `b t *x c`."""


def compose(
    flow: FlowMap,
    u0: Float[Tensor, "b *_ c"],
    t: Float[Tensor, " t"] | Float[Tensor, "b t"],
    window: float,
    earlier: tuple[float, ...] = (),
) -> Float[Tensor, "b t *x c"]:
    """u(t) = φ_{t − k w}(φ_w(… φ_w(u₀))) with k whole windows w before t; all times within a window are one question.

    Where u0 is a history, `earlier` says how long before it the other frames are, the oldest first. A window is asked
    for those that the next one begins with.

    >>> clock = lambda u, t, begin: u[:, None] + t[:, None, None]
    >>> compose(clock, torch.zeros(1, 1, 1), torch.tensor([0.5, 2.5]), window=1.0).flatten()
    tensor([0.5000, 2.5000])
    """
    host = t.detach().cpu().double()
    before = windows_before(host, window).long()
    frame = u0.shape[2:] if earlier else u0.shape[1:]
    answer = u0.new_empty(len(u0), t.shape[-1], *frame)
    # What the next window needs beside its beginning.
    within = tuple(window - ago for ago in earlier if ago < (1 - ROUNDING) * window)
    state, last = u0, int(before.max()) if before.numel() else -1
    for number in range(last + 1):
        mine = before == number
        asked = mine if mine.ndim == 1 else mine.any(dim=0)
        times = _bounded(t[..., asked.to(t.device)] - number * window, window)
        count = times.shape[-1]
        end_is_asked = count and bool((host[..., asked][..., -1] >= (number + 1 - ROUNDING) * window).all())
        # A later answer does not depend on an earlier time that was asked for: the end of a window is no such time.
        end_is_asked = end_is_asked and not differentiating() and not earlier
        if number < last and not end_is_asked:
            further = times.new_tensor((*within, window)).expand(*times.shape[:-1], -1)
            times = torch.cat((times, further), dim=-1)
        u = flow(state, times, number * window)
        if mine.ndim == 1:
            answer[:, asked] = u[:, :count]
        else:
            chosen = mine[:, asked].to(u.device).view(len(u0), count, *[1] * len(frame))
            answer[:, asked] = torch.where(chosen, u[:, :count], answer[:, asked])
        state = go_on(state, u[:, count:]) if earlier and number < last else u[:, -1]
    return answer


def _bounded(times: Float[Tensor, "*b t"], window: float) -> Float[Tensor, "*b t"]:
    """Within a window; what rounding put outside keeps its derivative."""
    return times + (times.clamp(0.0, window) - times).detach()


def windows_before(t: Float[Tensor, "*b t"], window: float) -> Float[Tensor, "*b t"]:
    """How many whole windows lie before each time; at the end of a window, those before that one."""
    return ((t / window - ROUNDING).ceil() - 1).clamp(min=0)


def check_reach(t: Float[Tensor, "*b t"], window: float, what: str = "windows") -> None:
    """Refuse times that only an endless walk reaches."""
    last = float(t.detach().max()) if t.numel() else 0.0
    if last / window > MOST_WINDOWS:
        raise ValueError(
            f"t goes to {last:.4g}, which is {last / window:.3g} {what} of {window:.4g}; expected at most "
            f"{MOST_WINDOWS}. Check the unit of t, or go on from an answer at an earlier time."
        )


def windows_to(t: float, window: float) -> int:
    """How many windows reach the time."""
    return max(1, ceil(t / window - ROUNDING))
