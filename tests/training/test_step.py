"""Steps that are recorded and replayed are the steps that they stand for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

from vcnef.data import Batch
from vcnef.training import Recipe
from vcnef.training.step import GraphedStep, Step, build_step

SCRIPT = Path(__file__).with_name("recorded_steps.py")


@pytest.mark.gpu
@pytest.mark.parametrize(("model", "optimiser"), [("vcnef", "adam"), ("fno", "adam"), ("vcnef", "muon")])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_recorded_steps_learn_what_others_learn(model, optimiser, precision):
    command = [sys.executable, SCRIPT, model, optimiser, precision]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["plain_replays"] == 0
    # Three batches an epoch, one of them smaller; the first three of each shape are not replayed.
    assert (found["graphs"], found["replays"]) == (2, 8 * 3 - 2 * 3)
    assert found["plain"][-1] < 0.95 * found["plain"][0]
    assert found["recorded"] == pytest.approx(found["plain"], rel={"fp32": 1e-3, "bf16": 0.05, "fp16": 0.02}[precision])
    assert found["resumed"] == pytest.approx(found["recorded"], rel=1e-3)


@pytest.mark.gpu
def test_every_phase_of_a_run_has_recordings_of_its_own():
    class Phases(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, *tensors_and_progress):
            return (2.0 if tensors_and_progress[-1] > 0.5 else 1.0) + 0 * self.weight.sum()

    fabric, module = Fabric(accelerator="cuda", devices=1), Phases().cuda()
    loss, optimiser = fabric.setup(module, torch.optim.Adam(module.parameters(), capturable=True))
    step, zeros = GraphedStep(fabric, loss, optimiser, Recipe(), phases=(0.5,)), torch.zeros(2, 1, 3, 1, device="cuda")
    batch = Batch(zeros[:, 0], zeros[0, 0], zeros[0, :, 0, 0], zeros[:, 0, 0], zeros)
    assert [step(batch, part / 16, 1e-3).item() for part in range(16)] == [1.0] * 9 + [2.0] * 7
    assert len(step.graphs) == 1


def place(device="cuda", world_size=1):
    """A place to compute that need not be there."""
    return type(
        "Place", (Fabric,), {"device": torch.device(device), "world_size": world_size, "__init__": lambda _: None}
    )()


def test_steps_are_recorded_only_on_one_gpu_with_an_objective_that_allows_it(monkeypatch):
    monkeypatch.setattr(GraphedStep, "__init__", lambda self, *parts: None)

    def kind(fabric=None, static=True, **recipe):
        def objective(model, batch, progress):
            return torch.zeros(())

        objective.static = static
        return type(build_step(fabric or place(), None, None, Recipe(**recipe), objective))

    assert kind() is GraphedStep
    assert kind(precision="bf16") is kind(precision="fp16") is GraphedStep
    assert kind(place("cpu")) is Step
    assert kind(place(world_size=2)) is Step
    assert kind(static=False) is Step
    assert kind(optimiser="muon") is GraphedStep
    assert kind(compile=False) is Step
