"""Compositions whose windows shorten where one of them and its two halves differ, and lengthen again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, sqrt
from numbers import Real
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vcnef.data.scaling import Units
from vcnef.spelling import spell_value
from vcnef.surrogate.composition import ROUNDING

SHORTEST = 1 / 32
"""Of the trained window: halves are not halved again below it, so that there are 32 times as many windows at most."""
LENGTHEN = 0.25
"""Of the tolerance: after a window that differs from its halves by less, the next one is twice as long."""
MARGIN = 0.01
"""Of the time between frames: times are rounded."""
FADED = 1e-3
"""Of the spread of training: fields that have faded below it are judged against it, not against themselves."""


class Place(NamedTuple):
    """Where windows are: the numbers of their samples, and when they begin after u0 and how long they are meant to be,
    both on the host."""

    rows: Int[Tensor, " r"]
    begin: Float[Tensor, " r"]
    length: Float[Tensor, " r"]


FlowMap = Callable[[Tensor, Tensor, Place], Tensor]
"""From states `r *x c`, times since them `r t` up to a window, and the place of that, to `r t *x c`."""
Distance = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Of two states `b *x c`, relative to the second one, for the samples of these numbers: `b`."""


@dataclass(frozen=True, eq=False)
class Steps:
    """How an answer was composed, sample by sample.

    error: the sum of what windows differed from their halves: the error at the last time, if a half is right and the
        equation neither damps an error nor lets it grow.
    windows: how many there were.
    shortest: the shortest one of all samples, in the units of t.
    failed: windows that differed by more than the tolerance, but could not be halved again.
    calls: how often the network was called, for all samples together.
    """

    tolerance: float | int
    error: Float[Tensor, " b"]
    windows: Int[Tensor, " b"]
    shortest: float
    failed: Int[Tensor, " b"]
    calls: int

    def describe(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        """As attributes of an answer; files of labelled arrays can hold them."""
        doubts = self.doubts(provenance)
        return {
            "tolerance": self.tolerance,
            "estimated_error": self.error.numpy(),
            "windows": self.windows.numpy(),
            "shortest_window": self.shortest,
            "windows_beyond_tolerance": self.failed.numpy(),
            "network_calls": self.calls,
            **({"doubts": " ".join(doubts)} if doubts else {}),
        }

    def doubts(self, provenance: Mapping[str, Any]) -> list[str]:
        """A sentence for each reason not to believe the estimate, by what the model was trained on."""
        said = []
        times = provenance.get("times", ())
        gap = max([later - earlier for earlier, later in pairwise(times)], default=0.0)
        if self.shortest / 2 < (1 - MARGIN) * gap and not provenance.get("semigroup"):
            said.append(
                f"Halves of windows are down to {self.shortest / 2:.4g} long, but frames in training are {gap:.4g} "
                "apart, and train.semigroup was 0: what lies between frames was never learnt, so that the estimated "
                "error means little and shorter windows may be worse. Train with a longer window, or with semigroup."
            )
        bad = int((self.failed > 0).sum())
        if bad:
            said.append(
                f"In {bad} of {len(self.failed)} samples windows of 1/{round(1 / SHORTEST)} of the trained one still "
                f"differ from their halves by more than the tolerance of {self.tolerance:g}. They are taken as they "
                "are; give a larger tolerance."
            )
        return said


def check_tolerance(tolerance: float | int, *, composes: bool, name: str, history: int = 1) -> None:
    """Refuse a tolerance that is none, and that of a model whose windows have no lengths to choose."""
    if not isinstance(tolerance, Real) or not (isfinite(tolerance) and tolerance > 0):
        shown = f"{tolerance:g}" if isinstance(tolerance, Real) else spell_value(tolerance)
        raise ValueError(f"tolerance is {shown}; expected a number above 0, e.g. 1e-3, or None for no steps.")
    if not composes:
        raise ValueError(
            f"tolerance is {tolerance:g}, but {name!r} does not compose windows, whose lengths could be chosen. "
            "Leave it out, or train a vcnef."
        )
    if history > 1:
        raise ValueError(
            f"tolerance is {tolerance:g}, but {name!r} begins each window with {history} frames in the spacing of the "
            "data, which windows of other lengths do not end with. Leave it out, or train with history=1."
        )


def relative_distance(units: Units, u: Float[Tensor, "b *x c"], reference: Float[Tensor, "b *x c"]) -> Tensor:
    """‖u − reference‖ / ‖reference‖ of each sample in the network's units, where all channels have a spread of 1."""
    z = units.fields(reference).flatten(1)
    off = units.fields(u).flatten(1) - z
    return off.norm(dim=1) / z.norm(dim=1).clamp(min=FADED * sqrt(z.shape[1]))


def compose_adaptively(
    flow: FlowMap,
    distance: Distance,
    u0: Float[Tensor, "b *x c"],
    t: Float[Tensor, " t"] | Float[Tensor, "b t"],
    window: float,
    tolerance: float | int,
) -> tuple[Float[Tensor, "b t *x c"], Steps]:
    """As `compose`, with windows h ≤ w for which ‖φ_h(u) − φ_{h/2}(φ_{h/2}(u))‖ ≤ `tolerance` ‖u‖, and what they were.

    Each sample has windows of its own, so that its answer does not depend on what is asked beside it. Where all
    windows are as long as the trained one, the answer is that of `compose`. A window takes two calls of the network:
    φ_{h/2} and φ_h are one question. Other samples that are still under way share them.
    """
    walk = _Walk(u0, t.detach().cpu().double().expand(len(u0), -1), window)
    while (rows := walk.under_way()).numel():
        here = rows.to(u0.device)
        length, asked, times = walk.question(rows)
        half = length / 2
        begin, meant = walk.now[rows], walk.length[rows]
        # The times that are asked for, the middle and the end of the window.
        together = torch.cat((times, half[:, None], length[:, None]), dim=1).to(u0.device, t.dtype)
        u = flow(walk.state[here], together, Place(here, begin, meant))
        later = Place(here, begin + half, meant / 2)
        halves = flow(u[:, -2], half[:, None].to(u0.device, t.dtype), later)[:, 0]
        error = distance(u[:, -1], halves, here).detach().cpu().double()
        walk.judge(rows, length, error, tolerance, asked, u)
    return walk.answer, walk.steps(tolerance)


class _Walk:
    """Where each sample is: its time, its state, the length of its next window, and what was answered so far."""

    def __init__(self, u0: Float[Tensor, "b *x c"], t: Float[Tensor, "b t"], window: float) -> None:
        count = len(u0)
        self.t, self.window, self.state = t, window, u0.clone()
        self.answer = u0.new_empty(count, t.shape[1], *u0.shape[1:])
        self.answered = torch.zeros(t.shape, dtype=torch.bool)
        self.now = torch.zeros(count, dtype=torch.float64)
        self.last = t.amax(dim=1) if t.shape[1] else self.now
        self.length = torch.full((count,), window, dtype=torch.float64)
        self.error = torch.zeros(count, dtype=torch.float64)
        self.windows, self.failed = torch.zeros(2, count, dtype=torch.long)
        self.shortest, self.calls = window, 0

    def under_way(self) -> Int[Tensor, " r"]:
        """The samples that have times to be answered."""
        return (~self.answered).any(dim=1).nonzero()[:, 0]

    def question(self, rows: Int[Tensor, " r"]) -> tuple[Tensor, Bool[Tensor, "r t"], Float[Tensor, "r a"]]:
        """Lengths of the next windows, which times lie in them, and these since their starts, as many for each sample:
        where one has fewer, 0 stands for the rest."""
        length = torch.minimum(self.length[rows], self.last[rows] - self.now[rows])
        since = self.t[rows] - self.now[rows, None]
        asked = ~self.answered[rows] & (since <= length[:, None] + ROUNDING * self.window)
        times = since.new_zeros(len(rows), int(asked.sum(dim=1).max()))
        times[self._places(asked, times.shape[1])] = since[asked]
        return length, asked, torch.minimum(times.clamp(min=0.0), length[:, None])

    def judge(
        self,
        rows: Int[Tensor, " r"],
        length: Float[Tensor, " r"],
        error: Float[Tensor, " r"],
        tolerance: float | int,
        asked: Bool[Tensor, "r t"],
        u: Float[Tensor, "r a *x c"],
    ) -> None:
        """Take the windows that are right, or can be no shorter; halve the others."""
        self.calls += 2
        right = error <= tolerance
        taken = right | (length <= SHORTEST * self.window * (1 + ROUNDING))
        mine = rows[taken]
        there = self._places(asked, u.shape[1])[taken].to(u.device)
        place = torch.zeros_like(self.answered)
        place[mine] = asked[taken]
        self.answer[place.to(u.device)] = u[taken.to(u.device)][there]
        self.answered |= place
        self.state[mine.to(u.device)] = u[taken.to(u.device), -1]
        self.now[mine] += length[taken]
        self.error[mine] += error[taken]
        self.windows[mine] += 1
        self.failed[mine] += (~right)[taken].long()
        # One that the last time cuts short is no short window.
        whole = taken & (length >= (1 - ROUNDING) * self.length[rows])
        self.shortest = min([self.shortest, *length[whole].tolist()])
        easy = error[taken] <= LENGTHEN * tolerance
        self.length[mine] = torch.where(easy, 2 * self.length[mine], self.length[mine]).clamp(max=self.window)
        self.length[rows[~taken]] = length[~taken] / 2

    def _places(self, asked: Bool[Tensor, "r t"], most: int) -> Bool[Tensor, "r a"]:
        """Where in rows of so many places the times stand that are asked for: at their beginnings."""
        return torch.arange(most) < asked.sum(dim=1, keepdim=True)

    def steps(self, tolerance: float | int) -> Steps:
        return Steps(tolerance, self.error, self.windows, self.shortest, self.failed, self.calls)
