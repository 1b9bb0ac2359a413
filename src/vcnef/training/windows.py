"""The loss of a flow map on windows: one after the other, the first ones without a gradient."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data import Batch
from vcnef.models.interface import TrajectoryModel
from vcnef.training.losses import Error


@dataclass(frozen=True, eq=False)
class Windows:
    """error(φ_τ(ũ), u(t + τ)) over the frames t + τ of a window, which begins with a true state or one of the model's.

    ũ is u(t), or what the model makes of u(t − j w) in j windows of length w: how many, up to `pushes`, is drawn for
    each sample. A model that has only seen true states goes astray where its own errors lead it (push-forward, as in
    Brandstetter et al., 2022). A batch holds all these windows in a row; where they begin before the first frame, that
    stands in its place, and nothing is pushed.
    """

    error: Error
    window: int
    """Frames after the start of a window."""
    pushes: int
    even: bool
    """Whether frames are equally far apart: all samples then share their times, and what is made of those."""
    warm_up: float = 0.1
    """Part of the run in which all windows begin with true states."""
    static = True

    def __call__(self, model: TrajectoryModel, batch: Batch, progress: float | Tensor) -> Float[Tensor, ""]:
        frames = torch.cat([batch.u0[:, None], batch.u], dim=1)
        clock = torch.cat([torch.zeros_like(batch.t[:, :1]), batch.t], dim=1)
        params = batch.params if model.params else None
        start = self._start(model, frames, clock, batch.grid, params, progress)
        last = self.pushes * self.window
        times = clock[:, last + 1 :] - clock[:, last : last + 1]
        return self.error(model(start, batch.grid, self._shared(times), params), frames[:, last + 1 :])

    @torch.no_grad()
    def _start(
        self,
        model: TrajectoryModel,
        frames: Float[Tensor, "b k *x c"],
        clock: Float[Tensor, "b k"],
        grid: Tensor,
        params: Float[Tensor, "b p"] | None,
        progress: float | Tensor,
    ) -> Float[Tensor, "b *x c"]:
        """The state with which the last window begins; all windows before it launch the same kernels for any draw."""
        count = torch.randint(self.pushes + 1, (len(clock),), device=clock.device)
        whole = clock[:, -1:] - clock[:, -1 - self.window, None]
        state = frames[:, 0]
        for number in range(self.pushes):
            begin, end = number * self.window, (number + 1) * self.window
            length = clock[:, end : end + 1] - clock[:, begin : begin + 1]
            asked = self._shared(whole if self.even else length)
            given = model(state, grid, asked, params)[:, 0].to(state.dtype)
            # Frames before the first one are that one: a window there is shorter than the others, or nothing.
            there = length > 0.99 * whole if self.even else length > 0
            pushed = there[:, 0] & (number >= self.pushes - count) & (progress > self.warm_up)
            state = torch.where(pushed.view(-1, *[1] * (given.ndim - 1)), given, frames[:, end])
        return state

    def _shared(self, times: Float[Tensor, "b t"]) -> Float[Tensor, "b t"] | Float[Tensor, " t"]:
        return times[0] if self.even else times
