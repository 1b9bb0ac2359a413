"""A run in two stages: it may be interrupted in either, and learns different weights in each."""

import os
import signal
from dataclasses import dataclass

import pytest
import torch

from vcnef.surrogate import Surrogate
from vcnef.training import Recipe, Stopped, fit
from vcnef.training.losses import mean_square
from vcnef.training.stages import TwoStages

TINY = {"latent": 8, "width": 16, "depth": 3, "dynamics_width": 16, "dynamics_depth": 1}
RECIPE = {"epochs": 6, "batch": 8, "learning_rate": 1e-3, "rates": {"siren": 0.1}, "unroll": "two_stage"}


@dataclass(frozen=True, eq=False)
class Stopping(TwoStages):
    """The same, with a signal at some progress."""

    at: float = 0.0
    name = None  # what a run calls the recipe's own loss, which goes on where this one stops

    def __call__(self, model, batch, progress):
        if progress >= self.at:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().__call__(model, batch, progress)


def run(data, out, **arguments):
    surrogate = Surrogate.build("coral", TINY, data.split("train"), seed=1)
    splits = data.split("train", valid=0.2), data.split("valid", valid=0.2)
    return fit(surrogate, *splits, Recipe(**RECIPE, clip=1.0), out=out, devices="cpu", **arguments)


def end(folder):
    return torch.load(folder / "state.pt", weights_only=True)["model"]


@pytest.mark.parametrize("at", [0.3, 0.66, 0.67, 0.8])
def test_an_interrupted_run_is_the_same(data, tmp_path, at):
    """Before the switch, on either side of it, and after."""
    run(data, tmp_path / "whole")
    with pytest.raises(Stopped):
        run(data, tmp_path / "parts", objective=Stopping(mean_square, at=at))
    run(data, tmp_path / "parts", resume=True)
    whole, parts = end(tmp_path / "whole"), end(tmp_path / "parts")
    assert all(torch.equal(value, parts[name]) for name, value in whole.items())
    assert {"mean", "std", "seen"} <= whole.keys()
    assert int(whole["seen"]) > 0


def test_a_saved_model_keeps_the_statistics_of_its_codes(data, tmp_path):
    surrogate = run(data, tmp_path).surrogate
    assert torch.equal(Surrogate.load(tmp_path).model.std, surrogate.model.std)
    assert not torch.equal(surrogate.model.std, torch.ones(8))
