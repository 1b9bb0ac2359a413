"""The driver: carries a batch of states through the output times, each sample with its own time steps.

Every sample takes the largest stable step of its own state, cut at the next output time, so its trajectory does not
depend on the rest of the batch. (Where sub-steps are many it does, by some millionths: how many make a step is settled
for the whole batch when the host looks.) A sample that has reached the output time takes empty steps until the slowest
one is there; samples are therefore sorted by step size into groups that fill the machine.
On CUDA a step is compiled into fused kernels and replayed as a CUDA graph. The host looks at the device once per frame
to learn how many steps to queue, and once more if wave speeds have risen meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.pde.finite_volume import State, per_sample
from vcnef.pde.fusing import repeatable, tensors

GROUP_CELLS = {"cuda": 2**21, "cpu": 2**16}
"""Cells that advance together: enough to fill the chip, few enough to stay in its cache and to sort finely."""

LOOK_EVERY = 512
"""Most steps queued before the host looks at the device again; bounds the time lost to a run that blew up."""

MOST_STEPS = 1e8
"""Of one run; hours of them on any machine."""

SMALLEST_STEP = 1e-3
"""A run whose stable step falls below this part of its first one has blown up; it is given up and set to NaN."""


@runtime_checkable
class Scheme(Protocol):
    """A numerical scheme for a batch of states; its tensors all start with the sample axis."""

    def limit(self, state: State) -> Tensor:
        """Return the largest stable time step of each sample, `[b]`."""
        ...

    def step(self, state: State, dt: Tensor) -> State:
        """Return the state after time steps `dt [b]`."""
        ...


@runtime_checkable
class SplitScheme(Scheme, Protocol):
    """A scheme that splits off a stiffer part, advanced after each step in smaller sub-steps."""

    sublimit: Tensor
    """Largest stable sub-step of each sample, `[b]`."""

    def start(self, fields: State) -> State:
        """Return the state of these fields, with what the sub-steps carry along besides."""
        ...

    def read(self, state: State) -> State:
        """Return the fields of a state."""
        ...

    def substep(self, state: State, dt: Tensor) -> State:
        """Return the state after sub-steps `dt [b]` of the split-off part."""
        ...


@torch.no_grad()
def integrate(
    build: Callable[[Sequence[Tensor]], Scheme],
    u0: Float[Tensor, "b *x c"],
    times: Sequence[float],
    params: Sequence[Float[Tensor, " b"]],
    *,
    compiled: bool | None = None,
) -> Float[Tensor, "b t *x c"]:
    """Return states at ascending `times` from `u0` at time 0; `build(params)` makes the scheme of a group of samples.

    `compiled` defaults to CUDA only.
    """
    u = u0.new_empty(len(u0), len(times), *u0.shape[1:])
    gaps = [after - before for before, after in pairwise([0.0, *times])]
    if compiled is None:
        compiled = u0.is_cuda
    run = None
    for rows in _groups(build(params), u0):
        scheme = build([p[rows] for p in params])
        state = _start(scheme, _components(u0[rows]))
        _check_length(scheme, state, times)
        if run is None or len(run.left) != len(state[0]):
            run = _Run(scheme, state, compiled)
        else:
            run.restart(scheme, state)
        for frame, gap in enumerate(gaps):
            run.advance(gap)
            u[rows, frame] = torch.stack(_read(scheme, run.state), dim=-1)
    return u


def _check_length(scheme: Scheme, state: State, times: Sequence[float]) -> None:
    """Refuse a run that would not end, by the steps that its first states ask for."""
    limit = scheme.limit(state)
    if isinstance(scheme, SplitScheme):
        limit = torch.minimum(limit, scheme.sublimit.to(limit.dtype))
    # A step of zero is one of infinite speed: such a run has blown up before it began.
    shortest = float(limit.where(limit > 0, torch.inf).amin())
    steps = times[-1] / shortest
    if steps > MOST_STEPS:
        raise ValueError(
            f"The solver needs {steps:.2g} steps of {shortest:.2g} until the last time, {times[-1]:g}; expected at "
            f"most {MOST_STEPS:.0e}. Take less extreme parameters or states, fewer cells, or an earlier last time."
        )


def _components(u0: Tensor) -> State:
    return tuple(component.clone(memory_format=torch.contiguous_format) for component in u0.unbind(-1))


def _start(scheme: Scheme, fields: State) -> State:
    if isinstance(scheme, SplitScheme):
        return scheme.start(fields)
    return fields


def _read(scheme: Scheme, state: State) -> State:
    if isinstance(scheme, SplitScheme):
        return scheme.read(state)
    return state


def _groups(scheme: Scheme, u0: Tensor) -> Iterator[Tensor | slice]:
    """Yield rows of the batch that advance together, alike in step size."""
    cells = u0[0, ..., 0].numel()
    size = max(1, GROUP_CELLS.get(u0.device.type, GROUP_CELLS["cpu"]) // cells)
    if len(u0) <= size:
        yield slice(None)
        return
    yield from scheme.limit(_start(scheme, u0.unbind(-1))).argsort().split(size)


class _Run:
    """A group of samples on its way: their state, advanced in place, and the time left to the next output."""

    def __init__(self, scheme: Scheme, state: State, compiled: bool) -> None:
        self.scheme, self.state = scheme, state
        self.least = _least_step(scheme, state)
        self.most = torch.full_like(self.least, torch.inf)
        # In double precision: each step would be rounded alike, and the clock be late by a percent after 1e5 of them.
        self.left = torch.zeros_like(self.least, dtype=torch.float64)
        self.split_left = torch.zeros_like(self.left)
        # With no time left a step changes nothing, so it may be traced and captured on the live state.
        step = (scheme, state, self.left, self.split_left, self.least, self.most)
        self._step = repeatable(_step, step, compiled)
        self._substep: Callable[[], None] | None = None
        if isinstance(scheme, SplitScheme):
            self._substep = repeatable(_substep, (scheme, state, self.split_left), compiled)

    def restart(self, scheme: Scheme, state: State) -> None:
        """Take in another group of as many samples, keeping the captured steps and the memory they work on."""
        for old, new in zip(tensors((self.scheme, self.state)), tensors((scheme, state)), strict=True):
            old.copy_(new)
        self.least.copy_(_least_step(scheme, state))

    def advance(self, gap: float) -> None:
        """Carry every sample forward by the time `gap`."""
        if gap == 0.0:
            return
        self.left.fill_(gap)
        while True:
            steps, substeps = self._plan()
            if steps == 0:
                return
            for _ in range(min(steps, LOOK_EVERY)):
                self._step()
                if self._substep is not None:
                    for _ in range(substeps):
                        self._substep()

    def _plan(self) -> tuple[int, int]:
        """Return the steps that the slowest sample needs, and sub-steps in each; only here the host waits."""
        left = self.left.to(self.least.dtype)
        limit = self.scheme.limit(self.state)
        dt = _time_step(limit, left, self.least)
        pieces = torch.zeros_like(dt)
        if isinstance(self.scheme, SplitScheme):
            # A run that has blown up needs none; its one long step would ask all others for thousands.
            going = limit >= self.least
            pieces = torch.ceil(dt / self.scheme.sublimit).where(going, 0.0)
            # A sample keeps to the sub-steps it asked for here, so that they always cover its step.
            self.most.copy_((pieces * self.scheme.sublimit).where(going, torch.inf))
            dt = torch.minimum(dt, self.most)
        steps = torch.ceil(left / dt).nan_to_num(nan=0.0)  # 0 / 0 where no time is left
        most_steps, most_pieces = torch.stack([steps.amax(), pieces.amax()]).tolist()
        return int(most_steps), int(most_pieces)


def _least_step(scheme: Scheme, state: State) -> Tensor:
    """Return the step below which a run that begins so has blown up; infinite speed has a step of zero."""
    least = SMALLEST_STEP * scheme.limit(state)
    return least.clamp(min=torch.finfo(least.dtype).tiny)


def _time_step(limit: Tensor, left: Tensor, least: Tensor) -> Tensor:
    """Return the stable step, cut at the output time; a run that has blown up goes there at once."""
    return torch.where(limit >= least, torch.minimum(limit, left), left)


def _step(
    scheme: Scheme, state: State, left: Tensor, split_left: Tensor, least: Tensor, most: Tensor
) -> None:  # in place
    limit = scheme.limit(state)
    dt = torch.minimum(_time_step(limit, left.to(limit.dtype), least), most)
    _overwrite(state, scheme.step(state, torch.where(limit >= least, dt, torch.nan)), dt)
    _spend(left, dt)
    split_left.copy_(dt)


def _substep(scheme: SplitScheme, state: State, split_left: Tensor) -> None:  # in place
    dt = torch.minimum(scheme.sublimit, split_left.to(scheme.sublimit.dtype))
    _overwrite(state, scheme.substep(state, dt), dt)
    _spend(split_left, dt)


def _spend(left: Tensor, dt: Tensor) -> None:  # in place
    """Take a step off the time that is left; nothing remains of what rounding alone would leave."""
    left.copy_(torch.where(dt >= left.to(dt.dtype), 0.0, left - dt))


def _overwrite(state: State, new: State, dt: Tensor) -> None:
    """Put `new` in place of `state`, except for samples whose step is empty: those stay as they are to the bit."""
    moving = per_sample(dt > 0, state[0])
    for old_component, new_component in zip(state, new, strict=True):
        if new_component is not old_component:
            old_component.copy_(torch.where(moving, new_component, old_component))
