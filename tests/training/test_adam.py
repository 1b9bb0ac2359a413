"""Adam as one kernel: whole runs of it; a step of the kernel alone is compared where the other operations are."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import Adam, AdamW

from vcnef.accelerate.kernels.requirements import SWITCH
from vcnef.training import Recipe
from vcnef.training.optimisers import build_optimiser

INTERPRETING = Path(__file__).parents[1] / "accelerate" / "kernels"


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_interpreted_runs_agree_with_those_of_torch():
    """Also where weights have made different numbers of steps, and where a run goes on that torch began."""
    path = os.pathsep.join([str(INTERPRETING), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path}
    command = [sys.executable, Path(__file__).with_name("interpreted_adam.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "twin"), [("adam", Adam), ("adamw", AdamW)])
def test_its_steps_are_those_of_torch(name, twin, monkeypatch):
    first, second = (nn.Sequential(nn.Linear(50, 70), nn.Linear(70, 30)).cuda() for _ in range(2))
    second.load_state_dict(first.state_dict())
    recipe = Recipe(optimiser=name, learning_rate=0.01, weight_decay=0.1)
    mine = build_optimiser(first, recipe)
    monkeypatch.setenv(SWITCH, "0")
    theirs = build_optimiser(second, recipe)
    assert type(mine).__name__ == "FusedAdam"
    assert type(theirs) is twin
    for _ in range(5):
        for weight, other in zip(first.parameters(), second.parameters(), strict=True):
            weight.grad, other.grad = (torch.randn_like(weight),) * 2
        mine.step()
        theirs.step()
    for weight, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(weight, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "kind"), [("adam", Adam), ("adamw", AdamW)])
def test_without_a_gpu_it_is_torchs_own(name, kind):
    assert type(build_optimiser(nn.Linear(3, 3), Recipe(optimiser=name))) is kind


@pytest.mark.gpu
def test_weights_of_another_type_are_for_torch():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3).double()).cuda()
    assert type(build_optimiser(model, Recipe(optimiser="adam"))) is Adam
