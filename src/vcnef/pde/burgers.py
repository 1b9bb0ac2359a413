"""Burgers' equation in one dimension: explicit where convection limits the step, exponential where diffusion would."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import pi
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.pde.diffusion import diffuse
from vcnef.pde.equation import Equation
from vcnef.pde.finite_volume import State, face_states, largest, midpoint, neighbour, outflow, per_sample
from vcnef.pde.fluxes import Law, burgers_fluxes
from vcnef.pde.initial import WAVE_ACCIDENTS, WAVE_OPTIONS, wave_states
from vcnef.pde.riemann import roe_flux
from vcnef.pde.stepping import integrate

CFL = 0.25

STIFF = 1.0
"""Diffusion is taken exactly where ν/π exceeds this times Δx max|u0|: there explicit steps would be twice as short, and
a step with exact diffusion takes twice as long. Errors of the two are within a few per cent of each other."""
STIFF_OF_DATA = 4.0
"""The same for data that are generated, which stay as they were to the bit."""


def burgers(generation: str) -> Equation:
    """u_t + u u_x = (ν/π) u_xx on (0, 1), periodic; mind the 1/π.

    Generation "2022" is the world of the benchmark's first files: the domain is (−1, 1), the accidents of the initial
    states are on, and the convective flux is doubled, u_t + 2 u u_x = (ν/π) u_xx. (With X = (x + 1)/2 that is the
    correct equation on (0, 1) with viscosity ν/4.)

    Good values: ν from 0.001 to 4 with 1024 cells. Breaks when: ν = 0 and a state jumps from −a to a, which
    stays as it is where it should open into a fan (the benchmark's flux has no entropy fix). Shocks thinner than a cell
    are a cell wide.
    """
    factor, low, options = 1.0, 0.0, dict(WAVE_OPTIONS)
    if generation == "2022":
        factor, low, options = 2.0, -1.0, options | dict(WAVE_ACCIDENTS)
    return Equation(
        "burgers",
        Law(partial(burgers_fluxes, factor=factor), parts=2),
        generation=generation,
        parameters=MappingProxyType({"nu": 0.001}),
        domain=((low, 1.0),),
        initial_options=MappingProxyType(options),
        resolution=1024,
        frames=201,
        horizon=2.0,
        sampler=wave_states,
        solver=partial(solve_burgers, flux_factor=factor),
        stored_options=MappingProxyType({"stiff": STIFF_OF_DATA}),
    )


@dataclass(frozen=True, eq=False)
class ExplicitBurgers:
    """MC-limited Roe flux and centred diffusion, both inside the midpoint rule.

    F = F_Roe − κ (u_{i+1} − u_i) / Δx with κ = ν/π, dt = 0.25 min(Δx / max|u|, Δx² / 2κ).
    """

    viscosity: Float[Tensor, " b"]
    spacing: tuple[float, ...]
    flux_factor: float

    def limit(self, state: State) -> Tensor:
        dx = self.spacing[0]
        return torch.minimum(_convective_limit(state, dx), CFL * 0.5 * dx**2 / (self.viscosity + 1e-8))

    def step(self, state: State, dt: Tensor) -> State:
        return midpoint(self._advance, state, per_sample(dt, state[0]))

    def _advance(self, base: State, at: State, dt: Tensor) -> State:
        dx = self.spacing[0]
        gradient = (neighbour(at[0], 1, 1) - at[0]) / dx
        flux = _convective_flux(at[0], self.flux_factor) - per_sample(self.viscosity, at[0]) * gradient
        return (base[0] - dt / dx * outflow(flux, axis=1),)


@dataclass(frozen=True, eq=False)
class ExponentialBurgers:
    """Strang splitting: half a step of convection, a whole one of exact diffusion, half a step of convection.

    Second order like the explicit scheme, and with the same stencils; dt = 0.25 Δx / max|u| at any viscosity.
    """

    viscosity: Float[Tensor, " b"]
    spacing: tuple[float, ...]
    flux_factor: float

    def limit(self, state: State) -> Tensor:
        return _convective_limit(state, self.spacing[0])

    def step(self, state: State, dt: Tensor) -> State:
        dt = per_sample(dt, state[0])
        (u,) = midpoint(self._advance, state, 0.5 * dt)
        u = diffuse(u, per_sample(self.viscosity, u) * dt, self.spacing[0])
        return midpoint(self._advance, (u,), 0.5 * dt)

    def _advance(self, base: State, at: State, dt: Tensor) -> State:
        flux = _convective_flux(at[0], self.flux_factor)
        return (base[0] - dt / self.spacing[0] * outflow(flux, axis=1),)


def _convective_limit(state: State, dx: float) -> Tensor:
    return CFL * dx / (largest(state[0].abs()) + 1e-8)


def _convective_flux(u: Tensor, factor: float) -> Tensor:
    return roe_flux(*face_states(u, axis=1), factor)


def solve_burgers(
    u0: Tensor,
    times: list[float],
    params: dict[str, Tensor],
    spacing: tuple[float, ...],
    *,
    flux_factor: float = 1.0,
    diffusion: str = "auto",
    stiff: float = STIFF,
    compiled: bool | None = None,
) -> Tensor:
    """Return the finite-volume solution; `diffusion` is "explicit", "exponential", or "auto", by `stiff`."""
    viscosity = params["nu"] / pi
    stiff = {
        "auto": viscosity > stiff * spacing[0] * largest(u0[..., 0].abs()),
        "explicit": torch.zeros_like(viscosity, dtype=torch.bool),
        "exponential": torch.ones_like(viscosity, dtype=torch.bool),
    }[diffusion]
    if stiff.any() and not stiff.all():
        u = u0.new_empty(len(u0), len(times), *u0.shape[1:])
        for rows, method in ((~stiff, "explicit"), (stiff, "exponential")):
            u[rows] = solve_burgers(
                u0[rows],
                times,
                {"nu": params["nu"][rows]},
                spacing,
                flux_factor=flux_factor,
                diffusion=method,
                compiled=compiled,
            )
        return u
    scheme = ExplicitBurgers
    if stiff.all():
        scheme = ExponentialBurgers
    return integrate(lambda p: scheme(p[0], spacing, flux_factor), u0, times, [viscosity], compiled=compiled)
