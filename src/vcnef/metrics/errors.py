"""Errors over all points of a frame: root mean square, relative, largest, and of the conserved mean.

Shared notation: e = pred − target, y = target, N points. ⟨·⟩ is the mean over the axes named below it.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from vcnef.fading import FADED
from vcnef.metrics.table import Table, check_fields, complete, mean_square, points, ratio, tabulate

ZERO = "the target is zero there and a relative error undefined; zero_norm_frames(target) says where"


def rmse(
    pred: Float[Tensor, "b t *x c"], target: Float[Tensor, "b t *x c"], *, initial_frames: int = 1, keep: str = ""
) -> Float[Tensor, "*kept"]:
    """Root mean square error, ⟨ √⟨e²⟩_x ⟩_{b,t,c}: the root is taken per sample, time and channel, then averaged.

    The same as PDEBench's, but for its average over batches (see `Scores`). In units of the field.
    """
    return rmse_table(pred, target, initial_frames).mean(keep)


def nrmse(
    pred: Float[Tensor, "b t *x c"], target: Float[Tensor, "b t *x c"], *, initial_frames: int = 1, keep: str = ""
) -> Float[Tensor, "*kept"]:
    """Normalised RMSE, ⟨ ‖e‖₂ / ‖y‖₂ ⟩_{b,t,c} with norms over space: the paper's nRMSE (its `relativeError(t, c)`).

    Equal to PDEBench's per sample, time and channel; no epsilon. The paper leaves open whether t = 0 is among its N_t
    terms; PDEBench counted it (as an error of 0) until October 2024, which gives (N_t − 1)/N_t of this number.

    Frames whose target is exactly zero have no relative error: they are NaN where every entry is kept, stay out of
    averages (the average is over the remaining entries), and their number is said in a warning. PDEBench would
    return inf or NaN.
    """
    return nrmse_table(pred, target, initial_frames).warn_left_out("nrmse", ZERO).mean(keep)


def floored_nrmse(
    pred: Float[Tensor, "b t *x c"],
    target: Float[Tensor, "b t *x c"],
    *,
    initial: Float[Tensor, "b *x c"] | None = None,
    initial_frames: int = 1,
    keep: str = "",
) -> Float[Tensor, "*kept"]:
    """nRMSE over a floor, ⟨ ‖e‖₂ / max(‖y‖₂, 0.001 max_t ‖y‖₂) ⟩_{b,t,c}: what training, evaluation and reports show.

    The maximum is over all frames of a trajectory, for each channel, the initial state among them: the first frame of
    the target, or `initial` where the fields hold predicted times only. Where no frame has faded below a thousandth of
    it, this is `nrmse` to the bit. Only trajectories whose channel is zero throughout have no error.
    """
    check_fields(pred, target, initial_frames)
    if initial is None and not initial_frames:
        raise ValueError("initial is None and initial_frames 0; expected the initial state. Pass initial=u0.")
    begin = target[:, 0] if initial is None else initial
    table = floored_nrmse_table(pred[:, initial_frames:], target[:, initial_frames:], begin)
    return table.warn_left_out("floored_nrmse", ZERO).mean(keep)


def relative_l2(
    pred: Float[Tensor, "b t *x c"],
    target: Float[Tensor, "b t *x c"],
    *,
    joint_channels: bool = False,
    initial_frames: int = 1,
    keep: str = "",
) -> Float[Tensor, "*kept"]:
    """Joint relative L², ⟨ ‖e‖₂ / ‖y‖₂ ⟩_{b,c} with one norm per sample over space *and* time.

    With `joint_channels` the norm runs over the channels too, ⟨‖e‖₂ / ‖y‖₂⟩_b, and large channels hide small ones.
    Neither the paper's nor PDEBench's, yet the "relative L²" of many others: for compressible flow it can be several
    times smaller than nRMSE, so the two must not be compared. Axes to keep: "b c", or "b" when joint.
    Samples whose target is zero throughout are left out, as in `nrmse`.
    """
    table = relative_l2_table(pred, target, initial_frames, joint_channels=joint_channels)
    return table.warn_left_out("relative_l2", ZERO).mean(keep)


def max_error(
    pred: Float[Tensor, "b t *x c"], target: Float[Tensor, "b t *x c"], *, initial_frames: int = 1, keep: str = ""
) -> Float[Tensor, "*kept"]:
    """Largest error, max |e|, over all axes that are not kept.

    PDEBench averages over time and channel after the maximum over samples and points; for a test set in one batch
    that is `max_error(pred, target, keep="t c").mean()`.
    """
    return max_error_table(pred, target, initial_frames).largest(keep)


def conserved(
    pred: Float[Tensor, "b t *x c"], target: Float[Tensor, "b t *x c"], *, initial_frames: int = 1, keep: str = ""
) -> Float[Tensor, "*kept"]:
    """Error of the conserved quantity, ⟨ |⟨e⟩_x| ⟩_{b,t,c}: how far the spatial mean of each field has drifted.

    Per sample, so it does not depend on how a test set is cut into batches. PDEBench takes the root after the mean
    over a batch, ⟨ √⟨⟨e⟩_x²⟩_b ⟩_{t,c}, which is at least as large; for a test set in one batch that is
    `conserved(pred, target, keep="b t c").square().mean(0).sqrt().mean()`.
    """
    return conserved_table(pred, target, initial_frames).mean(keep)


def zero_norm_frames(target: Float[Tensor, "b t *x c"], *, initial_frames: int = 1) -> Bool[Tensor, "b frames c"]:
    """Where a channel of the target is exactly zero in all points of a frame, so that `nrmse` is undefined there."""
    check_fields(target, target, initial_frames)
    return tabulate(mean_square, target, initial_frames=initial_frames) == 0


def faded_frames(target: Float[Tensor, "b t *x c"], initial: Float[Tensor, "b *x c"]) -> Bool[Tensor, "b t c"]:
    """Where less than a thousandth of a channel is left, measured by the largest frame of its trajectory and `initial`.

    `nrmse` divides by what is left, down to rounding errors: a few such frames can outweigh all others. Where nothing
    is left at all, it is undefined (`zero_norm_frames`).
    """
    size, floor = _sizes(target, initial)
    return (size > 0) & (size < floor)


def rmse_table(pred: Tensor, target: Tensor, initial_frames: int) -> Table:
    return complete("b t c", mean_square_error(pred, target, initial_frames).sqrt())


def nrmse_table(pred: Tensor, target: Tensor, initial_frames: int) -> Table:
    error = mean_square_error(pred, target, initial_frames)
    size = tabulate(mean_square, target, initial_frames=initial_frames)
    return ratio("b t c", error.sqrt(), size.sqrt())


def floored_nrmse_table(pred: Tensor, target: Tensor, initial: Float[Tensor, "b *x c"]) -> Table:
    """That of `nrmse` for predicted times, over the floor of `floored_nrmse`."""
    return ratio("b t c", mean_square_error(pred, target, 0).sqrt(), torch.maximum(*_sizes(target, initial)))


def relative_l2_table(pred: Tensor, target: Tensor, initial_frames: int, *, joint_channels: bool = False) -> Table:
    joined = (1, 2) if joint_channels else (1,)
    error = mean_square_error(pred, target, initial_frames).mean(joined)
    size = tabulate(mean_square, target, initial_frames=initial_frames).mean(joined)
    return ratio("b" if joint_channels else "b c", error.sqrt(), size.sqrt())


def max_error_table(pred: Tensor, target: Tensor, initial_frames: int) -> Table:
    check_fields(pred, target, initial_frames)
    largest = tabulate(lambda p, y: points(p - y).abs().amax(dim=2), pred, target, initial_frames=initial_frames)
    return complete("b t c", largest)


def conserved_table(pred: Tensor, target: Tensor, initial_frames: int) -> Table:
    check_fields(pred, target, initial_frames)
    drift = tabulate(lambda p, y: points(p - y).mean(dim=2).abs(), pred, target, initial_frames=initial_frames)
    return complete("b t c", drift)


def mean_square_error(pred: Tensor, target: Tensor, initial_frames: int) -> Float[Tensor, "b frames c"]:
    """⟨e²⟩_x."""
    check_fields(pred, target, initial_frames)
    return tabulate(lambda p, y: mean_square(p - y), pred, target, initial_frames=initial_frames)


def _sizes(target: Tensor, initial: Tensor) -> tuple[Float[Tensor, "b t c"], Float[Tensor, "b 1 c"]]:
    """Root mean squares of the frames, and which of them counts as faded."""
    first, later = (tabulate(mean_square, u, initial_frames=0).sqrt() for u in (initial[:, None], target))
    return later, FADED * torch.maximum(first, later.amax(dim=1, keepdim=True))
