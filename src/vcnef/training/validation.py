"""How good a model is on the validation split, in the units that count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from vcnef.data import Batch, Batches
from vcnef.metrics.errors import floored_nrmse_table
from vcnef.surrogate import Surrogate

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def validate(surrogate: Surrogate, batches: Batches, fabric: Fabric) -> float:
    """nRMSE in physical units over whole trajectories from their first frame.

    It is over the floor of `vcnef.metrics.floored_nrmse`: rounding errors would choose the weights otherwise.
    `batches` are unscaled and in the order of the data. Each process judges its own share of them.
    """
    rank, processes = batches.shard
    # Shares are padded to equal length; what was added is not counted twice.
    mine = len(range(rank, len(batches.data), processes))
    total, seen = torch.zeros(2, dtype=torch.float64), 0
    first = None if surrogate.scaling.explicit_time is None else float(batches.data.t[0])
    for batch in batches:
        count = min(len(batch), mine - seen)
        if count > 0:
            history, truth, clock = _question(batch, count, surrogate.history)
            params = batch.params[:count]
            # Where parameters change with time, they are those at all frames.
            pred = surrogate.answer(
                history if surrogate.history > 1 else history[:, 0],
                batch.grid,
                clock[surrogate.history :],
                params,
                params_t=clock if params.ndim == 3 else None,
                start=None if first is None else first - float(clock[0]),
            )
            u0 = history[:, -1]
            total += floored_nrmse_table(pred, truth, u0).sums().cpu()
            seen += count
    if processes > 1:
        total = fabric.all_reduce(total.to(fabric.device, torch.float32), reduce_op="sum")
    return float(total[0] / total[1])


def _question(
    batch: Batch, count: int, history: int
) -> tuple[Float[Tensor, "b h *x c"], Float[Tensor, "b t *x c"], Float[Tensor, " k"]]:
    """The first frames of some samples, the others, and the times of all since the last of the first ones."""
    begin, truth = batch.u0[:count, None], batch.u[:count]
    if history > 1:
        begin, truth = torch.cat((begin, truth[:, : history - 1]), dim=1), truth[:, history - 1 :]
    clock = F.pad(batch.t, (1, 0))
    return begin, truth, clock - clock[history - 1]
