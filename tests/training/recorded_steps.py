"""Runs on a GPU with and without recorded steps, and one that is taken up again; their losses as JSON.

A script of its own, since the tests' shape checker cannot be compiled.
"""

import json
import sys
import tempfile
from pathlib import Path
from runpy import run_path

import torch

from vcnef.surrogate import Surrogate
from vcnef.training import Recipe, fit

WORLD = run_path(str(Path(__file__).with_name("decaying_modes.py")))
OPTIONS = {"vcnef": WORLD["TINY"] | {"dropout": 0.0}, "fno": {"width": 8, "modes": 2}}


def main(model, optimiser, precision):
    data, replays = WORLD["make_data"](), []
    replay = torch.cuda.CUDAGraph.replay
    torch.cuda.CUDAGraph.replay = lambda graph: (replays.append(graph), replay(graph))

    def losses(epochs=8, *, compile=None, **folder):
        surrogate = Surrogate.build(model, OPTIONS[model], data, seed=1)
        # 24 samples in batches of 9 have two shapes, each recorded after three steps.
        recipe = Recipe(
            epochs=epochs, batch=9, learning_rate=2e-3, schedule="constant", ema=0.9, precision=precision,
            compile=compile, optimiser=optimiser,
        )  # fmt: skip
        return [record["loss"] for record in fit(surrogate, data, None, recipe, devices=1, **folder).history]

    found = {"plain": losses(compile=False), "plain_replays": len(replays)}
    found |= {"recorded": losses(), "replays": len(replays), "graphs": len(set(replays))}
    with tempfile.TemporaryDirectory() as out:
        losses(5, out=Path(out) / "run")
        found["resumed"] = losses(8, out=Path(out) / "run", resume=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
