"""The physics-informed loss: how far a model's prediction is from obeying the equation, without any trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data import Batch, Scaling
from vcnef.data.transfer import send
from vcnef.grid import is_scattered, spacing
from vcnef.models.derivative import time_derivative
from vcnef.models.interface import TrajectoryModel
from vcnef.pde import Equation, equation, equations, is_known, residual, residual_norm
from vcnef.pde.equation import OWN
from vcnef.pde.fluxes import METHODS
from vcnef.pde.formula import Formula
from vcnef.periodicity import spell_axes
from vcnef.problem import Problem
from vcnef.training.recipe import Recipe

POSITIVE = ("density", "pressure")
LEAST_SHARE = 1e-3
"""A predicted density or pressure below this share of its mean is lifted to it: the equation knows no less."""


def weight(recipe: Recipe, progress: float) -> float:
    """The weight of the residual at some part of the run: it rises linearly over `physics_warm_up`, then stays."""
    if progress >= recipe.physics_warm_up:
        return recipe.physics
    return recipe.physics * progress / recipe.physics_warm_up


class PhysicsLoss:
    """The loss of the paper's "Physics-Informed VCNeF", made dimensionless.

    L = mean_btxc [ (T / σ_c) R_c ]² + w₀ mean_bxc [ ẑ(0) − z₀ ]²,    R = ∂û/∂t − f(û; p)

    R is the residual of `vcnef.pde.residual`, in the form that the data obey, of the prediction û in physical units;
    σ is each channel's standard deviation, T the horizon. The time derivative is exact (`vcnef.time_derivative`, and
    through the units); derivatives in space are those of `method` on the grid. The second term holds the initial state,
    which VCNeF does not keep by itself; training on the equation alone needs it.

    A batch is in the network's units; of its trajectories nothing is read. The model must be continuous in time.

    Good values: "spectral" where the grid resolves the fields, "finite_volume" where there are shocks,
    "finite_difference" between walls (what holds at the walls is the data's to say, not this loss's); `times=3` and
    `initial=10` taught a small VCNeF advection to 4 % without a trajectory. On a CPU a step costs 3 to 5 plain ones.
    Breaks when: the network runs in half precision, whose noise drowns derivatives, so autocasting is off in here. With
    ReLU (the point-wise VCNeF) ∂û/∂t jumps in time and weights: its gradient is right between jumps, blind to them.
    """

    def __init__(
        self,
        problem: Problem,
        scaling: Scaling,
        *,
        method: str = "spectral",
        generation: str = "documented",
        times: int | None = None,
        initial: float = 0.0,
        constants: Mapping[str, int | float] | None = None,
    ) -> None:
        """`generation`: of the equation, "2022" for the benchmark's Burgers data of that year.
        `times`: so many random times, spread over the horizon, in place of those of the batch; in samples' own units
            of time, over each one's, which ends with the last time of the batch.
        `initial`: w₀.
        `constants`: parameters of the equation that the data do not name.
        """
        self.problem, self.method = problem, method
        self.times, self.initial, self.constants = times, initial, dict(constants or {})
        self.equation = _equation(problem, generation, method)
        _check_parameters(self.equation, problem, self.constants)
        if scaling.horizon <= 0:
            raise ValueError(
                f"The horizon is {scaling.horizon:g}; expected a time above 0, in which the equation is to hold. "
                "Initial states have none: give it, e.g. Scaling(fields, params, horizon=2.0)."
            )
        if times is not None and times < 1:
            raise ValueError(f"times is {times}; expected at least 1, or None for the times of the batch.")
        if initial < 0:
            raise ValueError(f"initial is {initial:g}; expected a weight of 0 or more.")
        self._place(scaling)
        self._seen: set[tuple[int, ...]] = set()

    @torch._disable_dynamo  # compiled derivatives of forward-mode derivatives fail, and Fourier transforms do not fuse
    def __call__(self, model: TrajectoryModel, batch: Batch, progress: float = 0.0) -> Float[Tensor, ""]:
        """The loss; `progress`, the part of the run that is done, seeds the random times."""
        t = self._query_times(batch, progress)
        u, u_t, z = self._predict(model, batch, t)
        physics = residual(u=u, u_t=u_t, **self._setting(batch, t)) / self._scale
        loss = physics.square().mean()
        if self.initial:
            loss = loss + self.initial * (z[:, 0] - batch.u0).square().mean()
        return loss

    @torch.no_grad()
    def relative(self, model: TrajectoryModel, batch: Batch, progress: float = 0.0) -> Float[Tensor, "b t c"]:
        """A diagnostic: the residual against the terms of the equation; 0 obeys, 1 is no balance at all."""
        t = self._query_times(batch, progress)
        u, u_t, _ = self._predict(model, batch, t)
        return residual_norm(u=u, u_t=u_t, **self._setting(batch, t))

    @property
    def needs_clock(self) -> bool:
        """Whether the equation depends on the time since the initial state."""
        return "t" in self.equation.law.needs

    def _place(self, scaling: Scaling) -> None:
        """Take the scales of a device, with what follows from them."""
        self.scaling, fields = scaling, scaling.fields
        # Of a channel in its logarithm, std is relative to a typical value, exp(mean).
        typical = torch.where(fields.log, fields.mean.exp(), fields.mean)
        self._scale = fields.std * torch.where(fields.log, typical, 1.0) / scaling.span
        gas = self.equation.generation != OWN
        positive = torch.tensor([gas and name in POSITIVE for name in self.problem.channels]).to(fields.mean.device)
        self._least = torch.where(positive, LEAST_SHARE * typical, -torch.inf)

    def _predict(self, model: TrajectoryModel, batch: Batch, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The prediction and its time derivative in physical units, and the prediction in the network's."""
        if (new := tuple(batch.u0.shape[1:-1])) not in self._seen:
            _check_grid(self.problem, batch, self.scaling.length)
        if self.scaling.fields.mean.device != batch.u0.device:
            self._place(self.scaling.to(batch.u0.device))
        with torch.autocast(batch.u0.device.type, enabled=False):
            z, z_t = time_derivative(model, batch.u0, batch.grid, t, batch.params if model.params else None)
            # Also in samples' own units: the equation is the same there.
            u, u_t = self.scaling.physical(z, z_t)
        if new not in self._seen:
            _check_continuous(model, u_t, z)
            self._seen.add(new)
        return torch.maximum(u, self._least.to(u.dtype)), u_t, z

    def _query_times(self, batch: Batch, progress: float) -> Tensor:
        """Scaled times at which the equation is to hold; the first is 0 where the initial state is asked for."""
        t = batch.t
        if self.times is not None:
            # One in each of equally long parts of the horizon, from a seed of its own: a resumed run draws the same.
            generator = torch.Generator().manual_seed(int(progress * 2**53))
            drawn = torch.arange(self.times) + torch.rand(self.times, generator=generator)
            t = send((drawn / self.times).to(batch.u0.dtype), batch.u0.device)
            if self.scaling.own_time is not None and batch.t.shape[-1]:
                # In its own time a slow sample's horizon is a small part of the fastest one's.
                t = t * batch.t.amax(dim=-1, keepdim=True)
        elif not t.shape[-1]:
            raise ValueError("The batch has no query times; expected at least 1. Draw them, e.g. with times=8.")
        return torch.cat([t.new_zeros(*t.shape[:-1], 1), t], dim=-1) if self.initial else t

    def _setting(self, batch: Batch, t: Tensor) -> dict[str, object]:
        """Equation, parameters, domain and times, as `residual` takes them."""
        columns = self.scaling.params.unscale(batch.params).unbind(dim=-1)
        given = {**self.constants, **dict(zip(self.problem.parameters, columns, strict=True))}
        return {
            "name": self.equation,
            "params": {name: given[name] for name in self.equation.defaults},
            "domain": self.problem.domain,
            "method": self.method,
            "periodic": self.problem.periodic,
            "grid": self.scaling.physical_points(batch.grid),
            "t": t * self.scaling.span,
        }


