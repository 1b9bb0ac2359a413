"""Exact symmetries of the equations: new trajectories from old ones, each for the equations it is valid for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from math import isclose, log
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vcnef.data.transfer import send
from vcnef.grid import is_even, is_scattered, spacing
from vcnef.pde import EQUATIONS, equation, is_known
from vcnef.periodicity import spell_axes
from vcnef.problem import Problem
from vcnef.suggest import suggestion

GAS = frozenset({"cns1d", "cns2d", "cns3d"})
SCALAR = frozenset({"advection", "burgers"})
VELOCITIES = ("vx", "vy", "vz")

Transform = Callable[[Tensor, Tensor, torch.Generator], Tensor]
"""Maps `u [b t *x c]`, whose frame numbers are `[b or 1, t]`, each sample by its own draw."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What a symmetry has to know of the data: the problem, the times of the frames, the grid, and the generation."""

    problem: Problem
    t: Float[Tensor, " t"]
    grid: Float[Tensor, "*x D"]
    generation: str = "documented"

    @property
    def resolution(self) -> tuple[int, ...]:
        return tuple(self.grid.shape[:-1])

    def thinned(self, stride: int) -> Setting:
        return replace(self, grid=self.grid[(slice(None, None, stride),) * (self.grid.ndim - 1)])


@runtime_checkable
class Symmetry(Protocol):
    """Maps solutions to solutions. `equations` are the names of the problems for which that is exact; for an equation
    that is not known here, the user vouches."""

    equations: ClassVar[frozenset[str]]
    vouched: bool

    def bind(self, setting: Setting) -> Transform:
        """The transform for these data; data for which it would not be exact are refused in one sentence."""
        ...


@dataclass(frozen=True)
class Shift:
    """u(x) → u(x − s) by whole cells along each periodic axis; along others, fields stay where they are.

    Beside walls it is exact where those are the same all along the periodic axes.

    With `stride` the shift is on the fine grid of the data and every `stride`-th point is kept: sub-grid phases, all
    of them exact, and a batch on the coarse grid.
    """

    stride: int = 1
    vouched: bool = False
    equations: ClassVar = SCALAR | GAS

    def bind(self, setting: Setting) -> Transform:
        _check_valid(self, setting)
        if any(n % self.stride for n in setting.resolution):
            raise ValueError(f"Shift has stride {self.stride}, which does not divide {setting.resolution} points.")
        return partial(self._apply, setting.problem.closes)

    def _apply(self, closed: tuple[bool, ...], u: Tensor, frames: Tensor, generator: torch.Generator) -> Tensor:
        for axis, closes in enumerate(closed, start=2):
            most = u.shape[axis] if closes else 1
            cells = torch.randint(most, (len(u), 1), generator=generator)
            u = _roll(u, axis, send(cells, u.device), self.stride)
        return u


@dataclass(frozen=True)
class Reflect:
    """x_a → −x_a along each periodic axis with probability ½, with the sign of that velocity (of u for Burgers).

    Not for advection, which has a direction. `odd` are the channels that change sign with every axis, such as a
    vorticity, beside vx, vy and vz with their own. Of equations that are known it is known. Axes that are not periodic
    stay as they are: nothing says that both ends are alike.
    """

    odd: tuple[str, ...] | None = None
    vouched: bool = False
    equations: ClassVar = frozenset({"burgers"}) | GAS

    def bind(self, setting: Setting) -> Transform:
        _check_valid(self, setting)
        problem = setting.problem
        odd = _odd_channels(self, problem, usual=("u",) if problem.name == "burgers" else ())
        signs = {}
        for axis, closes in enumerate(problem.closes):
            changed = {VELOCITIES[axis], *odd}
            if closes:
                signs[axis] = torch.tensor([-1.0 if name in changed else 1.0 for name in problem.channels])
        return partial(self._apply, signs)

    def _apply(self, signs: dict[int, Tensor], u: Tensor, frames: Tensor, generator: torch.Generator) -> Tensor:
        for axis, sign in signs.items():
            flip = _per_sample(torch.rand(len(u), generator=generator) < 0.5, u)
            u = torch.where(flip, u.flip(axis + 2) * send(sign, u.device), u)
        return u


