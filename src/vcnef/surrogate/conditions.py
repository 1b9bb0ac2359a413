"""What an answer needs to know of time beside times since u0: when u0 is, and parameters that change."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data import Scaling
from vcnef.data.arrays import as_tensor
from vcnef.data.conditions import ROUNDING, Conditions


def read_conditions(
    scaling: Scaling,
    params: Float[Tensor, "b p"] | Float[Tensor, "b r p"],
    params_t: Any,
    start: Any,
    t: Float[Tensor, "*b t"],
    before: float = 0.0,
) -> Conditions:
    """Return the conditions of a question at times `t`; `start` is the first time of the data by default, or so much
    later as frames before u0 take.

    Values of parameters at `params_t`, times since u0, must reach the last time that is asked for.
    """
    return Conditions(params, _record_times(scaling, params, params_t, t), _starts(scaling, start, params, before))


def choose_start(scaling: Scaling, u0: Any, start: Any, before: float) -> Float[Tensor, "*b"] | float | None:
    """Return the given start, or the first one of the data, unless a label of u0 says another."""
    if start is not None:
        return as_tensor(start, "start", torch.float64)
    if scaling.explicit_time is None:
        return None
    first = scaling.explicit_time[0] + before
    for name in ("t", "time"):
        labels = np.ravel(u0[name].values) if name in getattr(u0, "coords", ()) else []
        if len(labels) and not np.isclose(labels[-1], first):
            raise ValueError(
                f"u0 is labelled {name} = {labels[-1]:g}, and its equation depends on the time; expected start, the "
                f"time of u0 on the clock of the data, {first:g} if left out. Give start={labels[-1]:g}, if that is "
                "what the label says."
            )
    return first


def _record_times(scaling: Scaling, params: Tensor, params_t: Any, t: Tensor) -> Float[Tensor, " r"] | None:
    if params.ndim == 2 and params_t is None:
        return None
    if params.ndim == 2 or params_t is None:
        given = "without params_t" if params_t is None else "beside params_t"
        raise ValueError(
            f"params has shape {tuple(params.shape)} {given}; expected [sample, parameter], or [sample, time, "
            "parameter] with the times since u0 as params_t."
        )
    times = torch.as_tensor(params_t).detach().cpu().double()
    if times.shape != (params.shape[1],) or not bool(times.isfinite().all()) or bool((times.diff() <= 0).any()):
        raise ValueError(
            f"params_t has shape {tuple(times.shape)}, beside params of shape {tuple(params.shape)}; expected "
            f"{params.shape[1]} ascending times since u0."
        )
    last = float(t.detach().max()) if t.numel() else 0.0
    room = ROUNDING * max(scaling.horizon, last)
    if float(times[0]) > room or float(times[-1]) < last - room:
        raise ValueError(
            f"params_t goes from {float(times[0]):.6g} to {float(times[-1]):.6g}, but t to {last:.6g}; expected "
            "parameters from u0, at time 0, to the last time. Give a longer record, or ask for earlier times."
        )
    return times


def _starts(scaling: Scaling, start: Any, params: Tensor, before: float) -> Float[Tensor, " b"] | None:
    if scaling.explicit_time is None:
        if start is not None:
            raise ValueError(
                f"start is {_spell(start)}, but this surrogate knows no absolute time. "
                "Leave start out, or train with explicit_time=True."
            )
        return None
    given = scaling.explicit_time[0] + before if start is None else start
    starts = torch.as_tensor(given, dtype=params.dtype, device=params.device)
    if starts.numel() not in (1, len(params)) or starts.ndim > 1 or not bool(starts.isfinite().all()):
        raise ValueError(
            f"start is {_spell(given)}; expected one finite time, or {len(params)}, one for each initial state."
        )
    return starts.reshape(-1).expand(len(params))


def _spell(start: Any) -> str:
    values = [f"{value:g}" for value in torch.as_tensor(start).flatten().tolist()]
    return values[0] if len(values) == 1 else f"[{', '.join(values)}]"
