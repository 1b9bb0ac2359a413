"""Which state a sample starts from, and at which later times a model is asked."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class Queries:
    """By default every sample starts from its initial state and is asked at all later frames.

    `times`: ask at so many of them only, if there are more, drawn anew for each batch and shared by its samples.
    `at_start`: the starting frame is one of those that are asked at. Its answer is the state itself, and without it a
    model is never told what happens before the first frame.
    `random_starts`: this share of the samples starts from a random frame instead, each from its own, and is asked at
    `times` random frames after that: constant cost per step, whatever the start.
    `passes`: algorithm 1 of the paper. An epoch is 1 + `passes` passes over the data, the first from frame 0, each
    other from one random frame for all samples and asked at all frames after it. (The paper has 10.)
    `window`: every sample starts from a random frame and is asked at the `window` frames after it; with `pushes`, at
    those of so many windows before these, one after the other. They may lie before the first frame, which then stands
    for all frames before it: so what is learnt from begins anywhere, and is one window, or a `chain` of them. An epoch
    has as many passes as a trajectory has windows. Models that step have a `chain` of steps.
    `history`: of so many frames, the start included, the first of these windows knows; they are drawn before it.
    """

    times: int | None = None
    random_starts: float = 0.0
    passes: int = 0
    at_start: bool = False
    window: int | None = None
    pushes: int = 0
    chain: int = 1
    history: int = 1

    def __post_init__(self) -> None:
        if self.times is not None and self.times < 1:
            raise ValueError(f"times is {self.times}; expected at least 1 query time, or None for all.")
        if not 0.0 <= self.random_starts <= 1.0:
            raise ValueError(f"random_starts is {self.random_starts:g}; expected a share between 0 and 1.")
        if self.passes < 0:
            raise ValueError(f"passes is {self.passes}; expected 0 or more, beside the one from the initial states.")
        if self.random_starts and self.times is None:
            raise ValueError("random_starts needs times, e.g. times=8: samples with later starts have fewer frames.")
        if self.random_starts and self.passes:
            raise ValueError("random_starts and passes are two ways to the same end; choose one.")
        if self.window is not None and self.window < 1:
            raise ValueError(f"window is {self.window} frames; expected at least 1, or None without windows.")
        if self.window and (self.random_starts or self.passes or self.times or self.at_start):
            raise ValueError(
                "window starts from random frames and asks at all of its own. Leave out random_starts, passes, times "
                "and at_start."
            )
        if self.pushes < 0 or (self.pushes and not self.window):
            raise ValueError(f"pushes is {self.pushes} with window={self.window}; expected 0 or more, of windows.")
        if self.chain < 1:
            raise ValueError(f"chain is {self.chain}; expected 1 or more windows.")
        if self.history < 1 or (self.history > 1 and not self.window):
            raise ValueError(
                f"history is {self.history} with window={self.window}; expected 1, or more frames before windows."
            )

    def check(self, frames: int) -> None:
        """Whether trajectories of so many frames are long enough."""
        # Random starts are to have a choice: the initial frame and the next.
        if self.window:
            needed = self.chain * self.window + self.history
            what = (
                f"a window of {self.window} frames needs"
                if self.chain == 1
                else f"a chain of {self.chain} windows needs"
            )
        elif self.random_starts:
            needed, what = self.times + 2, f"random_starts with times={self.times} needs"
        else:
            needed = self.passes + 2
            what = f"passes={self.passes} needs" if self.passes else "training needs"
        if frames < needed:
            raise ValueError(f"The data have {frames} frames; {what} at least {needed}. Give longer trajectories.")

    @property
    def consecutive(self) -> bool:
        """Whether the frames that are asked at are those after the start, one after the other."""
        return self.times is None and not self.at_start

    def passes_per_epoch(self, frames: int) -> int:
        """How often an epoch goes through the trajectories."""
        return (frames - 1) // self.window if self.window else 1 + self.passes

    def starts(self, frames: int, generator: torch.Generator) -> list[int]:
        """The starting frame of each pass of an epoch; 0 too where samples have their own."""
        if not self.passes:
            return [0] * self.passes_per_epoch(frames)
        shuffled = torch.randperm(frames - 2, generator=generator)[: self.passes] + 1
        return [0, *shuffled.tolist()]

    def draw(self, batch: int, frames: int, start: int, generator: torch.Generator) -> Int[Tensor, "b t"]:
        """Frames of a batch: the first column is the start, the others the queries, ascending.

        One row stands for the whole batch where all samples share their frames.
        """
        if self.window:
            return self._windows(batch, frames, generator)
        if self.random_starts:
            return self._own_frames(batch, frames, generator)
        later = torch.arange(start + (not self.at_start), frames)
        if self.times is not None and self.times < len(later):
            later = later[torch.randperm(len(later), generator=generator)[: self.times].sort().values]
        return torch.cat([torch.tensor([start]), later])[None]

    def _windows(self, batch: int, frames: int, generator: torch.Generator) -> Int[Tensor, "b t"]:
        pushed, learnt, earlier = self.window * self.pushes, self.window * self.chain, self.history - 1
        starts = earlier + torch.randint(frames - learnt - earlier, (batch, 1), generator=generator)
        before = pushed + earlier
        return (starts - before + torch.arange(before + learnt + 1)).clamp(min=0)

    def _own_frames(self, batch: int, frames: int, generator: torch.Generator) -> Int[Tensor, "b t"]:
        # Starts leave room for `times` different frames after them.
        latest = frames - self.times
        anywhere = (torch.rand(batch, 1, generator=generator) * latest).long()
        moved = torch.rand(batch, 1, generator=generator) < self.random_starts
        starts = torch.where(moved, anywhere, 0)
        keys = torch.rand(batch, frames, generator=generator)
        keys[torch.arange(frames) < starts + (not self.at_start)] = -1.0
        queries = keys.topk(self.times, dim=1).indices.sort(dim=1).values
        return torch.cat([starts, queries], dim=1)
