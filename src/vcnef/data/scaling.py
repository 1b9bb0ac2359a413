"""All scales of a training set, and what each batch is measured in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.normalise import Normaliser, ParameterScale, PointScale, blocks
from vcnef.data.own_time import OwnTime
from vcnef.data.precision import short
from vcnef.problem import Problem


@dataclass(frozen=True)
class Scaling:
    """Scales of fields, of parameters, of times, whose horizon becomes 1, and of points, whose longest side does.

    With `own_time` they are those of quantities in each sample's own unit of time. Without `points`, coordinates are
    left as they are.
    """

    fields: Normaliser
    params: ParameterScale
    horizon: float
    own_time: OwnTime | None = None
    points: PointScale | None = None

    @classmethod
    def fit(cls, data: Any, log: Sequence[str] = (), *, own_time: bool = False) -> Scaling:
        own, ranges = _fit_own_time(data) if own_time else (None, data.problem.ranges)
        points = PointScale.fit(data.problem.domain)
        return cls(Normaliser.fit(data, log, own), ParameterScale.fit(ranges), horizon_of(data.t), own, points)

    @classmethod
    def identity(cls, problem: Problem, horizon: float) -> Scaling:
        """Fields, parameters and points as they are; only times are scaled."""
        channels, count = problem.channels, len(problem.parameters)
        zeros = torch.zeros(len(channels), dtype=torch.float32)
        fields = Normaliser(channels, zeros, zeros + 1.0, zeros.bool())
        return cls(fields, ParameterScale((0.0,) * count, (1.0,) * count, (False,) * count), horizon)

    @property
    def span(self) -> float:
        """How long the network's time 1 is, in these units."""
        return self.horizon if self.own_time is None else self.own_time.span(self.horizon)

    @property
    def length(self) -> float:
        """How long the network's length 1 is, in the units of the domain."""
        return 1.0 if self.points is None else self.points.length

    def coordinates(self, grid: Float[Tensor, "*x D"]) -> Float[Tensor, "*x D"]:
        """Physical points as the network sees them."""
        return grid if self.points is None else self.points.scale(grid)

    def physical(
        self, z: Float[Tensor, "*b c"], z_t: Float[Tensor, "*b c"]
    ) -> tuple[Float[Tensor, "*b c"], Float[Tensor, "*b c"]]:
        """Fields and their derivatives in time, of the network, in physical units; with `own_time` in samples' own."""
        return torch.func.jvp(self.fields.denormalise, (z,), (z_t / self.span,))

    def physical_points(self, grid: Float[Tensor, "*x D"]) -> Float[Tensor, "*x D"]:
        """The inverse of `coordinates`."""
        return grid if self.points is None else self.points.unscale(grid)

    def units(self, u0: Float[Tensor, "b *x c"], params: Float[Tensor, "b p"]) -> Units:
        """What samples with these initial states and parameters are measured in."""
        return Units(self, None if self.own_time is None else self.own_time.rate(u0, params))

    def to(self, device: torch.device | str) -> Scaling:
        return replace(self, fields=self.fields.to(device))

    def to_dict(self) -> dict[str, Any]:
        params = {name: list(getattr(self.params, name)) for name in ("centre", "half_width", "log")}
        scales = {"fields": self.fields.to_dict(), "params": params, "horizon": self.horizon}
        further = {"own_time": self.own_time, "points": self.points}
        return scales | {name: scale.to_dict() for name, scale in further.items() if scale is not None}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Scaling:
        params = ParameterScale(*(tuple(record["params"][name]) for name in ("centre", "half_width", "log")))
        own = OwnTime.from_dict(record["own_time"]) if "own_time" in record else None
        # Models from before points were scaled say nothing of them, and see them as they are.
        points = PointScale.from_dict(record["points"]) if "points" in record else None
        return cls(Normaliser.from_dict(record["fields"]), params, float(record["horizon"]), own, points)


@dataclass(frozen=True, eq=False)
class Units:
    """From physical quantities of a batch to the network's and back; `rate` is that of each sample's own time."""

    scaling: Scaling
    rate: Float[Tensor, " b"] | None

    def fields(self, u: Float[Tensor, "b *n c"]) -> Float[Tensor, "b *n c"]:
        return self.scaling.fields.normalise(u if self.rate is None else u / self._beside(u))

    def physical(self, z: Float[Tensor, "b *n c"]) -> Float[Tensor, "b *n c"]:
        """Fields again."""
        u = self.scaling.fields.denormalise(z)
        return u if self.rate is None else u * self._beside(u)

    def params(self, params: Float[Tensor, "b p"]) -> Float[Tensor, "b p"]:
        own = params if self.rate is None else params / self.scaling.own_time.of_parameters(self.rate)
        return self.scaling.params.scale(own)

    def times(self, t: Float[Tensor, "*b t"]) -> Float[Tensor, "*c t"]:
        """Times since the initial state; with rates, each sample has its own."""
        own = t if self.rate is None else self.scaling.own_time.times(t, self.rate)
        return own / self.scaling.span

    def _beside(self, u: Tensor) -> Tensor:
        return self.scaling.own_time.beside(u, self.rate)


def horizon_of(t: Float[Tensor, " t"]) -> float:
    """From the first frame to the last."""
    return short(float(t[-1] - t[0]))


def _fit_own_time(data: Any) -> tuple[OwnTime, dict[str, tuple[float, float]]]:
    """With the largest rate of the data, and the ranges of their parameters in these units."""
    own = OwnTime.of(data.problem)
    measured = [(own.rate(u[:, 0], params), params) for u, params in blocks(data)]
    rates, params = (torch.cat(each) for each in zip(*measured, strict=True))
    # Where all are at rest, any unit does.
    own = replace(own, fastest=float(rates.max()) or 1.0)
    params = params / own.of_parameters(own.bounded(rates))
    ends = zip(params.amin(dim=0).tolist(), params.amax(dim=0).tolist(), strict=True)
    return own, dict(zip(data.problem.parameters, ends, strict=True))
