"""Equations, their random initial states, and the solvers that make benchmark data; batched, on any device.

`equation(name)` gives an `Equation`: what it is about (`problem`), a distribution of initial states
(`initial_states`) and a solver (`solve`). `solve(name, u0, t=…)` runs that solver on a user's arrays.
Each equation of the benchmark is a file (`advection`, `burgers`, `compressible_ns`) that supplies a scheme: a stable
step size and a step, built from `finite_volume` and `riemann`. `stepping` carries any scheme through the output times.
`residual(name, u, u_t, params)` says how far a field is from obeying the equation; `fluxes` has what it is made of.
`Equation(name, f)` defines one of a user's own: `formula` computes its right-hand side from `derivatives`, and `modes`
solves it on a periodic domain.
"""

from vcnef.pde.advection import shifted
from vcnef.pde.equation import Equation
from vcnef.pde.registry import EQUATIONS, equation, equations, is_known, noted_generation, solve
from vcnef.pde.residual import residual, residual_norm, time_derivative

__all__ = [
    "EQUATIONS",
    "Equation",
    "equation",
    "equations",
    "is_known",
    "noted_generation",
    "residual",
    "residual_norm",
    "shifted",
    "solve",
    "time_derivative",
]
