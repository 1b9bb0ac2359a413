"""Batches: named records on the device, seeded, reproducible and resumable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from operator import index
from typing import NamedTuple, SupportsIndex

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.data.ahead import Ahead
from vcnef.data.augment import Setting, Symmetry
from vcnef.data.prefetch import prefetch
from vcnef.data.queries import Queries
from vcnef.data.scaling import Scaling
from vcnef.data.stored import StoredTrajectories
from vcnef.data.trajectories import Trajectories
from vcnef.data.transfer import send
from vcnef.pde import noted_generation

RESIDENT_SHARE = 0.6
"""Data that fill no more than this share of the device's free memory are kept there."""


@dataclass(frozen=True, eq=False)
class Batch:
    """What a model is asked and what it should answer; `t` is measured from `u0`, shared or each sample's own.

    `params` are those of the sample, or where something is told that changes with time, those at u0 and each frame.
    """

    u0: Float[Tensor, "b *x c"]
    grid: Float[Tensor, "*x D"]
    t: Float[Tensor, " t"] | Float[Tensor, "b t"]
    params: Float[Tensor, "b p"] | Float[Tensor, "b k r"]
    u: Float[Tensor, "b t *x c"]

    def __len__(self) -> int:
        return len(self.u0)


class Step(NamedTuple):
    """One batch to come: which samples, from which frame on, and its place in the run."""

    epoch: int
    number: int
    rows: Tensor
    start: int


