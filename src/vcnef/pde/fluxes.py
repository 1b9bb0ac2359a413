"""The fluxes of each equation, written once for two ways to take derivatives, and the rates of change that they give.

The ways differ in where fluxes live: `Spectral` has them at the points and differentiates by Fourier transforms,
`FiniteVolume` has them at the faces and takes differences, as the solvers do. `FiniteDifference` is for walls too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import pi
from types import MappingProxyType
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.pde.derivatives import AtPoints, FiniteDifference, add_up, spectral_derivative
from vcnef.pde.finite_volume import State, face_states, neighbour, outflow
from vcnef.pde.riemann import GAMMA, hllc_flux, roe_flux, speed_squared, upwind_flux


@dataclass(frozen=True)
class Spectral(AtPoints):
    """Derivatives of the trigonometric interpolant."""

    spacing: tuple[float, ...]

    def derivative(self, q: Tensor, axis: int, order: int) -> Tensor:
        return spectral_derivative(q, axis, self.spacing[axis - 1], order)


@dataclass(frozen=True)
class FiniteVolume:
    """Limited states on both sides of a face and differences across it; fluxes live at the faces i + ½."""

    spacing: tuple[float, ...]

    def limits(self, q: Tensor, axis: int) -> tuple[Tensor, Tensor]:
        return face_states(q, axis)

    def mean(self, q: Tensor, axis: int) -> Tensor:
        return 0.5 * (q + neighbour(q, axis, 1))

    def slope(self, q: Tensor, axis: int) -> Tensor:
        return (neighbour(q, axis, 1) - q) / self.spacing[axis - 1]

    def divergence(self, flux: Tensor, axis: int) -> Tensor:
        return outflow(flux, axis) / self.spacing[axis - 1]


Method = Spectral | FiniteVolume | FiniteDifference
METHODS = MappingProxyType({"spectral": Spectral, "finite_volume": FiniteVolume, "finite_difference": FiniteDifference})

Params = Mapping[str, Tensor]
"""Parameters by name, each `[b 1 … 1]`, to multiply a field."""

Fluxes = tuple[State, ...]
"""For each part of a law, transport first and then viscosity, the fluxes of all that it conserves."""


def advection_fluxes(method: Method, state: State, axis: int, params: Params) -> Fluxes:
    return ((upwind_flux(*method.limits(state[0], axis), params["beta"]),),)


def burgers_fluxes(method: Method, state: State, axis: int, params: Params, *, factor: float = 1.0) -> Fluxes:
    transport = roe_flux(*method.limits(state[0], axis), factor)
    return (transport,), (-params["nu"] / pi * method.slope(state[0], axis),)


def gas_fluxes(method: Method, state: State, axis: int, params: Params) -> Fluxes:
    """Return fluxes of (ρ, E, ρ v_1, …) from a state (ρ, p, v_1, …)."""
    left, right = zip(*(method.limits(q, axis) for q in state), strict=True)
    rho, _, *v = state
    stretch = 4.0 / 3.0 * params["eta"] + params["zeta"]
    density, heat, stresses = method.mean(rho, axis), torch.zeros_like(rho), []
    for direction, u in enumerate(v, start=1):
        viscosity = params["eta"]
        if direction == axis:
            viscosity = stretch
        stress = -viscosity * density * method.slope(u, axis)
        heat = heat + stress * method.mean(u, axis)
        stresses.append(stress)
    return hllc_flux(left, right, axis), (torch.zeros_like(rho), heat, *stresses)


def gas_channels(state: State, conserved: State) -> State:
    """Return rates of (ρ, p, v_1, …) from those of (ρ, E, ρ v_1, …), where E = p/(γ − 1) + ½ ρ v²."""
    rho, _, *v = state
    mass, energy, *momentum = conserved
    work = add_up(u * m for u, m in zip(v, momentum, strict=True))
    pressure = (GAMMA - 1.0) * (energy - work + 0.5 * speed_squared(v) * mass)
    return (mass, pressure, *((m - u * mass) / rho for u, m in zip(v, momentum, strict=True)))


def _same(state: State, conserved: State) -> State:
    return conserved


@dataclass(frozen=True)
class Law:
    """A conservation law q_t = −Σ_d ∂_d F_d(u), with q a function of the channels u."""

    fluxes: Callable[[Method, State, int, Params], Fluxes]
    parts: int
    """Kinds of flux: transport alone, or transport and viscosity."""
    channels: Callable[[State, State], State] = _same
    """Rates of the channels at a state, from those of q."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """What it takes of places and times: nothing, it is the same everywhere."""

    def rate(
        self,
        method: Method,
        u: Float[Tensor, "b *x c"],
        params: Params,
        part: int | None = None,
        where: Mapping[str, Tensor] | None = None,
    ) -> Float[Tensor, "b *x c"]:
        """Return u_t as the law has it, or what one part contributes to it."""
        state = u.unbind(-1)
        conserved = [torch.zeros_like(q) for q in state]
        for axis in range(1, u.ndim - 1):
            fluxes = self.fluxes(method, state, axis, params)
            if part is not None:
                fluxes = fluxes[part : part + 1]
            for c, alike in enumerate(zip(*fluxes, strict=True)):
                conserved[c] = conserved[c] - method.divergence(add_up(alike), axis)
        return torch.stack(self.channels(state, tuple(conserved)), dim=-1)
