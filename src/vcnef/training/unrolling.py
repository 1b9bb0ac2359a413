"""Losses for models that step: how much of a rollout the gradient goes through."""

from __future__ import annotations

from dataclasses import dataclass
from math import tanh

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.data import Batch, Queries
from vcnef.models.coral import Coral, integrator
from vcnef.models.interface import TrajectoryModel
from vcnef.models.rollout import Rollout
from vcnef.training.losses import Error

WARM_UP = 0.006
"""Three of 500 epochs."""


def prefix_length(progress: float, frames: int, warm_up: float = WARM_UP) -> int:
    """Frames predicted from predictions: frames · ½ (1 + tanh((s − ½) / 0.2)), s the progress after the warm-up."""
    after = (progress - warm_up) / (1 - warm_up)
    part = 0.5 * (1 + tanh((after - 0.5) / 0.2))
    return min(max(int(frames * part), 1), frames)


@dataclass(frozen=True, eq=False)
class Unrolled:
    """The whole rollout, with gradients through all of its steps, on frames that follow each other.

    What asking the model at their times gives too; but nothing needs to be read from the device for it.
    """

    error: Error
    static = True

    def __call__(self, model: Rollout, batch: Batch, progress: float) -> Float[Tensor, ""]:
        start = model.encode(batch.u0, batch.grid, batch.params if model.params else None)
        return self.error(model.unroll(start, batch.u.shape[1])[:, 1:], batch.u)


@dataclass(frozen=True, eq=False)
class Curriculum:
    """Free rollout over a prefix that grows during the run, true frames as inputs after it; every step counts.

    The schedule that OFormer was trained with. All steps from true frames are one call.
    """

    error: Error
    noise: float = 0.0
    """Standard deviation of what is added to every input of a step."""

    def __call__(self, model: Rollout, batch: Batch, progress: float) -> Float[Tensor, ""]:
        frames = torch.cat([batch.u0[:, None], batch.u], dim=1)
        free = min(prefix_length(progress, frames.shape[1]), batch.u.shape[1])
        params = batch.params if model.params else None
        clock = torch.arange(batch.u.shape[1], device=frames.device, dtype=frames.dtype) / model.steps
        state, answers = batch.u0, []
        for now in clock[:free]:
            state = model.stepper.advance(self._disturb(state), batch.grid, params, now.expand(len(batch)))[:, 0]
            answers.append(state)
        pred = torch.stack(answers, dim=1)
        if given := batch.u.shape[1] - free:
            inputs = frames[:, free:-1].flatten(0, 1)
            repeated = None if params is None else params.repeat_interleave(given, dim=0)
            forced = model.stepper.advance(
                self._disturb(inputs), batch.grid, repeated, clock[free:].repeat(len(batch))
            )[:, 0]
            pred = torch.cat([pred, forced.unflatten(0, (len(batch), given))], dim=1)
        return self.error(pred, batch.u)

    def _disturb(self, state: Tensor) -> Tensor:
        return state + self.noise * torch.randn_like(state) if self.noise else state


@dataclass(frozen=True, eq=False)
class PushForward:
    """One step with a gradient, from a random frame or from what a step without gives for it: MP-PDE's push-forward.

    A step is as many frames as the stepper gives at once. Any frame may be the first, also the initial one, which the
    original leaves out although prediction starts from it. Of the others half are pushed, each sample by a draw of its
    own; the original draws for whole batches, which would launch other kernels from step to step. A sample costs two
    steps here, not a trajectory: a run wants as many times more epochs as there are frames.

    chain: so many steps in a row are learnt from in the last part of a run, and the gradient passes through all.
    """

    error: Error
    chain: int = 1
    warm_up: float = 0.05
    """Part of the run in which all inputs are true frames: one of 20 epochs."""
    chained_from: float = 0.6
    """Part of the run before steps are chained."""
    static = True

    @property
    def phases(self) -> tuple[float, ...]:
        """The parts of the run after which another number of steps is made."""
        return (self.warm_up, self.chained_from) if self.chain > 1 else (self.warm_up,)

    def __call__(self, model: Rollout, batch: Batch, progress: float) -> Float[Tensor, ""]:
        frames = torch.cat([batch.u0[:, None], batch.u], dim=1)
        params = batch.params if model.params else None
        stepper, bundle = model.stepper, model.stepper.frames
        count = self.chain if progress > self.chained_from else 1
        rows = torch.arange(len(batch), device=frames.device)
        start = torch.randint(frames.shape[1] - count * bundle, rows.shape, device=frames.device)

        def advance(state: Float[Tensor, "b *x c"], first: Int[Tensor, " b"]) -> Float[Tensor, "b k *x c"]:
            return stepper.advance(state, batch.grid, params, (first / model.steps).to(frames))

        state = frames[rows, start]
        if progress > self.warm_up:
            before = (start - bundle).clamp(min=0)
            with torch.no_grad():
                given = advance(frames[rows, before], before)[:, -1]
            pushed = (torch.rand(rows.shape, device=frames.device) < 0.5) & (start >= bundle)
            state = torch.where(pushed.view(-1, *[1] * (given.ndim - 1)), given, state)
        answers = []
        for number in range(count):
            answers.append(advance(state, start + number * bundle))
            state = answers[-1][:, -1]
        truth = frames[rows[:, None], start[:, None] + torch.arange(1, count * bundle + 1, device=frames.device)]
        return self.error(torch.cat(answers, dim=1), truth)


def check_unrolling(model: TrajectoryModel, unroll: str, queries: Queries) -> None:
    """Only a model made of a stepper can be unrolled by parts, and only over frames that follow each other."""
    if unroll == "two_stage":
        _check_stages(model)
    elif not isinstance(model, Rollout):
        raise ValueError(
            f"unroll={unroll!r} is for models that step from frame to frame; {type(model).__name__} gives a whole "
            "trajectory at once. Use unroll='full'."
        )
    if unroll == "curriculum" and model.stepper.frames > 1:
        raise ValueError(
            f"unroll='curriculum' is for models that give one frame at a time; this one gives {model.stepper.frames}. "
            "Use unroll='full' or 'push_forward'."
        )
    if unroll == "push_forward" and queries.chain * model.stepper.frames > model.steps:
        raise ValueError(
            f"unroll='push_forward' needs {queries.chain * model.stepper.frames} frames after the initial one, as many "
            f"as this model gives at once, times a chain of {queries.chain}; there are {model.steps}. Build the model "
            "with smaller bundles, shorten the chain, or use unroll='full'."
        )
    if unroll == "push_forward" and queries.passes:
        raise ValueError(
            f"unroll='push_forward' starts from random frames itself; passes={queries.passes} would leave it too few "
            "of them. Leave passes out, or use unroll='full'."
        )
    if not queries.consecutive:
        raise ValueError(
            f"unroll={unroll!r} needs the frames after the start, one after the other; {queries} asks at others. Leave "
            "times and at_start out."
        )


def _check_stages(model: TrajectoryModel) -> None:
    if not isinstance(model, Coral):
        raise ValueError(
            f"unroll='two_stage' is for models that encode every frame, such as CORAL; {type(model).__name__} has no "
            "codes. Use unroll='full'."
        )
    integrator()
    if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
        raise ValueError(
            f"unroll='two_stage' trains on one device, not on {torch.distributed.get_world_size()}: in each stage "
            "some weights have no gradient to share. Use devices=1."
        )