class Batches:
    """Epochs of batches of a data set, which sits on the device if it fits and is streamed there otherwise.

    Every random choice comes from a generator on the CPU seeded by (seed, epoch, step), so a run is the same on any
    device and can be taken up at any step. With a `scaling`, batches are in the network's units. `shard` is
    (rank, processes): each process gets its own part of an epoch, padded so that all have equally many steps, and draws
    for itself within a batch. The first one draws what it would alone.
    """

    def __init__(
        self,
        data: Trajectories | StoredTrajectories,
        size: SupportsIndex,
        *,
        device: torch.device | str = "cpu",
        seed: SupportsIndex | None = 0,
        queries: Queries | None = None,
        symmetries: Sequence[Symmetry] = (),
        scaling: Scaling | None = None,
        drop_last: bool = False,
        shard: tuple[int, int] = (0, 1),
    ) -> None:
        """`seed=None` keeps the order of the data, as evaluation wants it."""
        size = index(size)
        if size < 1 or not len(data):
            raise ValueError(f"Batches of {size} out of {len(data)} trajectories; expected at least one of each.")
        self.size, self.seed, self.drop_last, self.shard = size, seed, drop_last, shard
        self.queries = queries or Queries()
        self.queries.check(len(data.t))
        # The symmetries look at times and grid on the host, so that no step waits for the device.
        setting = Setting(data.problem, data.t.cpu(), data.grid.cpu(), noted_generation(data.attributes))
        self._transforms = []
        for symmetry in symmetries:
            self._transforms.append(symmetry.bind(setting))
            setting = setting.thinned(getattr(symmetry, "stride", 1))
        self.device = _indexed(torch.device(device))
        self.data = place(data, self.device)
        self._scaling = scaling.to(self.device) if scaling else None
        self._t, self._params = data.t.to(self.device), data.params.to(self.device)
        grid = setting.grid if scaling is None else scaling.coordinates(setting.grid)
        self._grid = grid.contiguous().to(self.device)
        self._ahead = Ahead(self.device)
        if not len(self):
            raise ValueError(f"Batches of {size} with drop_last leave nothing of {len(data)} trajectories.")

    def __len__(self) -> int:
        """Steps per epoch."""
        samples = -(-len(self.data) // self.shard[1])
        steps = samples // self.size if self.drop_last else -(-samples // self.size)
        return steps * self.queries.passes_per_epoch(len(self._t))

    def __iter__(self) -> Iterator[Batch]:
        return self.epoch(0)

    def epoch(self, number: int, *, first: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, from step `first` on."""
        for step, u, places in self._sources(self._plan(number)[first:]):
            yield self._ahead(self._batch, step, u, places)

    def steps(self, first: int = 0) -> Iterator[Batch]:
        """Batches without end, from step `first` of the run on."""
        epoch, step = divmod(first, len(self))
        while True:
            yield from self.epoch(epoch, first=step)
            epoch, step = epoch + 1, 0

    def _sources(self, steps: list[Step]) -> Iterator[tuple[Step, Tensor, Int[Tensor, " b"]]]:
        """Each with the trajectories `u [n t *x c]` and the places where its own are among them."""
        if isinstance(self.data, Trajectories) and self.data.u.device == self.device:
            for step in steps:
                yield step, self.data.u, step.rows
            return
        for step, u in prefetch(steps, self._fetch):
            yield step, u, torch.arange(len(u))

    def _plan(self, epoch: int) -> list[Step]:
        generator = self._generator(epoch)
        rank, processes = self.shard
        total, share = len(self.data), -(-len(self.data) // processes)
        plan: list[Step] = []
        for start in self.queries.starts(len(self._t), generator):
            order = torch.arange(total) if self.seed is None else torch.randperm(total, generator=generator)
            mine = order[torch.arange(rank, share * processes, processes) % total]
            for rows in mine.split(self.size):
                if len(rows) == self.size or not self.drop_last:
                    plan.append(Step(epoch, len(plan), rows, start))
        return plan

    def _batch(self, step: Step, u: Tensor, places: Int[Tensor, " b"]) -> Batch:
        """The batch of a step, whose trajectories are found at these places."""
        # Order and starts of the passes are common to all processes; what is drawn here, whose shapes are, is not.
        rank = self.shard[0]
        generator = self._generator(step.epoch, step.number, *([rank] if rank else []))
        frames = self.queries.draw(len(step.rows), len(self._t), step.start, generator)
        on_device = send(frames, self.device)
        states = send(u, self.device)[send(places, self.device)[:, None], on_device]
        for transform in self._transforms:
            states = transform(states, frames, generator)
        absolute = self._t[on_device]
        t = (absolute - absolute[:, :1])[:, 1:]
        params = self._params[send(step.rows, self.device)]
        if self.data.problem.varying:
            params = params[torch.arange(len(params), device=self.device)[:, None], on_device]
        if self._scaling:
            units = self._scaling.units(states[:, 0], params)
            states, t, params = units.fields(states), units.times(t), units.params(params)
            params = self._scaling.record(params, absolute)
        # In one piece each, as recorded steps read them: a GPU copies them here beside the step before.
        u0, later, t = (each.contiguous() for each in (states[:, 0], states[:, 1:], t[0] if len(t) == 1 else t))
        return Batch(u0, self._grid, t, params, later)

    def _fetch(self, step: Step) -> Tensor:
        u = self.data.read(step.rows)
        return u.pin_memory() if self.device.type == "cuda" else u

    def _generator(self, *place: int) -> torch.Generator:
        return torch.Generator().manual_seed(seed_of(self.seed, *place))


def seed_of(*place: SupportsIndex | str | None) -> int:
    """A seed that follows from the place in a run alone, so that one that is resumed draws the same numbers there."""
    # Whole numbers of NumPy write themselves otherwise.
    plain = tuple(index(each) if isinstance(each, SupportsIndex) else each for each in place)
    return int.from_bytes(blake2b(repr(plain).encode(), digest_size=7).digest())


def place(data: Trajectories | StoredTrajectories, device: torch.device) -> Trajectories | StoredTrajectories:
    """The data on the device if they fit there, otherwise where they are."""
    if isinstance(data, StoredTrajectories) or data.u.device == device:
        return data
    if device.type == "cuda" and data.u.nbytes > RESIDENT_SHARE * torch.cuda.mem_get_info(device)[0]:
        return data
    return data.to(device)


def _indexed(device: torch.device) -> torch.device:
    """A tensor's device is always numbered: "cuda" is "cuda:0" or whichever is current."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device
