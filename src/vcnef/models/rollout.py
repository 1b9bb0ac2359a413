"""Wrappers that make trajectories: of a model that steps, and between the frames of any model."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.models.interface import Stepper, TrajectoryModel, with_samples


class Start(NamedTuple):
    """What a rollout begins with."""

    u0: Float[Tensor, "b *x c"]
    grid: Float[Tensor, "_ *x D"]
    params: Float[Tensor, "b p"] | None


class Rollout(TrajectoryModel):
    """u(k Δt) = stepper applied k times, Δt = 1 / `steps` of the training horizon: autoregressive by design.

    Times must lie on its clock, whole steps from the initial state; `TimeInterpolated` answers between them.
    Gradients run through all steps.
    """

    independent_times = False
    continuous = False

    def __init__(self, stepper: Stepper, steps: int) -> None:
        super().__init__()
        if steps < 1:
            raise ValueError(f"steps is {steps}; expected at least 1, the number of frames after the initial one.")
        self.stepper, self.steps = stepper, steps
        self.ndim, self.channels, self.params = stepper.ndim, stepper.channels, stepper.params
        self.uneven = stepper.uneven

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        return self.stepper.suits(sides, trained)

    def times_in_flight(self, times: int) -> int:
        """Return the times of one step: what follows is computed after it."""
        return self.stepper.frames

    def encode(self, u0: Tensor, grid: Tensor, params: Tensor | None = None) -> Start:
        return Start(u0, with_samples(grid, u0), params)

    def query(self, latent: Start, t: Float[Tensor, " t"] | Float[Tensor, "b t"]) -> Float[Tensor, "b t *x c"]:
        frames = self._frames(t)
        return pick_frames(self.unroll(latent, last_frame(frames)), frames.to(t.device))

    def unroll(self, start: Start, count: int) -> Float[Tensor, "b k *x c"]:
        """Return the initial frame and the next `count`."""
        parts, state = [start.u0[:, None]], start.u0
        for frame in range(0, count, self.stepper.frames):
            now = state.new_full((len(state),), frame / self.steps)
            parts.append(self.stepper.advance(state, start.grid, start.params, now))
            # Under autocasting a network may answer in half precision, which must not add up over the steps.
            state = parts[-1][:, -1].to(start.u0.dtype)
        return torch.cat(parts, dim=1)[:, : count + 1]

    def _frames(self, t: Tensor) -> Tensor:
        """Return the number of the frame at each time, on the host, which must know how far to go."""
        times = t.detach().cpu()
        refuse_past(times)
        exact = times * self.steps
        frames = exact.round()
        # A time in single precision is whole steps only to a few parts in a thousand of a step.
        off = (exact - frames).abs()
        if off.numel() and off.max() > 0.01:
            raise ValueError(
                f"Time {t.flatten()[off.argmax()]:.6g} of the horizon is no whole step of this model, which takes "
                f"{self.steps} to the horizon. Ask at whole steps, or wrap the model in TimeInterpolated."
            )
        return frames.long()


def refuse_past(t: Tensor) -> None:
    """Refuse times before the first frame; an index below 0 would be one of the last."""
    if not t.numel():
        return
    earliest = float(t.detach().min())
    if earliest < 0:
        raise ValueError(
            f"Time {earliest:.6g} of the horizon is before the initial state, from which this model goes forward. "
            "Ask at times of 0 or more."
        )


def last_frame(frames: Tensor) -> int:
    """Return the largest of the numbers of frames, or 0 where there is none."""
    if not frames.numel():
        return 0
    return int(frames.max())


def pick_frames(trajectory: Float[Tensor, "b k *x c"], frames: Tensor) -> Float[Tensor, "b t *x c"]:
    """Return frames `[t]` of every sample, or `[b t]`, each sample's own."""
    if frames.ndim == 1:
        return trajectory[:, frames]
    return trajectory[torch.arange(len(frames), device=frames.device)[:, None], frames]


class TimeInterpolated(TrajectoryModel):
    """Linear interpolation in time between the frames of a rollout: the paper's "FNO + Interp."."""

    independent_times = False
    continuous = False

    def __init__(self, model: Rollout) -> None:
        super().__init__()
        self.model = model
        self.ndim, self.channels, self.params = model.ndim, model.channels, model.params
        self.uneven = model.uneven

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        return self.model.suits(sides, trained)

    def times_in_flight(self, times: int) -> int:
        return self.model.times_in_flight(times)

    def encode(self, u0: Tensor, grid: Tensor, params: Tensor | None = None) -> Start:
        return self.model.encode(u0, grid, params)

    def query(self, latent: Start, t: Float[Tensor, " t"] | Float[Tensor, "b t"]) -> Float[Tensor, "b t *x c"]:
        refuse_past(t)
        position = self._position(t)
        # Both are the frame itself where there is one: a later one, which may not be finite, has no part in it.
        before, after = position.floor().long(), position.ceil().long()
        frames = self.model.unroll(latent, last_frame(after))
        share = (position - before).to(frames.dtype).view(*t.shape, *[1] * (latent.u0.ndim - 1))
        return torch.lerp(pick_frames(frames, before), pick_frames(frames, after), share)

    def _position(self, t: Float[Tensor, "*b t"]) -> Float[Tensor, "*b t"]:
        """Return times in frames; a whole number where only rounding keeps it from one."""
        position = t * self.model.steps
        whole = position.round()
        rounding = 4 * torch.finfo(t.dtype).eps * whole.abs()
        return torch.where((position - whole).abs() <= rounding, whole, position)
