"""The loss of a flow map on windows: one after the other, the first ones without a gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data import Batch
from vcnef.models.interface import TrajectoryModel
from vcnef.training.losses import Error

FlowMap = Callable[[Tensor, Tensor], Tensor]
"""From states `b *x c`, and times since them `b t`, to `b t *x c`."""


def frames_and_clock(batch: Batch) -> tuple[Float[Tensor, "b k *x c"], Float[Tensor, "b k"]]:
    """All frames of a batch, its states first, and each sample's times since those."""
    t = batch.t.expand(len(batch), -1)  # a single sample shares its times with all
    frames = torch.cat([batch.u0[:, None], batch.u], dim=1)
    return frames, torch.cat([torch.zeros_like(t[:, :1]), t], dim=1)


@dataclass(frozen=True, eq=False)
class Windows:
    """error(φ_τ(ũ), u(t + τ)) over the frames t + τ of a window, which begins with a true state or one of the model's.

    ũ is u(t), or what the model makes of u(t − j w) in j windows of length w, with j from 0 to `pushes` for equal parts
    of a batch. A model that has only seen true states goes astray where its own errors lead it (push-forward, as in
    Brandstetter et al., 2022). A batch holds all these windows in a row; where they begin before the first frame, that
    stands in its place, and nothing is pushed.

    chain: so many windows in a row are learnt from in the last part of a run, each but the first from the answer of the
        one before, whose gradient passes through.
    semigroup: weight of error(φ_{w − s}(φ_s(ũ)), u(t + w)) with s drawn anew in each step, for a quarter of the batch.
        The state between has no data, and the answers there learn to be states, too.
    noise: standard deviation of what is added to ũ, in the network's units.
    """

    error: Error
    window: int
    """Frames after the start of a window."""
    pushes: int
    even: bool
    """Whether frames are equally far apart: all samples then share their times, and what is made of those."""
    chain: int = 1
    semigroup: float = 0.0
    noise: float = 0.0
    warm_up: float = 0.1
    """Part of the run in which all windows begin with true states."""
    chained_from: float = 0.6
    """Part of the run before windows are chained."""
    static = True

    @property
    def phases(self) -> tuple[float, ...]:
        """The parts of the run after which another number of windows is asked."""
        return (self.warm_up,) * bool(self.pushes) + (self.chained_from,) * (self.chain > 1)

    def __call__(self, model: TrajectoryModel, batch: Batch, progress: float) -> Float[Tensor, ""]:
        frames, clock = frames_and_clock(batch)
        params = batch.params if model.params else None

        def flow(state: Float[Tensor, "b *x c"], times: Float[Tensor, "b t"]) -> Float[Tensor, "b t *x c"]:
            own = params if params is None else params[: len(state)]  # fewer states are the first of the batch
            return model(state, batch.grid, times[0] if self.even else times, own)

        first = self.pushes * self.window
        state = self._pushed(flow, frames, clock) if progress > self.warm_up else frames[:, first]
        if self.noise:
            state = state + self.noise * torch.randn_like(state)
        answers, last = [], first
        for _ in range(self.chain if progress > self.chained_from else 1):
            start = answers[-1][:, -1].to(state.dtype) if answers else state
            begin, last = last, last + self.window
            answers.append(flow(start, clock[:, begin + 1 : last + 1] - clock[:, begin : begin + 1]))
        loss = self.error(torch.cat(answers, dim=1), frames[:, first + 1 : last + 1])
        if self.semigroup:
            loss = loss + self.semigroup * self._in_two(flow, state, frames, clock)
        return loss

    @torch.no_grad()
    def _pushed(
        self, flow: FlowMap, frames: Float[Tensor, "b k *x c"], clock: Float[Tensor, "b k"]
    ) -> Float[Tensor, "b *x c"]:
        """The states that are learnt from: the first rows of a batch are pushed through one window after the other.

        In each of them more rows join, so that none is computed that is not used, and every step launches the same
        kernels.
        """
        whole = clock[:, -1:] - clock[:, -1 - self.window, None]
        state = frames[:, self.pushes * self.window].clone()
        for number in range(self.pushes):
            begin, end = number * self.window, (number + 1) * self.window
            share = len(state) * (number + 1) / (self.pushes + 1)
            rows = slice(ceil(share))
            length = clock[rows, end : end + 1] - clock[rows, begin : begin + 1]
            before = frames[rows, begin].clone()
            joined = ceil(len(state) * number / (self.pushes + 1))
            before[:joined] = state[:joined]
            given = flow(before, whole[rows] if self.even else length)[:, 0].to(state.dtype)
            # Frames before the first one are that one: a window there is shorter than the others, or nothing.
            there = length > 0.99 * whole[rows] if self.even else length > 0
            # Where the rows are not a whole number, the last one counts in part: it matters to small batches.
            drawn = torch.rand(len(given), device=given.device) < share / len(given)
            pushed = (there[:, 0] & drawn).view(-1, *[1] * (given.ndim - 1))
            state[rows] = torch.where(pushed, given, frames[rows, end])
        return state

    def _in_two(
        self,
        flow: FlowMap,
        state: Float[Tensor, "b *x c"],
        frames: Float[Tensor, "b k *x c"],
        clock: Float[Tensor, "b k"],
    ) -> Float[Tensor, ""]:
        """error(φ_{w − s}(φ_s(u)), u(t + w)) of the first quarter."""
        some, begin = -(-len(state) // 4), self.pushes * self.window
        end = begin + self.window
        whole = clock[:some, end : end + 1] - clock[:some, begin : begin + 1]
        part = torch.rand((), device=whole.device) * whole
        between = flow(state[:some], part)[:, 0].to(state.dtype)
        return self.error(flow(between, whole - part), frames[:some, end : end + 1])
