"""How good a model is on the validation split, in the units that count."""

from __future__ import annotations

import torch
from lightning_fabric import Fabric

from vcnef.data import Batches
from vcnef.metrics.errors import floored_nrmse_table
from vcnef.surrogate import Surrogate


def validate(surrogate: Surrogate, batches: Batches, fabric: Fabric) -> float:
    """nRMSE in physical units over whole trajectories from their first frame.

    Frames that have faded are judged against a thousandth of their trajectory's largest: rounding errors would choose
    the weights otherwise. `batches` are unscaled and in the order of the data. Each process judges its own share of
    them.
    """
    rank, processes = batches.shard
    # Shares are padded to equal length; what was added is not counted twice.
    mine = len(range(rank, len(batches.data), processes))
    total, seen = torch.zeros(2, dtype=torch.float64), 0
    for batch in batches:
        count = min(len(batch), mine - seen)
        if count > 0:
            u0, truth = batch.u0[:count], batch.u[:count]
            pred = surrogate.answer(u0, batch.grid, batch.t, batch.params[:count])
            total += floored_nrmse_table(pred, truth, u0).sums().cpu()
            seen += count
    if processes > 1:
        total = fabric.all_reduce(total.to(fabric.device, torch.float32), reduce_op="sum")
    return float(total[0] / total[1])
