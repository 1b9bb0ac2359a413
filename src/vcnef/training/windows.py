"""The loss of a flow map on windows: one after the other, the first ones without a gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data import Batch
from vcnef.data.conditions import Columns
from vcnef.data.history import as_channels, go_on
from vcnef.models.interface import TrajectoryModel
from vcnef.training.losses import Error

FlowMap = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From states `b h *x c` of one frame or more, times since them `b t`, and what is told of their windows `b c`, to
`b t *x c`."""


@dataclass(frozen=True, eq=False)
class Record:
    """What the windows of a batch are told: what holds throughout, or what changes linearly within each of them."""

    params: Float[Tensor, "b p"] | Float[Tensor, "b k r"]
    """Of each sample, or at each of its frames."""
    clock: Float[Tensor, "b k"]
    columns: Columns

    def told(self, begin: int, end: int, elapsed: Float[Tensor, "some 1"] | None = None) -> Tensor:
        """Return the columns of windows from one frame to another, or of the rest of them when some time has elapsed.

        A window ends at the network's time 1, however far its last frame is.
        """
        if self.params.ndim == 2:
            return self.params
        first, last = self.params[:, begin], self.params[:, end]
        # Where the first frame stands for frames before it, a window has no length, and nothing changes.
        length = (self.clock[:, end] - self.clock[:, begin]).clamp_min(1e-6).unsqueeze(-1)
        rate = (last - first) / length
        if elapsed is not None:
            # Of the first samples, as many as are given.
            some = len(elapsed)
            first, rate = first[:some] + elapsed * rate[:some], rate[:some]
        return self.columns.join(first, first + rate)


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
    columns: Columns = field(default_factory=Columns)
    """What a window is told."""
    history: int = 1
    """Frames that a window begins with; the first ones of a batch are older than all windows."""
    static = True

    @property
    def phases(self) -> tuple[float, ...]:
        """The parts of the run after which another number of windows is asked."""
        return (self.warm_up,) * bool(self.pushes) + (self.chained_from,) * (self.chain > 1)

    def __call__(self, model: TrajectoryModel, batch: Batch, progress: float) -> Float[Tensor, ""]:
        frames, clock = frames_and_clock(batch)
        record = Record(batch.params, clock, self.columns)

        def flow(
            state: Float[Tensor, "b h *x c"], times: Float[Tensor, "b t"], told: Float[Tensor, "_ p"]
        ) -> Float[Tensor, "b t *x c"]:
            own = told[: len(state)] if model.params else None  # fewer states are the first of the batch
            return model(as_channels(state), batch.grid, times[0] if self.even else times, own)

        first = self._earlier + self.pushes * self.window
        warm = progress <= self.warm_up
        state = self._true(frames, first) if warm else self._pushed(flow, frames, clock, record)
        if self.noise:
            state = state + self.noise * torch.randn_like(state)
        start, answers, last = state, [], first
        for _ in range(self.chain if progress > self.chained_from else 1):
            start = go_on(start, answers[-1].to(state.dtype)) if answers else start
            begin, last = last, last + self.window
            times = clock[:, begin + 1 : last + 1] - clock[:, begin : begin + 1]
            answers.append(flow(start, times, record.told(begin, last)))
        loss = self.error(torch.cat(answers, dim=1), frames[:, first + 1 : last + 1])
        if self.semigroup:
            loss = loss + self.semigroup * self._in_two(flow, state, frames, clock, record)
        return loss

    @property
    def _earlier(self) -> int:
        """How many frames of a batch are older than the first window."""
        return self.history - 1

    def _true(self, frames: Float[Tensor, "b k *x c"], place: int) -> Float[Tensor, "b h *x c"]:
        """The frames of the data up to a place."""
        return frames[:, place - self._earlier : place + 1]

    @torch.no_grad()
    def _pushed(
        self, flow: FlowMap, frames: Float[Tensor, "b k *x c"], clock: Float[Tensor, "b k"], record: Record
    ) -> Float[Tensor, "b h *x c"]:
        """The states that are learnt from: the first rows of a batch are pushed through one window after the other.

        In each of them more rows join, so that none is computed that is not used, and every step launches the same
        kernels.
        """
        # Of a window's answers, those that the next one begins with.
        kept = min(self.history, self.window)
        usual = clock[:, -kept:] - clock[:, -1 - self.window, None]
        whole = clock[:, -1] - clock[:, -1 - self.window - self._earlier]
        state = self._true(frames, self._earlier + self.pushes * self.window).clone()
        for number in range(self.pushes):
            begin = self._earlier + number * self.window
            end = begin + self.window
            share = len(state) * (number + 1) / (self.pushes + 1)
            rows = slice(ceil(share))
            before = self._true(frames, begin)[rows].clone()
            joined = ceil(len(state) * number / (self.pushes + 1))
            before[:joined] = state[:joined]
            times = usual[rows] if self.even else clock[rows, end - kept + 1 : end + 1] - clock[rows, begin, None]
            given = go_on(before, flow(before, times, record.told(begin, end)).to(state.dtype))
            # Frames before the first one are that one: a window there is shorter than the others, or nothing.
            length = clock[rows, end] - clock[rows, begin - self._earlier]
            there = length > 0.99 * whole[rows] if self.even else length > 0
            # Where the rows are not a whole number, the last one counts in part: it matters to small batches.
            drawn = torch.rand(len(given), device=given.device) < share / len(given)
            pushed = (there & drawn).view(-1, *[1] * (given.ndim - 1))
            state[rows] = torch.where(pushed, given, self._true(frames, end)[rows])
        return state

    def _in_two(
        self,
        flow: FlowMap,
        state: Float[Tensor, "b 1 *x c"],
        frames: Float[Tensor, "b k *x c"],
        clock: Float[Tensor, "b k"],
        record: Record,
    ) -> Float[Tensor, ""]:
        """error(φ_{w − s}(φ_s(u)), u(t + w)) of the first quarter."""
        some, begin = -(-len(state) // 4), self.pushes * self.window
        end = begin + self.window
        whole = clock[:some, end : end + 1] - clock[:some, begin : begin + 1]
        part = torch.rand((), device=whole.device) * whole
        between = flow(state[:some], part, record.told(begin, end)).to(state.dtype)
        rest = record.told(begin, end, part)
        return self.error(flow(between, whole - part, rest), frames[:some, end : end + 1])