@dataclass(frozen=True)
class Permute:
    """Exchange of periodic axes with their velocities; with `Reflect` the 8 symmetries of a square, 48 of a cube.

    Exact for the equations. The solver takes its viscous steps one axis after the other, so where η is large its
    data have this symmetry only up to that splitting error (at η = 0.1 about 3e-4 of the field on 32² cells).
    `odd` are the channels that change sign where two axes are exchanged, such as a vorticity.
    """

    odd: tuple[str, ...] | None = None
    vouched: bool = False
    equations: ClassVar = frozenset({"cns2d", "cns3d"})

    def bind(self, setting: Setting) -> Transform:
        _check_valid(self, setting)
        shape, domain = setting.resolution, setting.problem.domain
        orders = _orders(setting.problem.closes)
        closed = [axis for axis, closes in enumerate(setting.problem.closes) if closes]
        first, *others = (domain[axis][1] - domain[axis][0] for axis in closed)
        if len({shape[axis] for axis in closed}) > 1 or not all(isclose(first, other) for other in others):
            raise ValueError(f"Permute needs equal axes; got {shape} points on {domain}.")
        cells = torch.arange(setting.grid[..., 0].numel()).reshape(shape)
        points = torch.stack([cells.permute(order).flatten() for order in orders])
        names = setting.problem.channels
        odd = torch.tensor([name in _odd_channels(self, setting.problem) for name in names])
        velocities = _velocity_channels(self, setting.problem) if set(VELOCITIES) & set(names) else []
        channels = torch.arange(len(names)).repeat(len(orders), 1)
        signs = torch.ones(len(orders), len(names))
        for row, sign, order in zip(channels, signs, orders, strict=True):
            # New axis k is old axis order[k], and so is the velocity along it.
            if velocities:
                row[velocities] = torch.tensor([velocities[axis] for axis in order])
            sign[odd] = torch.linalg.det(torch.eye(len(order))[list(order)])
        return partial(self._apply, points, channels, signs)

    def _apply(
        self, points: Tensor, channels: Tensor, signs: Tensor, u: Tensor, frames: Tensor, generator: Any
    ) -> Tensor:
        drawn = torch.randint(len(points), (len(u),), generator=generator)
        flat = u.flatten(2, -2).take_along_dim(send(points[drawn], u.device)[:, None, :, None], dim=2)
        flat = flat.take_along_dim(send(channels[drawn], u.device)[:, None, None, :], dim=3)
        return (flat * send(signs[drawn], u.device)[:, None, None, :]).reshape(u.shape)


@dataclass(frozen=True)
class Galilean:
    """u(t, x) → u(t, x − ct) + c: a moving observer, at speeds for which every frame moves by whole cells.

    Such speeds are multiples of Δx/Δt, along each axis up to `speed`. It moves the mean: keep it small.
    """

    speed: float
    vouched: bool = False
    equations: ClassVar = frozenset({"burgers"}) | GAS

    def bind(self, setting: Setting) -> Transform:
        _check_valid(self, setting)
        _check_no_walls(self, setting.problem)
        if setting.problem.name == "burgers" and setting.generation == "2022":
            raise ValueError("Galilean is not exact for Burgers data of 2022: their waves move at 2u.")
        if not is_even(setting.t):
            raise ValueError("Galilean needs equally spaced times; these are not.")
        step = float(setting.t.double().diff().mean())
        quanta = [gap / step for gap in spacing(setting.grid)]
        # Rounding takes no cell away: 0.3 is three times 0.1, and the least speed that is named below will do.
        most = [int(self.speed / quantum + 1e-4) for quantum in quanta]
        if min(most) < 1:
            least = max(quanta)
            raise ValueError(f"Galilean has speed {self.speed:g}; on this grid and these times the least is {least:g}.")
        return partial(self._apply, list(zip(_velocity_channels(self, setting.problem), quanta, most, strict=True)))

    def _apply(
        self, axes: list[tuple[int, float, int]], u: Tensor, frames: Tensor, generator: torch.Generator
    ) -> Tensor:
        elapsed = send(frames - frames[:, :1], u.device)
        for axis, (channel, quantum, most) in enumerate(axes):
            cells = send(torch.randint(-most, most + 1, (len(u), 1), generator=generator), u.device)
            boost = _per_sample(cells[:, 0] * quantum, u) * (torch.arange(u.shape[-1], device=u.device) == channel)
            u = _roll(u, axis + 2, cells * elapsed) + boost
        return u


@dataclass(frozen=True)
class Affine:
    """u → ± a u + b with log a uniform within ±log `factor`, b uniform within ±`offset`: advection is linear."""

    factor: float = 2.0
    offset: float = 1.0
    vouched: bool = False
    equations: ClassVar = frozenset({"advection"})

    def bind(self, setting: Setting) -> Transform:
        _check_valid(self, setting)
        return self._apply

    def _apply(self, u: Tensor, frames: Tensor, generator: torch.Generator) -> Tensor:
        scale, sign, offset = torch.rand(3, len(u), generator=generator)
        scale = torch.exp((2 * scale - 1) * log(self.factor)) * torch.where(sign < 0.5, -1.0, 1.0)
        return u * _per_sample(scale, u) + _per_sample((2 * offset - 1) * self.offset, u)


