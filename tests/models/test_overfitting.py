"""Every model learns four trajectories by heart with its own kind of loss: a broken gradient cannot hide."""

import pytest
import torch

from vcnef.data import generate
from vcnef.metrics import nrmse
from vcnef.surrogate import Surrogate
from vcnef.training import Recipe, fit

POINTS, FRAMES = {1: 32, 2: 16}, 9
WORLDS = {1: ("burgers", {"nu": 0.01}), 2: ("cns2d", {"eta": 0.1, "zeta": 0.1})}
# name, ndim -> options, recipe, nRMSE to reach on the four trajectories (doing nothing gives about 1)
CASES = {
    ("vcnef", 1): ({"width": 48, "heads": 4, "depth": 1, "modulations": 2}, {"epochs": 600}, 0.1),
    ("fno", 1): ({"width": 16, "modes": 8, "steps": FRAMES - 1}, {"epochs": 300}, 0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ndim"), CASES)
def test_it_learns_four_trajectories(name, ndim):
    options, recipe, goal = CASES[name, ndim]
    equation, params = WORLDS[ndim]
    data = generate(equation, params=params, samples=4, resolution=POINTS[ndim], frames=FRAMES, horizon=1.0, seed=0)
    surrogate = Surrogate.build(name, options, data, seed=0)
    torch.manual_seed(0)
    fit(
        surrogate, data, None, Recipe(**{"batch": 4, "learning_rate": 3e-3, "loss": "relative"} | recipe), devices="cpu"
    )
    u = surrogate.answer(data.u[:, 0], data.grid, data.t, data.params)
    reached = float(nrmse(u, data.u))
    assert reached < goal
