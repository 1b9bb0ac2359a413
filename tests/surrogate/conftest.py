"""Small surrogates with the fields and parameters of the benchmark's problems, untrained."""

import pytest
import torch

from vcnef.data import Trajectories
from vcnef.grid import cell_centres
from vcnef.problem import Problem
from vcnef.surrogate import Surrogate

GAS = ("density", "pressure", "vx", "vy")
UNITS = {"t": "s", "x": "m", "density": "kg/m³", "nu": "m²/s"}
PROBLEMS = {
    "burgers": Problem("burgers", ("u",), ("nu",), units=UNITS),
    "cns2d": Problem("cns2d", GAS, ("eta", "zeta"), ((0.0, 1.0), (-1.0, 1.0)), units=UNITS),
    "heat": Problem("heat", ("u",), (), ((0.0, 1.0),) * 2),
}
OPTIONS = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}


@pytest.fixture(autouse=True)
def one_thread():
    """The tests share few cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def make_data():
    def make(name="burgers", samples=6, frames=5, points=8, spread=(0.001, 0.1)):
        problem = PROBLEMS[name]
        generator = torch.Generator().manual_seed(len(name))
        shape = (samples, frames, *(points,) * problem.ndim, len(problem.channels))
        low, high = spread
        parts = torch.linspace(0.0, 1.0, samples)[:, None].expand(-1, len(problem.parameters))
        return Trajectories(
            u=torch.rand(shape, generator=generator) + 0.5,
            t=torch.linspace(0.0, 2.0, frames),
            grid=cell_centres(problem.domain, points),
            params=low + (high - low) * parts,
            problem=problem,
        )

    return make


@pytest.fixture
def make_surrogate(make_data):
    def make(name="burgers", *, model="vcnef", options=None, log=(), normalise=True, own_time=False, **data):
        sizes = OPTIONS | ({"patches": ()} if name != "burgers" else {}) if options is None else options
        scales = {"log": log, "normalise": normalise, "own_time": own_time}
        return Surrogate.build(model, sizes, make_data(name, **data), **scales, seed=0)

    return make
