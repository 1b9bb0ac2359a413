"""All scales of a training set, and what each batch is measured in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.conditions import Columns, Conditions
from vcnef.data.normalise import Normaliser, ParameterScale, PointScale, blocks
from vcnef.data.own_time import OwnTime
from vcnef.data.precision import short
from vcnef.problem import Problem


@dataclass(frozen=True)
class Scaling:
    """Scales of fields, of parameters, of times, whose horizon becomes 1, and of points, whose longest side does.

    With `own_time` they are those of quantities in each sample's own unit of time. Without `points`, coordinates are
    left as they are. With `explicit_time`, the first and the last time of the data, the network sees when a
    window begins, as −1 to 1 between these; parameters whose numbers are in `varying` it sees at both ends of a window.
    """

    fields: Normaliser
    params: ParameterScale
    horizon: float
    own_time: OwnTime | None = None
    points: PointScale | None = None
    explicit_time: tuple[float, float] | None = None
    varying: tuple[int, ...] = ()

    @classmethod
    def fit(cls, data: Any, log: Sequence[str] = (), *, own_time: bool = False) -> Scaling:
        own, ranges = _fit_own_time(data) if own_time else (None, data.problem.ranges)
        points = PointScale.fit(data.problem.domain)
        fields, params = Normaliser.fit(data, log, own), ParameterScale.fit(ranges)
        return cls(fields, params, horizon_of(data.t), own, points, varying=data.problem.varying_columns)

    @classmethod
    def identity(cls, problem: Problem, horizon: float) -> Scaling:
        """Fields, parameters and points as they are; only times are scaled."""
        channels, count = problem.channels, len(problem.parameters)
        zeros = torch.zeros(len(channels), dtype=torch.float32)
        fields = Normaliser(channels, zeros, zeros + 1.0, zeros.bool())
        params = ParameterScale((0.0,) * count, (1.0,) * count, (False,) * count)
        return cls(fields, params, horizon, varying=problem.varying_columns)

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

    @property
    def columns(self) -> Columns:
        """What the network is told of a window beside its state."""
        return Columns(self.varying, self.explicit_time is not None)

    def record(
        self, params: Float[Tensor, "b p"] | Float[Tensor, "b k p"], t: Float[Tensor, "_ k"]
    ) -> Float[Tensor, "b p"] | Float[Tensor, "b k r"]:
        """Return scaled parameters at frames of absolute time `t`, with that time beside them where it is told."""
        if self.explicit_time is None:
            return params
        each = params if params.ndim == 3 else params.unsqueeze(1).expand(-1, t.shape[-1], -1)
        return self.with_time(each, t.expand(len(params), -1))

    def with_time(self, params: Float[Tensor, "*b p"], time: Float[Tensor, "*b"]) -> Float[Tensor, "*b r"]:
        """Return scaled parameters with a column more, absolute time as the network sees it."""
        first, last = self.explicit_time
        scaled = (time - (first + last) / 2) / ((last - first) / 2)
        return torch.cat((params, scaled.unsqueeze(-1)), dim=-1)

    def units(self, u0: Float[Tensor, "b *x c"], params: Float[Tensor, "b *r p"]) -> Units:
        """What samples with these initial states and parameters are measured in."""
        return Units(self, None if self.own_time is None else self.own_time.rate(u0, params))

    def to(self, device: torch.device | str) -> Scaling:
        return replace(self, fields=self.fields.to(device))

    def to_dict(self) -> dict[str, Any]:
        params = {name: list(getattr(self.params, name)) for name in ("centre", "half_width", "log")}
        scales = {"fields": self.fields.to_dict(), "params": params, "horizon": self.horizon}
        further = {"own_time": self.own_time, "points": self.points}
        scales |= {name: scale.to_dict() for name, scale in further.items() if scale is not None}
        if self.explicit_time is not None:
            scales["explicit_time"] = list(self.explicit_time)
        return scales | ({"varying": list(self.varying)} if self.varying else {})

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Scaling:
        params = ParameterScale(*(tuple(record["params"][name]) for name in ("centre", "half_width", "log")))
        own = OwnTime.from_dict(record["own_time"]) if "own_time" in record else None
        # Models from before points were scaled say nothing of them, and see them as they are.
        points = PointScale.from_dict(record["points"]) if "points" in record else None
        explicit = tuple(map(float, record["explicit_time"])) if "explicit_time" in record else None
        fields, horizon = Normaliser.from_dict(record["fields"]), float(record["horizon"])
        return cls(fields, params, horizon, own, points, explicit, tuple(record.get("varying", ())))


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

    def params(self, params: Float[Tensor, "b *k p"]) -> Float[Tensor, "b *k p"]:
        own = params if self.rate is None else params / self.scaling.own_time.of_parameters(self.rate)
        return self.scaling.params.scale(own)

    def told(
        self,
        conditions: Conditions,
        begin: float | Float[Tensor, " b"],
        window: float,
        length: float | Float[Tensor, " b"] | None = None,
    ) -> Float[Tensor, "b c"]:
        """Return what the network is told of windows that begin so long after u0.

        Of one that is shorter than the trained window it is told the values at the end of that, as if they went on in
        a straight line: that is what its time 1 means.
        """
        known = conditions.ends(begin, window, length)
        first = last = self.params(known.first)
        if self.scaling.varying:
            last = first + (self.params(known.last) - first) / known.part
        if self.scaling.explicit_time is not None:
            first = self.scaling.with_time(first, conditions.clock(begin))
        return self.scaling.columns.join(first, last)

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
