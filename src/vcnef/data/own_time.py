"""A unit of time of its own for every sample: a symmetry of the equation that no network has to learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.problem import Problem

SLOWEST = 1e-3
"""No sample's rate is taken to be less than this share of the largest: a state of rest has none."""


def _strength(u0: Mapping[str, Tensor], params: Mapping[str, Tensor]) -> Tensor:
    """Of Burgers' equation, where u is a velocity: its root mean square."""
    # As a norm, which has a slope at rest too: that of a root would make all gradients NaN.
    return torch.linalg.vector_norm(u0["u"], dim=1) / u0["u"].shape[1] ** 0.5


def _speed(u0: Mapping[str, Tensor], params: Mapping[str, Tensor]) -> Tensor:
    """Of advection: β."""
    return params["beta"].abs()


def _sound(u0: Mapping[str, Tensor], params: Mapping[str, Tensor]) -> Tensor:
    """Of a gas: the speed of sound, but for a constant."""
    return (u0["pressure"].mean(dim=1) / u0["density"].mean(dim=1)).sqrt()


@dataclass(frozen=True)
class Law:
    """The powers of the rate that an equation's fields and parameters go with, and what the rate of a sample is."""

    channels: Mapping[str, int]
    parameters: Mapping[str, int]
    rate: Callable[[Mapping[str, Tensor], Mapping[str, Tensor]], Tensor]
    returns: bool = False
    """Whether everything is where it was once waves have crossed a periodic domain."""


_GAS = Law({"density": 0, "pressure": 2, "vx": 1, "vy": 1, "vz": 1}, {"eta": 1, "zeta": 1}, _sound)
LAWS: Mapping[str, Law] = MappingProxyType(
    {
        "advection": Law({"u": 0}, {"beta": 1}, _speed, returns=True),
        "burgers": Law({"u": 1}, {"nu": 1}, _strength),
        **dict.fromkeys(("cns1d", "cns2d", "cns3d"), _GAS),
    }
)


@dataclass(frozen=True)
class OwnTime:
    """The same film, λ times as fast: if u(t) solves the equation with p, λᵃ u(λt) does with λᵇ p.

    Each channel has its a, velocities 1 and pressures 2, and each parameter its b. A sample has a rate r, which is λ
    times as large for that film; so u / rᵃ, p / rᵇ and r t are the same for both. `fastest` is the largest rate of
    training: a sample's horizon is r / `fastest` for the network. Where a film repeats itself, r t does too, with a
    `period`.

    >>> OwnTime("burgers", ("u",), ("nu",), fastest=2.0).rate(torch.full((1, 8, 1), 0.5), torch.tensor([[0.01]]))
    tensor([0.5000])
    """

    equation: str
    channels: tuple[str, ...]
    parameters: tuple[str, ...]
    fastest: float = 0.0
    period: float | None = None

    def __post_init__(self) -> None:
        if self.equation not in LAWS:
            raise ValueError(f"own_time is known for {', '.join(LAWS)}; the data are {self.equation!r}. Leave it out.")
        # Were a parameter not named, it would be another one in each sample's units, and the network could not know it.
        if not set(self.channels) <= set(self._law.channels) or set(self.parameters) != set(self._law.parameters):
            names, expected = self.channels + self.parameters, {**self._law.channels, **self._law.parameters}
            raise ValueError(
                f"own_time needs to know what the channels and parameters {', '.join(names)} are; for "
                f"{self.equation!r} it knows {', '.join(expected)}. Name them so, or leave out own_time."
            )

    @classmethod
    def of(cls, problem: Problem) -> OwnTime:
        own = cls(problem.name, problem.channels, problem.parameters)
        (low, high), *_ = problem.domain
        return replace(own, period=high - low) if own._law.returns and all(problem.closes) else own

    def rate(self, u0: Float[Tensor, "b *x c"], params: Float[Tensor, "b p"]) -> Float[Tensor, " b"]:
        fields = dict(zip(self.channels, u0.flatten(1, -2).unbind(dim=-1), strict=True))
        values = dict(zip(self.parameters, params.unbind(dim=-1), strict=True))
        return self.bounded(self._law.rate(fields, values))

    def bounded(self, rate: Float[Tensor, " b"]) -> Float[Tensor, " b"]:
        return rate.clamp_min(SLOWEST * self.fastest)

    def times(self, t: Float[Tensor, "*b t"], rate: Float[Tensor, " b"]) -> Float[Tensor, "b t"]:
        """r t."""
        own = t * rate[:, None]
        return own if self.period is None else own.remainder(self.period)

    def span(self, horizon: float) -> float:
        """The longest of these times."""
        return min(horizon * self.fastest, self.period or inf)

    def beside(self, u: Float[Tensor, "b *n c"], rate: Float[Tensor, " b"]) -> Float[Tensor, "b *_ c"]:
        """rᵃ, to divide fields by."""
        units = _powers(rate, [self._law.channels[name] for name in self.channels])
        return units[:, *(None,) * (u.ndim - 2)]

    def of_parameters(self, rate: Float[Tensor, " b"]) -> Float[Tensor, "b p"]:
        """rᵇ."""
        return _powers(rate, [self._law.parameters[name] for name in self.parameters])

    @property
    def _law(self) -> Law:
        return LAWS[self.equation]

    def to_dict(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> OwnTime:
        names = (tuple(record[name]) for name in ("channels", "parameters"))
        return cls(record["equation"], *names, float(record["fastest"]), record.get("period"))


def _powers(rate: Float[Tensor, " b"], powers: Sequence[int]) -> Float[Tensor, "b n"]:
    return torch.stack([rate**power for power in powers], dim=-1) if powers else rate.new_empty(len(rate), 0)