def _per_sample(values: Tensor, u: Tensor) -> Tensor:
    """One value per sample, beside fields."""
    return send(values, u.device).reshape(-1, *(1,) * (u.ndim - 1))


def _roll(u: Float[Tensor, "b t *x c"], axis: int, steps: Int[Tensor, "b _"], stride: int = 1) -> Tensor:
    """u(x_i) → u(x_{i−steps}) along one axis, each sample (and frame) by its own number of cells."""
    cells = torch.arange(0, u.shape[axis], stride, device=u.device)
    source = (cells - steps[..., None]) % u.shape[axis]
    shape = [1] * u.ndim
    shape[0], shape[1], shape[axis] = source.shape
    return u.take_along_dim(source.reshape(shape), dim=axis)


def _odd_channels(symmetry: Reflect | Permute, problem: Problem, usual: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The channels that change sign; of an equation that is known, the usual ones."""
    name, odd = type(symmetry).__name__.lower(), symmetry.odd
    if problem.name in symmetry.equations:
        if odd is not None:
            raise ValueError(f"Which channels of {problem.name!r} change sign with {name} is known. Leave odd out.")
        return usual
    if odd is None:
        raise ValueError(
            f"Which of {', '.join(problem.channels)} change sign with {name}, beside vx, vy and vz with their own "
            f"axes, is not said. Write {{{name!r}: {{'odd': [{problem.channels[0]!r}]}}}}, or 'odd': [] for none."
        )
    for each in odd:
        if each not in problem.channels:
            raise ValueError(f"The symmetry {name} has the odd channel {each!r}. {suggestion(each, problem.channels)}")
    return odd


def _velocity_channels(symmetry: Symmetry, problem: Problem) -> list[int]:
    """The channel that belongs to each axis; the only one of a line is its own velocity."""
    names = VELOCITIES[: problem.ndim]
    if problem.ndim == 1 and len(problem.channels) == 1:
        return [0]
    if not set(names) <= set(problem.channels):
        raise ValueError(
            f"{type(symmetry).__name__} changes the velocities {', '.join(names)}; the data of this {problem.name!r} "
            f"have {', '.join(problem.channels)}. Name them so, or leave it out."
        )
    return [problem.channels.index(name) for name in names]


def _check_valid(symmetry: Symmetry, setting: Setting) -> None:
    name, problem = type(symmetry).__name__, setting.problem
    if problem.name not in symmetry.equations:
        _check_vouched(symmetry, problem.name)
    if not any(problem.closes) or is_scattered(setting.grid):
        raise ValueError(f"{name} needs a periodic grid; that of this {problem.name!r} is not.")
    spacing(setting.grid)  # refuses an uneven one, on which no shift by cells is a shift
    if problem.name not in EQUATIONS:
        return  # its user vouches for it
    fields = equation(problem.name).problem
    if (problem.ndim, problem.channels) != (fields.ndim, fields.channels):
        raise ValueError(
            f"{name} is a symmetry of {fields.ndim}D fields {', '.join(fields.channels)}; the data of this "
            f"{problem.name!r} are {problem.ndim}D, with {', '.join(problem.channels)}. Train without symmetries."
        )


def _check_no_walls(symmetry: Symmetry, problem: Problem) -> None:
    if not all(problem.closes):
        raise ValueError(
            f"{type(symmetry).__name__} needs a domain that is periodic along every axis, for walls do not move with "
            f"the observer; this {problem.name!r} is periodic {spell_axes(problem.closes)}. Leave it out."
        )


def _orders(closes: tuple[bool, ...]) -> list[tuple[int, ...]]:
    """The orders of the axes in which all that are not periodic keep their places, as walls are not alike."""
    if sum(closes) < 2:
        raise ValueError(f"Permute exchanges periodic axes; the domain is periodic {spell_axes(closes)} only.")
    every = permutations(range(len(closes)))
    return [order for order in every if all(closes[axis] or order[axis] == axis for axis in range(len(closes)))]


def _check_vouched(symmetry: Symmetry, problem: str) -> None:
    name = type(symmetry).__name__
    if problem in EQUATIONS:
        raise ValueError(f"{name} is no symmetry of {problem!r}; it is one of {', '.join(sorted(symmetry.equations))}.")
    if not symmetry.vouched:
        which = "your own" if is_known(problem) else "not known"
        raise ValueError(
            f"The equation of {problem!r} is {which}, so {name} may be a symmetry of it or not. If it is, vouch for "
            f"it: symmetries={{{name.lower()!r}: True}}."
        )
