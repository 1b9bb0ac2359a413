"""Which frames and which points of a data set are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from vcnef.periodicity import Periodic, of_points


@dataclass(frozen=True)
class View:
    """Every `time_stride`-th frame up to `horizon`, and every `space_stride`-th point along each axis from `phase` on.

    `horizon` is a physical time measured from the first frame. The paper's 1D Navier–Stokes set, the first 41 of 51
    frames, is `View(space_stride=4, time_stride=2, horizon=0.8)`.
    """

    space_stride: int = 1
    time_stride: int = 1
    horizon: float | None = None
    phase: int = 0

    def __post_init__(self) -> None:
        for name, stride in (("space_stride", self.space_stride), ("time_stride", self.time_stride)):
            if not isinstance(stride, Integral) or stride < 1:
                raise ValueError(f"{name} is {stride}; expected a positive whole number.")
        if not 0 <= self.phase < self.space_stride:
            raise ValueError(f"phase is {self.phase}; expected 0 to {self.space_stride - 1} with this space_stride.")
        try:
            object.__setattr__(self, "horizon", None if self.horizon is None else float(self.horizon))
        except (TypeError, ValueError):
            raise ValueError(f"horizon is {self.horizon!r}; expected a time, or None for the last one.") from None

    def frames(self, t: np.ndarray) -> slice:
        """The frames kept of those at times `t`."""
        if self.horizon is None:
            return slice(0, len(t), self.time_stride)
        elapsed = np.asarray(t, dtype=np.float64) - float(t[0])
        # Files hold single-precision times: 0.8 is stored as 0.80000001.
        slack = 1e-5 * float(elapsed[-1])
        if self.horizon > elapsed[-1] + slack:
            raise ValueError(f"horizon is {self.horizon:g}, but the data end at {elapsed[-1]:g}; choose less or None.")
        kept = int(np.count_nonzero(elapsed <= self.horizon + slack))
        if kept <= self.time_stride:
            raise ValueError(f"horizon {self.horizon:g} and time_stride {self.time_stride} leave only the first frame.")
        return slice(0, kept, self.time_stride)

    def points(self, shape: Sequence[int], *, periodic: Periodic) -> tuple[slice, ...]:
        """The points kept along each axis of a grid of this shape."""
        for n, closes in zip(shape, of_points(periodic, shape), strict=True):
            # On a periodic axis the last gap would be shorter than the others, so the thinned grid not uniform.
            if (closes and n % self.space_stride) or self.phase >= n:
                raise ValueError(f"{n} points do not divide by space_stride {self.space_stride}; choose a divisor.")
        return tuple(slice(self.phase, None, self.space_stride) for _ in shape)
