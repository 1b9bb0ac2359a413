"""Adam as one kernel on a GPU; in Triton's interpreter it is compared where the kernels are."""

import pytest
import torch
from torch import nn
from torch.optim import Adam, AdamW

from vcnef.kernels import adam
from vcnef.kernels.weights import SWITCH
from vcnef.training import Recipe
from vcnef.training.adam import FusedAdam
from vcnef.training.optimisers import build_optimiser


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "twin"), [("adam", Adam), ("adamw", AdamW)])
def test_its_steps_are_those_of_torch(name, twin, monkeypatch):
    torch.manual_seed(0)
    first, second = (nn.Sequential(nn.Linear(50, 70), nn.Linear(70, 30)).cuda() for _ in range(2))
    second.load_state_dict(first.state_dict())
    recipe = Recipe(optimiser=name, learning_rate=0.01, weight_decay=0.1)
    mine = build_optimiser(first, recipe)
    monkeypatch.setenv(SWITCH, "0")
    theirs = build_optimiser(second, recipe)
    assert type(mine) is FusedAdam
    assert type(theirs) is twin
    for _ in range(5):
        for weight, other in zip(first.parameters(), second.parameters(), strict=True):
            weight.grad, other.grad = (torch.randn_like(weight),) * 2
        mine.step()
        theirs.step()
    for weight, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(weight, other, rtol=1e-5, atol=1e-6)


def test_weights_without_a_gpu_or_in_other_precision_are_for_torch():
    assert not adam.serves([torch.ones(3)])
    assert not adam.serves([torch.ones(3, dtype=torch.float64)])
    assert isinstance(build_optimiser(nn.Linear(3, 3), Recipe(optimiser="adam")), Adam)
