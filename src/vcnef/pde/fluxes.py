"""The fluxes of each equation, written once for two ways to take derivatives, and the rates of change that they give.

The ways differ in where fluxes live: `Spectral` has them at the points and differentiates by Fourier transforms,
`FiniteVolume` has them at the faces and takes differences, as the solvers do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from math import pi
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.pde.finite_volume import State, face_states, neighbour, outflow
from vcnef.pde.riemann import GAMMA, hllc_flux, roe_flux, speed_squared, upwind_flux


@dataclass(frozen=True)
class Spectral:
    """Derivatives of the trigonometric interpolant; fluxes live at the points."""

    spacing: tuple[float, ...]

    def limits(self, q: Tensor, axis: int) -> tuple[Tensor, Tensor]:
        # A numerical flux between two equal states is the physical flux.
        return q, q

    def mean(self, q: Tensor, axis: int) -> Tensor:
        return q

    def slope(self, q: Tensor, axis: int) -> Tensor:
        n = q.shape[axis]
        number = 2 * pi * torch.fft.rfftfreq(n, self.spacing[axis - 1], dtype=q.dtype, device=q.device)
        # The shortest wave of an even grid is seen at its extrema only; its slope there is zero.
        number = torch.where(torch.arange(len(number), device=q.device) * 2 < n, number, 0.0)
        turn = torch.complex(torch.zeros_like(number), number).reshape(-1, *(1,) * (q.ndim - 1 - axis))
        return torch.fft.irfft(turn * torch.fft.rfft(q, dim=axis), n=n, dim=axis)

    def divergence(self, flux: Tensor, axis: int) -> Tensor:
        return self.slope(flux, axis)


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


Method = Spectral | FiniteVolume
METHODS = MappingProxyType({"spectral": Spectral, "finite_volume": FiniteVolume})

Params = Mapping[str, Tensor]
"""Parameters by name, each `[b 1 … 1]`, to multiply a field."""

Fluxes = tuple[State, ...]
"""For each part of a law, transport first and then viscosity, the fluxes of all that it conserves."""


def _advection(method: Method, state: State, axis: int, params: Params) -> Fluxes:
    return ((upwind_flux(*method.limits(state[0], axis), params["beta"]),),)


def _burgers(method: Method, state: State, axis: int, params: Params, *, factor: float = 1.0) -> Fluxes:
    transport = roe_flux(*method.limits(state[0], axis), factor)
    return (transport,), (-params["nu"] / pi * method.slope(state[0], axis),)


def _gas(method: Method, state: State, axis: int, params: Params) -> Fluxes:
    """Of (ρ, E, ρ v_1, …), from a state (ρ, p, v_1, …)."""
    left, right = zip(*(method.limits(q, axis) for q in state), strict=True)
    rho, _, *v = state
    stretch = 4.0 / 3.0 * params["eta"] + params["zeta"]
    density, heat, stresses = method.mean(rho, axis), torch.zeros_like(rho), []
    for direction, u in enumerate(v, start=1):
        stress = -(stretch if direction == axis else params["eta"]) * density * method.slope(u, axis)
        heat = heat + stress * method.mean(u, axis)
        stresses.append(stress)
    return hllc_flux(left, right, axis), (torch.zeros_like(rho), heat, *stresses)


def _gas_channels(state: State, conserved: State) -> State:
    """Rates of (ρ, p, v_1, …) from those of (ρ, E, ρ v_1, …), where E = p/(γ − 1) + ½ ρ v²."""
    rho, _, *v = state
    mass, energy, *momentum = conserved
    work = sum(u * m for u, m in zip(v, momentum, strict=True))
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

    def rate(
        self, method: Method, u: Float[Tensor, "b *x c"], params: Params, part: int | None = None
    ) -> Float[Tensor, "b *x c"]:
        """u_t as the law has it, or what one part contributes to it."""
        state = u.unbind(-1)
        conserved = [torch.zeros_like(q) for q in state]
        for axis in range(1, u.ndim - 1):
            fluxes = self.fluxes(method, state, axis, params)
            chosen = fluxes if part is None else fluxes[part : part + 1]
            for c, alike in enumerate(zip(*chosen, strict=True)):
                conserved[c] = conserved[c] - method.divergence(reduce(torch.add, alike), axis)
        return torch.stack(self.channels(state, tuple(conserved)), dim=-1)


LAWS = MappingProxyType(
    {
        "advection": Law(_advection, parts=1),
        "burgers": Law(_burgers, parts=2),
        **{f"cns{ndim}d": Law(_gas, parts=2, channels=_gas_channels) for ndim in (1, 2, 3)},
    }
)
LAWS_2022 = MappingProxyType({**LAWS, "burgers": Law(partial(_burgers, factor=2.0), parts=2)})
"""Of the other equations, generation "2022" changes the initial states only."""
