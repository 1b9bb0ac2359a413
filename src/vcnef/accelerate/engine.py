"""The seam: given a model, an engine that computes what it computes, faster where every part of it is known.

It is asked once, before a prediction or a training run. Parts that are unknown, or known but changed, are called as
they are (`recognise.py`), and a model that is no VCNeF runs itself. What is decided stands in the engine's `plan`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad

from vcnef.accelerate.kernels.requirements import switched_off
from vcnef.accelerate.numbers import HALF, cpu_multiplies_bf16
from vcnef.accelerate.planner import Planner, PlanSetting
from vcnef.accelerate.recognise import calls_more, change_everywhere, change_in
from vcnef.accelerate.trajectory import FastVCNeF
from vcnef.models.interface import TrajectoryModel
from vcnef.models.vcnef import VCNeF
from vcnef.models.vcnef_beyond import InterleavedVCNeF

log = logging.getLogger(__name__)


class Reference:
    """The model itself; called as a whole for every part of the times where a call does more than encode and query."""

    half = None

    def __init__(self, model: nn.Module, why: str) -> None:
        self.model, self.plan = model, {"model": f"reference: {why}"}
        self.whole = isinstance(model, TrajectoryModel) and calls_more(model)

    def encode(self, *question: Tensor | None) -> Any:
        if self.whole:
            return question
        return self.model.encode(*question)

    def query_in_parts(self, latent: Any, t: Tensor, times: int) -> Iterator[Float[Tensor, "b part *x c"]]:
        if not self.whole:
            return self.model.query_in_parts(latent, t, times)
        u0, grid, params = latent
        parts = (t,)
        if self.model.independent_times:
            parts = t.split(times, dim=-1)
        return (self.model(u0, grid, part, params) for part in parts)


Engine = FastVCNeF | Reference


def inference_engine(model: TrajectoryModel, device: torch.device, precision: str) -> Engine:
    """Return the engine of a prediction; `precision` as in `predict`."""
    half = HALF[precision]
    if device.type == "cpu" and not (half is torch.bfloat16 and cpu_multiplies_bf16()):
        half = None
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return Reference(model, "somebody traces or differentiates the prediction")
    return _engine(model, PlanSetting(device, half, training=False))


def training_engine(model: nn.Module, device: torch.device, half: torch.dtype | None, *, compiled: bool) -> Engine:
    """Return the engine of a training run, also of a single step of a model that steps; `half` is what autocasting
    chooses."""
    return _engine(model, PlanSetting(device, half, training=True, compiled=compiled))


def _engine(model: nn.Module, setting: PlanSetting) -> Engine:
    why = _obstacle_of_model(model, setting)
    if why is None:
        planner = Planner(model, setting)
        engine = FastVCNeF(model, planner.parts(), planner.plan, setting.half)
    else:
        engine = Reference(model, why)
    _log_once("; ".join(f"{part}: {how}" for part, how in engine.plan.items()))
    return engine


@cache
def _log_once(plan: str) -> None:
    log.info("How the parts of the model run: %s.", plan)


def _obstacle_of_model(model: nn.Module, setting: PlanSetting) -> str | None:
    """Return why the model as a whole runs as it is, or None."""
    if not isinstance(model, VCNeF):
        return f"{type(model).__name__} has no other way to run"
    if switched_off():
        return "VCNEF_KERNELS is 0"
    children = [name for name, _ in model.named_children()]
    found = change_everywhere() or change_in(model, (VCNeF, InterleavedVCNeF), leave_out=children)
    if found is None and not model.modulations:
        return "it has no modulation block"
    if found is None and setting.kernels and next(model.parameters()).dtype != torch.float32:
        return f"its weights are {next(model.parameters()).dtype}, where half precision starts from torch.float32"
    return found