def _equation(problem: Problem, generation: str, method: str) -> Equation:
    """The equation that a problem names, if its fields are those of the equation."""
    if method not in METHODS:
        raise ValueError(f"There is no method {method!r} for a residual. Use one of {', '.join(METHODS)}.")
    if not is_known(problem.name):
        known = [name for name, each in equations().items() if each.law]
        raise ValueError(
            f"The equation of problem {problem.name!r} is not known; expected one of {', '.join(known)}. Name the "
            f"problem so if it is one of them, define it as vcnef.Equation({problem.name!r}, …), or train without "
            "physics."
        )
    chosen = equation(problem.name, generation=generation)
    if chosen.law is None:
        raise ValueError(
            f"The equation {chosen.name!r} is known without its right-hand side, so there is no residual. Define it "
            f"with one, vcnef.Equation({chosen.name!r}, f), or train without physics."
        )
    if method == "finite_volume" and isinstance(chosen.law, Formula):
        raise ValueError(
            f"{chosen.name!r} is known by its right-hand side and has no fluxes for {method!r}. Set "
            "physics_method='spectral', or 'finite_difference'."
        )
    if problem.channels != chosen.problem.channels or problem.ndim != chosen.problem.ndim:
        raise ValueError(
            f"Problem {problem.name!r} has {problem.ndim} axes and the channels {', '.join(problem.channels)}; its "
            f"equation has {chosen.problem.ndim} and {', '.join(chosen.problem.channels)}. Order and name them so."
        )
    if not all(problem.closes) and method != "finite_difference":
        closing = f"periodic {spell_axes(problem.closes)} only" if any(problem.closes) else "not periodic"
        raise ValueError(
            f"Problem {problem.name!r} is {closing}, and {method!r} derivatives are taken around a period. Set "
            "physics_method='finite_difference', or train without physics."
        )
    return chosen


