"""Small data sets with the names, channels and domains of the benchmark's."""

import pytest
import torch

from vcnef.data import Trajectories
from vcnef.grid import cell_centres
from vcnef.problem import Problem

PROBLEMS = {
    "advection": Problem("advection", ("u",), ("beta",)),
    "burgers": Problem("burgers", ("u",), ("nu",)),
    "cns1d": Problem("cns1d", ("density", "pressure", "vx"), ("eta", "zeta"), ((-1.0, 1.0),)),
    "cns2d": Problem("cns2d", ("density", "pressure", "vx", "vy"), ("eta", "zeta"), ((0.0, 1.0),) * 2),
    "cns3d": Problem("cns3d", ("density", "pressure", "vx", "vy", "vz"), ("eta", "zeta"), ((0.0, 1.0),) * 3),
}


@pytest.fixture
def make_data():
    def make(name="burgers", samples=20, frames=6, points=8, value=0.01):
        problem = PROBLEMS[name]
        generator = torch.Generator().manual_seed(len(name))
        shape = (samples, frames, *(points,) * problem.ndim, len(problem.channels))
        return Trajectories(
            u=torch.rand(shape, generator=generator) + 0.5,
            t=torch.linspace(0.0, 1.0, frames),
            grid=cell_centres(problem.domain, points),
            params=torch.full((samples, len(problem.parameters)), value),
            problem=problem,
        )

    return make
