"""Answers at any later time, composed of those within a window."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.models.derivative import differentiating

ROUNDING = 1e-5
"""Of a window; times of single precision are off by so much at most."""

FlowMap = Callable[[Tensor, Tensor], Tensor]
"""From states `b *x c`, and times since them `t` or `b t` up to a window, to `b t *x c`."""


def compose(
    flow: FlowMap, u0: Float[Tensor, "b *x c"], t: Float[Tensor, " t"] | Float[Tensor, "b t"], window: float
) -> Float[Tensor, "b t *x c"]:
    """u(t) = φ_{t − k w}(φ_w(… φ_w(u₀))) with k whole windows w before t; all times within a window are one question.

    >>> clock = lambda u, t: u[:, None] + t[:, None, None]
    >>> compose(clock, torch.zeros(1, 1, 1), torch.tensor([0.5, 2.5]), window=1.0).flatten()
    tensor([0.5000, 2.5000])
    """
    host = t.detach().cpu().double()
    before = windows_before(host, window).long()
    answer = u0.new_empty(len(u0), t.shape[-1], *u0.shape[1:])
    state, last = u0, int(before.max()) if before.numel() else -1
    for number in range(last + 1):
        mine = before == number
        asked = mine if mine.ndim == 1 else mine.any(dim=0)
        times = _bounded(t[..., asked.to(t.device)] - number * window, window)
        count = times.shape[-1]
        end_is_asked = count and bool((host[..., asked][..., -1] >= (number + 1 - ROUNDING) * window).all())
        # A later answer does not depend on an earlier time that was asked for: the end of a window is no such time.
        end_is_asked = end_is_asked and not differentiating()
        if number < last and not end_is_asked:
            times = torch.cat((times, times.new_full((*times.shape[:-1], 1), window)), dim=-1)
        u = flow(state, times)
        if mine.ndim == 1:
            answer[:, asked] = u[:, :count]
        else:
            chosen = mine[:, asked].to(u.device).view(len(u0), count, *[1] * (u0.ndim - 1))
            answer[:, asked] = torch.where(chosen, u[:, :count], answer[:, asked])
        state = u[:, -1]
    return answer


def _bounded(times: Float[Tensor, "*b t"], window: float) -> Float[Tensor, "*b t"]:
    """Within a window; what rounding put outside keeps its derivative."""
    return times + (times.clamp(0.0, window) - times).detach()


def windows_before(t: Float[Tensor, "*b t"], window: float) -> Float[Tensor, "*b t"]:
    """How many whole windows lie before each time; at the end of a window, those before that one."""
    return ((t / window - ROUNDING).ceil() - 1).clamp(min=0)


def windows_to(t: float, window: float) -> int:
    """How many windows reach the time."""
    return max(1, ceil(t / window - ROUNDING))
