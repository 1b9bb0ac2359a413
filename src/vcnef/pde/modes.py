"""A solver for any equation on a periodic domain: Fourier modes, with steps that are as long as their error allows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from vcnef.grid import cell_centres
from vcnef.pde.finite_volume import per_sample
from vcnef.pde.fluxes import Spectral
from vcnef.problem import SPACE

TOLERANCE = 1e-6
"""Of the error of a step, as a part of each channel's norm."""
SHORTEST_STEP = 1e-9
"""A run that asks for a smaller part of its horizon has blown up; it is given up and set to NaN."""
MOST_STEPS = 200_000
TERMS = 14
"""Of a series at arguments up to 1: what follows is below rounding."""
UNRESOLVED = 0.01
"""Share of the shortest third of the waves in a field's norm, from which on the grid is too coarse for it."""


@torch.no_grad()
def solve_by_modes(
    law: Any,
    u0: Float[Tensor, "b *x c"],
    times: Sequence[float],
    params: Mapping[str, Float[Tensor, " b"]],
    domain: Sequence[Sequence[int | float]],
) -> Float[Tensor, "b t *x c"]:
    """Return states at ascending times by a pseudo-spectral method of lines, in double precision.

    û_t = L û + N(û, t) mode by mode, where L is the response of the equation to small waves on the mean state, each
    channel's to itself, and N is all the rest. L is integrated exactly, and N by the exponential rule of Runge and
    Kutta of fourth order (ETDRK4; Cox and Matthews, J. Comput. Phys. 176, 2002, equations 26 to 29). So linear
    dispersion and diffusion cost nothing, however stiff. What the rule's last stage and the next step's first one
    differ by, and the bend of N within a step, choose the step of each sample.

    Good values: smooth fields, on grids that resolve them. Breaks when: fields form shocks, which ring and are warned
    of; what is stiff is far from linear, which takes many small steps, and too many are an error.
    """
    sides = tuple(u0.shape[1:-1])
    spacing = tuple((high - low) / n for (low, high), n in zip(domain, sides, strict=True))
    fields = u0.double()
    columns = {name: per_sample(value.double(), fields[..., 0]) for name, value in params.items()}
    grid = cell_centres(domain, sides, dtype=torch.float64, device=u0.device)
    places = {name: grid[None, ..., axis] for axis, name in enumerate(SPACE[: len(sides)])}
    rule = _Rule(law, Spectral(spacing), columns, places, sides)
    run = _Run.begin(rule, fields, horizon=float(times[-1]))
    states = []
    for time in times:
        run.advance(float(time))
        states.append(rule.fields(run.modes))
    u = torch.stack(states, dim=1)
    _warn_unresolved(law, run.modes, sides)
    return u.to(u0.dtype)


@dataclass(frozen=True, eq=False)
class _Rule:
    """The equation on the modes of its fields."""

    law: Any
    method: Spectral
    params: Mapping[str, Tensor]
    places: Mapping[str, Tensor]
    sides: tuple[int, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(1, 1 + len(self.sides)))

    def modes(self, u: Float[Tensor, "b *x c"]) -> Complex[Tensor, "b *k c"]:
        return torch.fft.rfftn(u, dim=self.axes)

    def fields(self, modes: Complex[Tensor, "b *k c"]) -> Float[Tensor, "b *x c"]:
        return torch.fft.irfftn(modes, s=self.sides, dim=self.axes)

    def rate(self, u: Float[Tensor, "b *x c"], t: Float[Tensor, " b"]) -> Float[Tensor, "b *x c"]:
        where = {**self.places, "t": per_sample(t, u[..., 0])}
        return self.law.rate(self.method, u, self.params, where=where)

    def linear_part(self, u: Float[Tensor, "b *x c"]) -> Complex[Tensor, "b *k c"]:
        """Return the factor of each mode in the rate of small waves on the mean state; 0 where that is not finite."""
        mean = u.mean(dim=self.axes, keepdim=True).expand_as(u).contiguous()
        start = u.new_zeros(len(u))
        factors = []
        for channel in range(u.shape[-1]):
            # All waves at once, each of size one.
            spike = torch.zeros_like(u)
            spike[(slice(None), *(0,) * len(self.sides), channel)] = 1.0
            response = torch.func.jvp(lambda state: self.rate(state, start), (mean,), (spike,))[1]
            factors.append(self.modes(response[..., channel : channel + 1])[..., 0])
        linear = torch.stack(factors, dim=-1)
        return torch.where(linear.isfinite(), linear, 0.0)


