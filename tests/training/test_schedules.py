"""Learning rates against torch's own schedules."""

from itertools import pairwise

import jaxtyping
import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import MultiStepLR, OneCycleLR, StepLR

from vcnef.training import Recipe
from vcnef.training.schedules import SCHEDULES, learning_rate

STEPS = 1000


def rates(recipe):
    return [learning_rate((step + 1) / STEPS, recipe) for step in range(STEPS)]


def torch_rates(make, rate):
    optimiser = torch.optim.SGD([torch.zeros(1)], lr=rate)
    schedule = make(optimiser)
    found = []
    for _ in range(STEPS):
        found.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return found


def test_one_cycle_is_that_of_torch():
    mine, rise = rates(Recipe(learning_rate=3e-4)), STEPS // 5
    cycle = {"pct_start": 0.2, "div_factor": 1e3, "final_div_factor": 1e4}
    expected = torch_rates(lambda optimiser: OneCycleLR(optimiser, 3e-4, STEPS, **cycle), 1.0)
    assert mine[rise:] == pytest.approx(expected[rise:], rel=1e-9)
    # Torch's first rate is that of no progress at all, ours that of the first step.
    assert mine[:rise] == pytest.approx(expected[:rise], abs=3e-4 * 1.6 / rise)
    assert mine[-1] == pytest.approx(3e-4 / 1e7)


def test_step_is_that_of_torch():
    recipe = Recipe(epochs=50, schedule="step", step_epochs=15, step_factor=0.4, learning_rate=0.1)
    per_epoch = STEPS // 50
    expected = torch_rates(lambda o: StepLR(o, 15 * per_epoch, 0.4), 0.1)
    assert rates(recipe) == pytest.approx(expected, rel=1e-12)


def test_multi_step_is_that_of_torch():
    recipe = Recipe(epochs=50, schedule="multi_step", milestones=(1, 15, 40), step_factor=0.4, learning_rate=0.1)
    per_epoch = STEPS // 50
    expected = torch_rates(lambda o: MultiStepLR(o, [each * per_epoch for each in recipe.milestones], 0.4), 0.1)
    assert rates(recipe) == pytest.approx(expected, rel=1e-12)


def test_cosine_rises_and_falls():
    found = rates(Recipe(schedule="cosine", warm_up=0.1, learning_rate=1.0))
    assert found[0] == pytest.approx(0.01)
    assert found[99] == pytest.approx(1.0)
    assert found[549] == pytest.approx(0.5)
    assert found[-1] == pytest.approx(0.0)


@pytest.mark.parametrize("name", SCHEDULES)
def test_without_warm_up(name):
    found = rates(Recipe(schedule=name, warm_up=0.0, learning_rate=1.0))
    assert found[0] == pytest.approx(1.0, abs=1e-4)
    assert all(later <= earlier for earlier, later in pairwise(found))


def test_recipes_are_checked(monkeypatch):
    # Without the tests' type checker, as in production, so that our own messages are seen.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    wrong = {
        "epochs": (0, "epochs is 0; expected a whole number of at least 1"),
        "batch": (2.5, "batch is 2.5; expected a whole number of at least 1"),
        "optimiser": ("sgd", "optimiser is 'sgd'; expected one of 'adam', 'adamw', 'muon'"),
        "schedule": ("linear", "schedule is 'linear'; expected one of 'one_cycle', 'step', 'multi_step', "),
        "loss": ("l1", "loss is 'l1'; expected one of 'mse', 'relative'"),
        "unroll": ("none", "unroll is 'none'; expected one of 'full', 'curriculum', "),
        "physics_method": ("fem", "physics_method is 'fem'; expected one of 'spectral', 'finite_volume'"),
        "precision": ("fp64", "precision is 'fp64'; expected one of 'fp32', 'tf32', "),
        "seed": (10**20, "seed is 100000000000000000000; expected a whole number of up to 18 digits"),
        "logs": (("tensorboard", "mlflow"), "logs is 'mlflow'; expected one of 'tensorboard', 'wandb'"),
        "minutes": (-1.0, "minutes is -1.0; expected a number above 0"),
        "learning_rate": (float("nan"), "learning_rate is nan; expected a number above 0"),
        "weight_decay": (-0.1, "weight_decay is -0.1; expected 0 or more"),
        "physics": (float("inf"), "physics is inf; expected 0 or more, and finite"),
        "ema": (1.0, "ema is 1.0; expected a part of 1, at least 0 and below 1"),
        "milestones": ((5, 0), r"milestones is \(5, 0\); expected epochs, each at least 1"),
        "input_noise": (-0.1, "input_noise is -0.1; expected 0 or more"),
        "semigroup": (-1.0, "semigroup is -1.0; expected 0 or more"),
        "data_weight": (0.0, "physics and data_weight are both 0, which leaves nothing to learn. Give one of them"),
    }
    for name, (value, sentence) in wrong.items():
        with pytest.raises(ValueError, match=sentence):
            Recipe(**{name: value})


def test_numbers_of_numpy_become_plain_ones():
    """As a model's folder and a state hold them."""
    recipe, given = Recipe(), {"epochs": np.int64(2), "ema": np.float32(0.5), "milestones": np.array([1, 2])}
    for name, value in given.items():
        object.__setattr__(recipe, name, value)  # where types are checked, as here, they would be refused
    recipe.__post_init__()
    assert [type(getattr(recipe, name)) for name in given] == [int, float, list]
    assert (recipe.epochs, recipe.ema, recipe.milestones) == (2, 0.5, [1, 2])