def _check_parameters(chosen: Equation, problem: Problem, constants: Mapping[str, int | float]) -> None:
    missing = [name for name in chosen.defaults if name not in (*problem.parameters, *constants)]
    if missing:
        raise ValueError(
            f"The equation {chosen.name!r} needs {', '.join(missing)}; the data name "
            f"{', '.join(problem.parameters) or 'no parameters'}. "
            f"Give the data what is fixed, e.g. params={{{missing[0]!r}: {chosen.defaults[missing[0]]:g}}}, "
            "or this loss as constants."
        )


def _check_grid(problem: Problem, batch: Batch, length: float) -> None:
    """Whether derivatives can be taken on the points of a batch, and whether they fill the period, if there is one;
    `length` is what the network's length 1 is in its units."""
    sides = tuple(batch.u0.shape[1:-1])
    if len(sides) != problem.ndim or is_scattered(batch.grid):
        raise ValueError(
            f"The grid has shape {tuple(batch.grid.shape)}; the residual of {problem.name!r} expects {problem.ndim} "
            "axes of points, shared by all samples. Interpolate scattered points to a grid, or train without physics."
        )
    gaps = [gap * length for gap in spacing(batch.grid)]
    for gap, n, (low, high), closes in zip(gaps, sides, problem.domain, problem.closes, strict=True):
        if closes and not isclose(gap * n, high - low, rel_tol=1e-3):
            raise ValueError(
                f"{n} points at a distance of {gap:.6g} do not fill the period ({low:g}, {high:g}) evenly; "
                f"expected a distance of {(high - low) / n:.6g}. Use cell centres, and a stride that divides them."
            )


def _check_continuous(model: TrajectoryModel, u_t: Tensor, z: Tensor) -> None:
    varies = (z - z.flatten(2, -2).mean(dim=2).reshape(*z.shape[:2], *(1,) * (z.ndim - 3), -1)).any()
    if varies and not u_t.any():
        raise ValueError(
            f"The prediction of {type(model).__name__} has no derivative in time; expected a model that is continuous "
            "in time, such as VCNeF. Train models that step without physics."
        )
