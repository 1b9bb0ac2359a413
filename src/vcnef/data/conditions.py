"""What a window is told beside its state: parameters, some at both of its ends, and the time at which it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

HARMONICS = 8
"""Of absolute time over the data. Without them, three periods of a forcing were not learnt where one was."""
ROUNDING = 1e-5
"""Of a window; times of single precision are off by so much at most."""


@dataclass(frozen=True)
class Columns:
    """The network's columns for a window: all values at its beginning, and at its end those that change.

    explicit_time: the last value at the beginning is the time there, −1 to 1 over the data. Beside it the network sees
        sines and cosines of it with up to `HARMONICS` periods, since a network alone learns what oscillates last.
    """

    varying: tuple[int, ...] = ()
    """Numbers of the parameters that change within a trajectory."""
    explicit_time: bool = False

    def count(self, params: int) -> int:
        """Return how many there are with so many parameters."""
        return params + len(self.varying) + (1 + 2 * HARMONICS) * self.explicit_time

    def join(self, begin: Float[Tensor, "*b r"], end: Float[Tensor, "*b _"]) -> Float[Tensor, "*b c"]:
        """Return the columns, of values at both ends."""
        # One by one: a list of numbers would be copied to the device, which a recorded step may not do.
        columns = [begin, *(end[..., column : column + 1] for column in self.varying)]
        if self.explicit_time:
            periods = torch.arange(1, HARMONICS + 1, device=begin.device, dtype=begin.dtype)
            angles = torch.pi * periods * (begin[..., -1:] + 1)
            columns += [angles.sin(), angles.cos()]
        return torch.cat(columns, dim=-1) if len(columns) > 1 else begin


class Ends(NamedTuple):
    """Parameters at the beginning of a window and as far on as they are known: to this part of it, mostly all."""

    first: Float[Tensor, "b p"]
    last: Float[Tensor, "b p"]
    part: float | Float[Tensor, "b 1"]


@dataclass(frozen=True, eq=False)
class Conditions:
    """Parameters and clock of some samples in physical units, of which each window is told its own."""

    params: Float[Tensor, "b p"] | Float[Tensor, "b r p"]
    """One value for each sample, or values at `times`, which are linear between these."""
    times: Float[Tensor, " r"] | None = None
    """Since u0, ascending, in double precision on the host."""
    start: Float[Tensor, " b"] | None = None
    """The time of u0 on the clock of the data, where the equation depends on it."""

    def select(self, rows: Int[Tensor, " r"]) -> Conditions:
        """Return those of some samples."""
        return Conditions(self.params[rows], self.times, None if self.start is None else self.start[rows])

    def at(self, time: float | Float[Tensor, " b"]) -> Float[Tensor, "b p"]:
        """Return the parameters at a time since u0, the same or each sample's own; before the first and after the last
        one they stay."""
        if self.times is None:
            return self.params
        if len(self.times) == 1:
            return self.params[:, 0]
        rows, asked = torch.arange(len(self.params)), self._of_each(time)
        after = torch.searchsorted(self.times, asked).clamp(1, len(self.times) - 1)
        before = after - 1
        share = ((asked - self.times[before]) / (self.times[after] - self.times[before])).clamp(0.0, 1.0)
        values = self.params[rows, before], self.params[rows, after]
        return torch.lerp(*values, share[:, None].to(self.params.device, self.params.dtype))

    def ends(
        self,
        begin: float | Float[Tensor, " b"],
        window: float,
        length: float | Float[Tensor, " b"] | None = None,
    ) -> Ends:
        """Return the parameters at both ends of a window, or of one of another length; of the last one as far as the
        record goes."""
        if self.times is None:
            return Ends(self.params, self.params, 1.0)
        first = self._of_each(begin)
        end, last = first + self._of_each(window if length is None else length), self.times[-1]
        # What ends within rounding of a window's beginning says nothing of its slope.
        known = torch.where((first + ROUNDING * window < last) & (last < end), last, end)
        part = ((known - first) / window)[:, None].to(self.params.device, self.params.dtype)
        return Ends(self.at(first), self.at(known), part)

    def clock(self, time: float | Float[Tensor, " b"]) -> Float[Tensor, " b"]:
        """Return when that time since u0 is on the clock of the data."""
        return self.start + (time.to(self.start.device, self.start.dtype) if isinstance(time, Tensor) else time)

    def _of_each(self, time: float | Float[Tensor, " b"]) -> Float[Tensor, " b"]:
        """A time for each sample, in double precision on the host."""
        return torch.as_tensor(time, dtype=torch.float64).cpu().expand(len(self.params)).contiguous()
