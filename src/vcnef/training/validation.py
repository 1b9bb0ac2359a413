"""How good a model is on the validation split, in the units that count."""

from __future__ import annotations

import torch
from lightning_fabric import Fabric

from vcnef.data import Batches
from vcnef.metrics import Scores
from vcnef.surrogate import Surrogate


def validate(surrogate: Surrogate, batches: Batches, fabric: Fabric) -> float:
    """nRMSE in physical units over whole trajectories from their first frame.

    `batches` are unscaled and in the order of the data. Each process judges its own share of them.
    """
    rank, processes = batches.shard
    # Shares are padded to equal length; what was added is not counted twice.
    mine = len(range(rank, len(batches.data), processes))
    scores, seen = Scores(["nrmse"], initial_frames=0), 0
    for batch in batches:
        count = min(len(batch), mine - seen)
        if count > 0:
            pred = surrogate.answer(batch.u0[:count], batch.grid, batch.t, batch.params[:count])
            scores.update(pred, batch.u[:count])
            seen += count
    score = float(scores.value("nrmse")) if seen else 0.0
    if processes == 1:
        return score
    total = fabric.all_reduce(torch.tensor([score * seen, seen], device=fabric.device), reduce_op="sum")
    return float(total[0] / total[1])
