"""One instance is told from others, at any resolution."""

from math import pi

import pytest
import torch

from vcnef.grid import cell_centres
from vcnef.problem import Problem
from vcnef.surrogate.instance import check_instance, describe_instance

PROBLEMS = [Problem("waves", ("u", "v"), domain=((-1.0, 2.0),) * ndim) for ndim in (1, 2, 3)]


def state(grid, shift=0.0):
    """Two channels, of which the second is constant; the other is a product of waves."""
    phases = 2 * pi * (grid + 1.0 - shift) / 3.0
    wave = (phases.sin() + 0.3 * torch.cos(phases + 1.0)).prod(dim=-1)
    return torch.stack([5.0 + wave, torch.full_like(wave, 2.0)], dim=-1)[None]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: f"{problem.ndim}d")
def test_the_same_state_on_other_grids_and_no_other(problem):
    grid, params = cell_centres(problem.domain, 16), torch.zeros(1, 0)
    instance = describe_instance(0, problem, state(grid), grid)
    for points in (8, 16, 20, 32):
        finer = cell_centres(problem.domain, points)
        check_instance(instance, problem, state(finer), finer, params)
    thinned = (slice(None, None, 2),) * problem.ndim
    check_instance(instance, problem, state(grid)[:, *thinned], grid[thinned], params)
    check_instance(instance, problem, state(grid)[:, *thinned], cell_centres(problem.domain, 8), params)
    for points in (16, 32):
        finer = cell_centres(problem.domain, points)
        with pytest.raises(ValueError, match="the u of state 0 has its mean and deviation, but another shape, or the"):
            check_instance(instance, problem, state(finer, shift=0.3), finer, params)