@dataclass(eq=False)
class _Run:
    """A batch on its way, each sample with its own steps."""

    rule: _Rule
    linear: Complex[Tensor, "b *k c"]
    modes: Complex[Tensor, "b *k c"]
    rest: Complex[Tensor, "b *k c"]
    """N of the present modes."""
    time: Float[Tensor, " b"]
    step: Float[Tensor, " b"]
    """The next one of each sample."""
    shortest: float
    steps: int = 0

    @classmethod
    def begin(cls, rule: _Rule, u0: Float[Tensor, "b *x c"], horizon: float) -> _Run:
        linear, modes, time = rule.linear_part(u0), rule.modes(u0), u0.new_zeros(len(u0))
        run = cls(rule, linear, modes, modes, time, torch.full_like(time, 0.01 * horizon), SHORTEST_STEP * horizon)
        run.rest = run._rest(modes, time)
        return run

    def advance(self, end: float) -> None:
        """Carry every sample forward to a time."""
        going = self.time < end
        while going.any():
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise ValueError(
                    f"The solver has taken {MOST_STEPS} steps to t = {float(self.time.min()):.4g} and is not done; the "
                    "equation is stiff where it is not linear. Use a coarser grid, or give it a solver of your own."
                )
            left = end - self.time
            last = self.step >= left
            dt = torch.where(going, torch.where(last, left, self.step), 0.0)
            new, rest, error = self._try(dt)
            accepted = going & (error <= 1.0)
            self.modes = torch.where(_beside(accepted, new), new, self.modes)
            self.rest = torch.where(_beside(accepted, rest), rest, self.rest)
            self.time = torch.where(accepted, torch.where(last, end, self.time + dt), self.time)
            factor = (0.9 * error.clamp(min=1e-12) ** -0.25).clamp(0.2, 5.0).nan_to_num(nan=0.2)
            # A step that was cut at the output says nothing against a longer one.
            longer = torch.where(accepted & last, torch.maximum(self.step, dt * factor), dt * factor)
            self.step = torch.where(going, longer, self.step)
            self._give_up(going & ~(accepted & last) & (self.step < self.shortest))
            going = self.time < end

    def _try(self, dt: Float[Tensor, " b"]) -> tuple[Tensor, Tensor, Float[Tensor, " b"]]:
        """Return modes after a step, their N, and the error as a part of what is allowed."""
        h, t = _beside(dt, self.modes), self.time
        half, half_1, _, _ = _exponentials(0.5 * h * self.linear)
        whole, phi_1, phi_2, phi_3 = _exponentials(h * self.linear)
        ahead, first = half * self.modes, self.rest
        one = ahead + 0.5 * h * half_1 * first
        second = self._rest(one, t + 0.5 * dt)
        third = self._rest(ahead + 0.5 * h * half_1 * second, t + 0.5 * dt)
        fourth = self._rest(half * one + 0.5 * h * half_1 * (2 * third - first), t + dt)
        last = h * (4 * phi_3 - phi_2)
        new = whole * self.modes + h * (phi_1 - 3 * phi_2 + 4 * phi_3) * first
        new = new + h * (2 * phi_2 - 4 * phi_3) * (second + third) + last * fourth
        rest = self._rest(new, t + dt)
        off = 0.6 * (last * (fourth - rest)).abs() + (h * phi_1).abs() / 6 * _bend(first, second + third, fourth)
        size = torch.maximum(self._norm(self.modes), self._norm(new))
        return new, rest, (self._norm(off) / (TOLERANCE * size).clamp(min=1e-300)).amax(dim=1)

    def _rest(self, modes: Tensor, t: Float[Tensor, " b"]) -> Tensor:
        """Return N = f(u) − L u."""
        rule = self.rule
        return rule.modes(rule.rate(rule.fields(modes), t)) - self.linear * modes

    def _norm(self, modes: Tensor) -> Float[Tensor, "b c"]:
        return modes.abs().flatten(1, -2).norm(dim=1)

    def _give_up(self, lost: Tensor) -> None:
        self.modes = torch.where(_beside(lost, self.modes), torch.nan, self.modes)
        self.time = torch.where(lost, torch.inf, self.time)


def _exponentials(z: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return e^z, φ₁ = (e^z − 1) / z, φ₂ = (φ₁ − 1) / z and φ₃ = (φ₂ − ½) / z; near 0 by their series."""
    near = z.abs() < 1.0
    small, large = torch.where(near, z, 0.0), torch.where(near, 1.0, z)
    series = torch.zeros_like(z)
    for power in range(TERMS, -1, -1):
        series = series * small + 1 / factorial(power + 3)
    whole = torch.exp(z)
    phi_1 = torch.where(near, 1 + small * (0.5 + small * series), (whole - 1) / large)
    phi_2 = torch.where(near, 0.5 + small * series, (phi_1 - 1) / large)
    return whole, phi_1, phi_2, torch.where(near, series, (phi_2 - 0.5) / large)


def _bend(first: Tensor, middle: Tensor, last: Tensor) -> Tensor:
    """Return how far N is from linear within a step, of fourth order where it is smooth.

    Stages do not differ by what N has of time alone, which is not integrated exactly either.
    """
    size = first.abs() + middle.abs() + last.abs()
    return (first - middle + last).abs().square() / size.clamp(min=1e-300)


def _beside(values: Float[Tensor, " b"] | Tensor, modes: Tensor) -> Tensor:
    """Return `[b]` values as `[b 1 … 1]`."""
    return values.reshape(-1, *(1,) * (modes.ndim - 1))


def _warn_unresolved(law: Any, modes: Complex[Tensor, "b *k c"], sides: tuple[int, ...]) -> None:
    """Say where the shortest waves are too large a part of the last states."""
    short = torch.zeros(modes.shape[1:-1], dtype=torch.bool, device=modes.device)
    for axis, n in enumerate(sides):
        number = torch.arange(modes.shape[axis + 1], device=modes.device)
        cut = torch.minimum(number, n - number) > n / 3
        short |= cut.reshape(-1, *(1,) * (len(sides) - 1 - axis))
    energy = modes.abs().square()
    share = (energy[:, short].sum(dim=1) / energy.flatten(1, -2).sum(dim=1).clamp(min=1e-300)).sqrt()
    largest = float(share.nan_to_num().max())
    if largest > UNRESOLVED:
        warnings.warn(
            f"The shortest waves are {largest:.0%} of a solution of {getattr(law, 'name', 'this equation')!r}: "
            f"{'×'.join(map(str, sides))} points do not resolve it. Use a finer grid, or a solver of your own.",
            UserWarning,
            stacklevel=6,
        )
