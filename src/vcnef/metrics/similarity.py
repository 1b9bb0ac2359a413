"""How much a prediction resembles the target, and for how long."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.metrics.table import Table, check_fields, check_tensor, mean_square, points, tabulate

CONSTANT = "the target is constant in space there and a correlation undefined"


def correlation(
    pred: Float[Tensor, "b t *x c"], target: Float[Tensor, "b t *x c"], *, initial_frames: int = 1, keep: str = ""
) -> Float[Tensor, "*kept"]:
    """Pearson correlation over space, ⟨ρ⟩_{b,t,c} with ρ = ⟨p̃ ỹ⟩_x / √(⟨p̃²⟩_x ⟨ỹ²⟩_x), where p̃ = pred − ⟨pred⟩_x.

    A prediction that is constant where the target is not has ρ = 0. Where the target is constant ρ is undefined:
    such frames stay out of averages, and their number is said in a warning. In neither the paper nor PDEBench.
    """
    return correlation_table(pred, target, initial_frames).warn_left_out("correlation", CONSTANT).mean(keep)


def correlation_time(
    pred: Float[Tensor, "b t *x c"],
    target: Float[Tensor, "b t *x c"],
    t: Float[Tensor, " t"] | Float[Tensor, "b t"],
    *,
    threshold: float = 0.8,
    initial_frames: int = 1,
    keep: str = "",
) -> Float[Tensor, "*kept"]:
    """Time from the initial state to the last frame up to which ρ ≥ threshold without a break, averaged over b and c.

    `t` holds the times of all frames, given ones included; time counts from the last given frame, or from 0 when
    `initial_frames=0`. The value is 0 if the first predicted frame is already below, and the whole horizon if none
    is, so it is a lower bound there. A non-finite prediction ends the run; a frame whose target is constant in space
    does not, and a channel with no other frames is left out. Axes to keep: "b c". In neither the paper nor PDEBench.
    """
    table = correlation_table(pred, target, initial_frames)
    check_tensor("time of the frames", t)
    if t.shape not in (pred.shape[1:2], pred.shape[:2]):
        raise ValueError(
            f"Times of shape {tuple(t.shape)} do not fit {pred.shape[0]} samples of {pred.shape[1]} frames. "
            "Give one time for each frame, given frames included."
        )
    holds = (table.values >= threshold) | ~table.defined
    frames = holds.long().cumprod(dim=1).sum(dim=1)
    times = t.to(table.values).expand(len(pred), -1)
    start = times[:, initial_frames - 1 : initial_frames] if initial_frames else torch.zeros_like(times[:, :1])
    elapsed = torch.cat([start, times[:, initial_frames:]], dim=1) - start
    durations = elapsed.gather(1, frames)
    defined = table.defined.any(dim=1)
    lasting = Table("b c", durations.where(defined, torch.nan), defined)
    return lasting.warn_left_out("correlation_time", CONSTANT).mean(keep)


def correlation_table(pred: Tensor, target: Tensor, initial_frames: int) -> Table:
    check_fields(pred, target, initial_frames)
    values = tabulate(_pearson, pred, target, initial_frames=initial_frames)
    constant = tabulate(_is_constant, target, initial_frames=initial_frames)
    finite = tabulate(mean_square, pred, initial_frames=initial_frames).isfinite()
    # A non-finite prediction is never left out, not even against a constant target.
    defined = ~(constant & finite)
    return Table("b t c", values.where(defined, torch.nan), defined)


def _pearson(pred: Float[Tensor, "b t *x c"], target: Float[Tensor, "b t *x c"]) -> Float[Tensor, "b t c"]:
    p, y = points(pred), points(target)
    p_centred, y_centred = p - p.mean(dim=2, keepdim=True), y - y.mean(dim=2, keepdim=True)
    spread = (mean_square(p_centred) * mean_square(y_centred)).sqrt()
    return ((p_centred * y_centred).mean(dim=2) / spread).masked_fill(_is_constant(pred), 0.0)


def _is_constant(u: Float[Tensor, "b t *x c"]) -> Tensor:
    # Not a variance of zero, for rounding of the mean gives a constant field a tiny one. Of infinities this is NaN.
    return points(u).amax(dim=2) - points(u).amin(dim=2) == 0
