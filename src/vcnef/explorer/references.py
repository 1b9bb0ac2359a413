"""What the explorer judges a surrogate by: the exact solution, or the solver on as fine a grid as time allows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from jaxtyping import Float
from torch import Tensor

from vcnef.pde import Equation
from vcnef.pde.reference import Reference, exact_solution, finer_solution

FINER = {4: 3.0, 2: 20.0}
"""How many times finer a reference may be, and the seconds that it may take at most."""
SAME_GRID = "the solver on the same points"


def find_reference(
    known: Equation,
    u0: Float[Tensor, "b *x c"],
    t: Float[Tensor, " t"],
    params: Mapping[str, float],
    domain: Sequence[Sequence[float]],
    seconds: float,
) -> Reference | None:
    """The best there is, where the solver takes so many `seconds` on the points shown; None where finer ones take too
    long."""
    exact = exact_solution(known, u0, t, params, domain)
    if exact is not None:
        return exact
    for parts, longest in FINER.items():
        # At least as many times more steps; how much more a step takes, a part of the run tells.
        if parts * seconds > longest:
            continue
        begun = time.perf_counter()
        finer_solution(known, u0, t[-1:] / 64, params, domain, parts)
        if 64 * (time.perf_counter() - begun) > longest:
            continue
        found = finer_solution(known, u0, t, params, domain, parts)
        if found.u.isfinite().all():
            return found
    return None


def describe(reference: Reference) -> str:
    """What it is, in words."""
    return "the exact solution" if reference.parts is None else f"the solver on {reference.parts} times as many points"
