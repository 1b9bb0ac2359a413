"""The compressible Navier–Stokes equations of an ideal gas in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from torch import Tensor

from vcnef.pde.equation import Equation, Sampler
from vcnef.pde.fluxes import Law, gas_channels, gas_fluxes
from vcnef.pde.gas import CFL, SplitGas, StaleGhosts
from vcnef.pde.initial import WAVE_ACCIDENTS, WAVE_OPTIONS
from vcnef.pde.initial_gas import mode_states, wave_gas_states
from vcnef.pde.stepping import integrate


@dataclass(frozen=True)
class Benchmark:
    """Sizes, viscosity (η and ζ alike) and initial distribution of the benchmark in one number of dimensions."""

    bounds: tuple[float, float]
    resolution: int
    frames: int
    viscosity: float
    sampler: Sampler
    options: Mapping[str, object]
    accidents: Mapping[str, object]
    """What generation "2022" changes in the options."""


BENCHMARKS = MappingProxyType(
    {
        1: Benchmark(
            bounds=(-1.0, 1.0),
            resolution=1024,
            frames=101,
            viscosity=0.007,
            sampler=wave_gas_states,
            options={**WAVE_OPTIONS, "modes": 3, "window_probability": 0.5, "shared_shapes": False},
            accidents={**WAVE_ACCIDENTS, "shared_shapes": True},
        ),
        2: Benchmark(
            bounds=(0.0, 1.0),
            resolution=128,
            frames=21,
            viscosity=0.01,
            sampler=mode_states,
            options={"mach": 0.1, "window_probability": 0.5, "coupled_window": False},
            accidents={"coupled_window": True},
        ),
        3: Benchmark(
            bounds=(0.0, 1.0),
            resolution=128,
            frames=21,
            viscosity=1e-8,
            sampler=mode_states,
            options={"mach": 1.0, "window_probability": 0.5, "coupled_window": False, "shared_phases": False},
            accidents={"coupled_window": True, "shared_phases": True},
        ),
    }
)


def compressible_ns(ndim: int, generation: str) -> Equation:
    """Mass, momentum and energy of an ideal gas (γ = 5/3) with density ρ, pressure p and velocity v, periodic.

        ρ_t + ∇·(ρ v) = 0
        (ρ v_j)_t + ∇·(ρ v_j v) + ∂_j p = Σ_d ∂_d (μ_dj ρ ∂_d v_j),        μ_dd = 4η/3 + ζ,  μ_dj = η
        E_t + ∇·((E + p) v) = Σ_dj ∂_d (½ μ_dj ρ ∂_d v_j²),                E = p/(γ − 1) + ½ ρ v²

    This is what the data obey, and it is not quite the textbook system: η and ζ are kinematic viscosities (they come
    with ρ), and the mixed derivatives of the stress (∂_d ∂_j) and the heat flux are absent.
    In one dimension the domain is (−1, 1), else the unit square or cube. Generation "2022" has the accidents of the
    benchmark's initial states; the equations are the same.

    Good values: η = ζ from 1e-8 to 0.1; 1024, 128² and 128³ cells. The cost of large viscosities is in the explicit
    sub-steps: about 3 per step at 0.007 and 40 at 0.1 (1D). Breaks when: a strong rarefaction empties a cell (density
    has no floor), which random states at Mach 1 can do; such a run ends in values that are not finite.
    """
    benchmark = BENCHMARKS[ndim]
    return Equation(
        f"cns{ndim}d",
        Law(gas_fluxes, parts=2, channels=gas_channels),
        generation=generation,
        channels=("density", "pressure", *("vx", "vy", "vz")[:ndim]),
        parameters=MappingProxyType({"eta": benchmark.viscosity, "zeta": benchmark.viscosity}),
        domain=(benchmark.bounds,) * ndim,
        initial_options=MappingProxyType(
            {**benchmark.options, **(benchmark.accidents if generation == "2022" else {})}
        ),
        resolution=benchmark.resolution,
        frames=benchmark.frames,
        horizon=1.0,
        sampler=benchmark.sampler,
        solver=solve_compressible_ns,
    )


def solve_compressible_ns(
    u0: Tensor,
    times: list[float],
    params: dict[str, Tensor],
    spacing: tuple[float, ...],
    *,
    stale_ghosts: bool = False,
    compiled: bool | None = None,
) -> Tensor:
    """Return the finite-volume solution; channels are density, pressure and the velocities.

    Viscous sub-steps are those of a gas whose density varies little from cell to cell: with jumps of a hundred times
    velocities beside them are off by some percent, with larger ones a run may blow up and be NaN.
    """
    scheme = SplitGas
    if stale_ghosts:
        scheme = StaleGhosts

    def build(viscosities: Sequence[Tensor]) -> SplitGas:
        shear, bulk = viscosities
        stretch = 4.0 / 3.0 * shear + bulk
        return scheme(shear, stretch, CFL * 0.5 * min(spacing) ** 2 / (stretch + 1e-8), spacing)

    return integrate(build, u0, times, [params["eta"], params["zeta"]], compiled=compiled)
