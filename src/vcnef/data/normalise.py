"""Scales that a network likes, of fields per channel, of parameters and of points, each storable as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log as ln
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from vcnef.data.own_time import OwnTime
from vcnef.data.rows import bytes_of_one, row_blocks
from vcnef.problem import Problem

DECADES = 10.0
"""A positive parameter whose largest value is this many times its smallest is scaled in its logarithm."""


@dataclass(frozen=True, eq=False)
class Normaliser:
    """Per channel (u − mean) / std, of log u where `log` says so."""

    channels: tuple[str, ...]
    mean: Float[Tensor, " c"]
    std: Float[Tensor, " c"]
    log: Bool[Tensor, " c"]

    @classmethod
    def fit(cls, data: Any, log: Sequence[str] = (), own_time: OwnTime | None = None) -> Normaliser:
        """Mean and standard deviation over samples, times and space of training data; never of valid or test data.

        `log` names positive channels (density, pressure) to be normalised in their logarithm; with `own_time` fields
        are in their samples' own units.
        """
        if data.subset not in (None, "train"):
            raise ValueError(f"A normaliser is fitted on training data; got the {data.subset} split.")
        channels = data.problem.channels
        if unknown := set(log) - set(channels):
            raise ValueError(f"log names {sorted(unknown)}; the channels are {', '.join(channels)}.")
        in_log = torch.tensor([name in log for name in channels])
        count, total, squares = 0, torch.zeros(len(channels)).double(), torch.zeros(len(channels)).double()
        for u, params in blocks(data):
            values = u if own_time is None else u / own_time.beside(u, own_time.rate(u[:, 0], params))
            values = values.flatten(0, -2)
            if (values[:, in_log] <= 0).any():
                raise ValueError(f"log names {sorted(log)}, but not all their values are positive.")
            values = torch.where(in_log, values.clamp_min(1e-30).log(), values)
            count += len(values)
            total += values.sum(dim=0)
            squares += values.square().sum(dim=0)
        mean = total / count
        std = (squares / count - mean.square()).clamp_min(0.0).sqrt()
        # A channel that never changes is shifted only; single precision would otherwise blow up its noise, which a
        # logarithm near 0, that of a value near 1, has too.
        size = torch.where(in_log, mean.abs().clamp_min(1.0), mean.abs())
        std = torch.where(std > 1e-6 * size, std, 1.0)
        return cls(channels, mean.float(), std.float(), in_log)

    def normalise(self, u: Float[Tensor, "*n c"]) -> Float[Tensor, "*n c"]:
        return (torch.where(self.log, u.clamp_min(1e-30).log(), u) - self.mean) / self.std

    def denormalise(self, z: Float[Tensor, "*n c"]) -> Float[Tensor, "*n c"]:
        u = z * self.std + self.mean
        # The unused branch must stay finite, or its gradient would be 0 · ∞.
        return torch.where(self.log, torch.where(self.log, u, 0.0).exp(), u)

    def check(self, u0: Float[Tensor, "*n c"]) -> None:
        """Refuse states that have no logarithm where one is taken."""
        for name, values, log in zip(self.channels, u0.unbind(dim=-1), self.log.tolist(), strict=True):
            if log and (values <= 0).any():
                raise ValueError(
                    f"The {name} of u0 goes down to {values.min():.4g}, but the model knows {name} by its logarithm. "
                    "Give positive values; check the order and the units of the channels."
                )

    def to(self, device: torch.device | str) -> Normaliser:
        return Normaliser(self.channels, self.mean.to(device), self.std.to(device), self.log.to(device))

    def to_dict(self) -> dict[str, Any]:
        lists = {name: getattr(self, name).tolist() for name in ("mean", "std", "log")}
        return {"channels": list(self.channels), **lists}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Normaliser:
        mean, std, log = (torch.tensor(record[name]) for name in ("mean", "std", "log"))
        return cls(tuple(record["channels"]), mean.float(), std.float(), log.bool())


@dataclass(frozen=True)
class ParameterScale:
    """Each parameter to about [−1, 1] over the training range, in its logarithm (base 10) where it spans decades."""

    centre: tuple[float, ...]
    half_width: tuple[float, ...]
    log: tuple[bool, ...]

    @classmethod
    def fit(cls, ranges: Mapping[str, tuple[float, float]]) -> ParameterScale:
        log = tuple(low > 0 and high >= DECADES * low for low, high in ranges.values())
        ends = torch.tensor([list(pair) for pair in ranges.values()], dtype=torch.float64).reshape(-1, 2)
        ends = torch.where(torch.tensor(log, dtype=torch.bool)[:, None], ends.clamp_min(1e-300).log10(), ends)
        low, high = ends.unbind(dim=1)
        # A range of rounding alone, as values in samples' own units have it, is one value: it would be blown up.
        half = torch.where(high - low > 1e-5 * low.abs().maximum(high.abs()), (high - low) / 2, 1.0)
        return cls(tuple(((low + high) / 2).tolist()), tuple(half.tolist()), log)

    def scale(self, params: Float[Tensor, "*b p"]) -> Float[Tensor, "*b p"]:
        if not self.centre:  # exported programs know no columns of nothing
            return params
        columns = zip(params.unbind(dim=-1), self.centre, self.half_width, self.log, strict=True)
        scaled = [((value.log10() if log else value) - centre) / half for value, centre, half, log in columns]
        return torch.stack(scaled, dim=-1)

    def check(self, params: Float[Tensor, "*b p"], problem: Problem) -> None:
        """Refuse values that have no logarithm where one is taken."""
        for name, column, log in zip(problem.parameters, params.unbind(dim=-1), self.log, strict=True):
            if log and (column <= 0).any():
                low, high = problem.ranges[name]
                raise ValueError(
                    f"{name} is {column.min():g}, but the model knows {name} by its logarithm, as it is trained on "
                    f"{low:g} to {high:g}. Give positive values, or train on such ones too."
                )

    def speeds(self, ranges: Mapping[str, tuple[float, float]]) -> tuple[tuple[float, float, bool], ...]:
        """(a, b, logarithmic) of each parameter p: a + b · scaled, or its exponential, is p / the largest |p|."""
        largest = [max(abs(low), abs(high)) or 1.0 for low, high in ranges.values()]
        columns = zip(largest, self.centre, self.half_width, self.log, strict=True)
        return tuple(
            (ln(10) * centre - ln(most), ln(10) * half, True) if log else (centre / most, half / most, False)
            for most, centre, half, log in columns
        )

    def unscale(self, scaled: Float[Tensor, "*b p"]) -> Float[Tensor, "*b p"]:
        columns = zip(scaled.unbind(dim=-1), self.centre, self.half_width, self.log, strict=True)
        params = [10 ** (z * half + centre) if log else z * half + centre for z, centre, half, log in columns]
        return torch.stack(params, dim=-1) if params else scaled


@dataclass(frozen=True)
class PointScale:
    """x ↦ (x − origin) / length: a domain of any unit and origin to one from 0 on, whose longest side is 1.

    One length for all axes, so that angles and ratios stay.
    """

    origin: tuple[float, ...]
    length: float

    @classmethod
    def fit(cls, domain: Sequence[tuple[float, float]]) -> PointScale | None:
        """None where coordinates are so already."""
        scale = cls(tuple(low for low, _ in domain), max(high - low for low, high in domain))
        return None if (set(scale.origin), scale.length) == ({0.0}, 1.0) else scale

    def scale(self, grid: Float[Tensor, "*x D"]) -> Float[Tensor, "*x D"]:
        lines = zip(grid.unbind(dim=-1), self.origin, strict=True)
        return torch.stack([(line - low) / self.length for line, low in lines], dim=-1)

    def unscale(self, points: Float[Tensor, "*x D"]) -> Float[Tensor, "*x D"]:
        lines = zip(points.unbind(dim=-1), self.origin, strict=True)
        return torch.stack([line * self.length + low for line, low in lines], dim=-1)

    def to_dict(self) -> dict[str, Any]:
        return {"origin": list(self.origin), "length": self.length}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> PointScale:
        return cls(tuple(float(low) for low in record["origin"]), float(record["length"]))


def blocks(data: Any) -> Iterator[tuple[Float[Tensor, "b t *x c"], Tensor]]:
    """All fields with their parameters in double precision, a block of trajectories at a time."""
    for rows in row_blocks(len(data), bytes_of_one(data)):
        yield data.read(rows).cpu().double(), data.params[rows].cpu().double()
