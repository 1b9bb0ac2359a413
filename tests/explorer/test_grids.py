"""The grids that a page offers: a model that knows the spacing of training alone is asked there first."""

import pytest
import torch

from vcnef.data import Trajectories
from vcnef.explorer import Workbench
from vcnef.grid import cell_centres
from vcnef.problem import Problem
from vcnef.surrogate import Surrogate

PATCHED = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": (4,)}
FNO = {"width": 4, "modes": 2, "depth": 1, "padding": 2}
FLAT = {"preset": "sine"}


def bench_of(model, options, sides):
    problem = Problem("flow", ("u",), (), tuple((0.0, side / sides[0]) for side in sides))
    u = torch.rand(4, 3, *sides, 1, generator=torch.Generator().manual_seed(0))
    grid = cell_centres(problem.domain, sides)
    data = Trajectories(u, torch.linspace(0.0, 1.0, 3), grid, torch.zeros(4, 0), problem)
    return Workbench({"flow": Surrogate.build(model, options, data, seed=0)})


@pytest.mark.parametrize(
    ("model", "options", "sides", "offered"),
    [
        ("vcnef", PATCHED, (64, 64), [16, 32, 64, 96, 128]),
        ("vcnef", PATCHED, (48, 48), [16, 32, 48, 64, 96, 128]),
        ("vcnef", PATCHED, (12, 12, 12), [8, 12, 16, 24, 32]),
        ("vcnef", PATCHED, (24, 16), [16, 24, 32, 48, 64, 72, 96, 120, 128]),
        ("fno", FNO, (100,), [64, 100, 128, 256, 512, 1024]),
    ],
)
def test_the_grid_of_training_comes_first_where_a_model_knows_no_other(model, options, sides, offered):
    bench = bench_of(model, options, sides)
    (told,) = bench.models()
    assert [grid[0] for grid in told["grids"]] == offered
    assert told["grids"][told["grid"]] == list(sides)
    answer = bench.predict(bench.read({"state": FLAT, "times": 2, "points": told["grids"][told["grid"]][0]}))
    assert answer.u.shape == (1, 2, *sides, 1)
    assert not [words for words in answer.warnings if "spacing" in words]


def test_other_models_begin_with_the_usual_grid(surrogates):
    usual = [(model["grids"][model["grid"]], len(model["grids"])) for model in Workbench(surrogates).models()]
    assert usual == [([256], 5), ([32, 32], 5), ([256], 5), ([16, 16, 16], 4)]


def test_a_grid_of_training_that_is_too_large_is_not_offered(surrogates):
    (told,) = bench_of("fno", FNO, (4, 4)).models()
    assert told["grids"][told["grid"]] == [32, 32]
    bench = bench_of("fno", FNO, (8192,))
    (told,) = bench.models()
    assert told["grids"][told["grid"]] == [256]
    answer = bench.predict(bench.read({"state": FLAT, "times": 2}))
    assert [words for words in answer.warnings if "8192" in words]
