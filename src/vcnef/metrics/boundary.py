"""Errors on the boundary of the box, in one formula for 1, 2 and 3 dimensions, and the benchmark's own 3D variant."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.metrics.errors import mean_square_error
from vcnef.metrics.table import Table, check_fields, complete


def brmse(
    pred: Float[Tensor, "b t *x c"], target: Float[Tensor, "b t *x c"], *, initial_frames: int = 1, keep: str = ""
) -> Float[Tensor, "*kept"]:
    """Boundary RMSE, ⟨ √⟨e²⟩_faces ⟩_{b,t,c}: the RMSE over the points of all faces of the box.

    The faces are the two ends in 1D, four edges in 2D, six sides in 3D; a point on several faces (a corner) counts
    once for each. In 1D this is the paper's √((e²_1 + e²_s)/2) and in 1D and 2D PDEBench's, per sample, time and
    channel. The paper defines no other dimension; PDEBench's 3D differs, see `brmse_pdebench_3d`.
    """
    return brmse_table(pred, target, initial_frames).mean(keep)


def brmse_pdebench_3d(
    pred: Float[Tensor, "b t x y z c"], target: Float[Tensor, "b t x y z c"], *, initial_frames: int = 1, keep: str = ""
) -> Float[Tensor, "*kept"]:
    """PDEBench's 3D boundary RMSE, ⟨ √(Σ_c ⟨e²⟩_faces) ⟩_{b,t}: channels are *summed* inside the root.

    A uniform error ε gives ε √c instead of ε, so it compares with no other dimension and not with `brmse`. Published
    3D numbers, the paper's too as far as can be told, are of this kind. Axes to keep: "b t".
    """
    return brmse_pdebench_3d_table(pred, target, initial_frames).mean(keep)


def boundary_points(u: Float[Tensor, "b t *x c"]) -> Float[Tensor, "b t n c"]:
    """The first and last layer of points along each space axis, one after the other; corners appear in several."""
    b, t, c = u.shape[0], u.shape[1], u.shape[-1]
    layers = [u.select(axis, end) for axis in range(2, u.ndim - 1) for end in (0, -1)]
    return torch.cat([layer.reshape(b, t, -1, c) for layer in layers], dim=2)


def brmse_table(pred: Tensor, target: Tensor, initial_frames: int) -> Table:
    return complete("b t c", _mean_square_on_faces(pred, target, initial_frames).sqrt())


def brmse_pdebench_3d_table(pred: Tensor, target: Tensor, initial_frames: int) -> Table:
    if pred.ndim != 6:
        raise ValueError(
            f"brmse_pdebench_3d expects three space axes (b t x y z c); got shape {tuple(pred.shape)}. "
            "Use brmse, which is the benchmark's definition in 1D and 2D."
        )
    return complete("b t", _mean_square_on_faces(pred, target, initial_frames).sum(dim=-1).sqrt())


def _mean_square_on_faces(pred: Tensor, target: Tensor, initial_frames: int) -> Tensor:
    check_fields(pred, target, initial_frames)
    return mean_square_error(boundary_points(pred), boundary_points(target), initial_frames)
