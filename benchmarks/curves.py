"""What the fast paths change: loss curves with fused layers and without, and answers of the trained models.

    python benchmarks/curves.py [--seeds 0 1] [--epochs 30] [--samples 4096] [--together 1] [--json FILE]

A short run of burgers/vcnef_plus, a constant rate for a smooth curve, once for every way and seed; ways of a seed see
the same weights and batches. "fused" is what `vcnef train` does on a GPU, "plain" the same in half precision without
the fused layers, "fp32" in single precision. The noise is what two seeds of one way differ by. Then `predict` of every
model in half precision against its own in fp32: ‖found − fp32‖ / ‖fp32‖ over the test states, and the nRMSE of each.
`--together` runs as many processes side by side.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from forward import change
from vcnef import workflow
from vcnef.accelerate.kernels.requirements import SWITCH
from vcnef.config import Config
from vcnef.data import generate
from vcnef.metrics import nrmse

WAYS = {"fused": "half", "plain": "half", "fp32": "fp32"}
VALIDATE_EVERY = 5
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")


def run(way: str, seed: int, epochs: int, samples: int, device: str) -> dict[str, Any]:
    """Train one way, then ask the model in every precision."""
    data = generate("burgers", samples=samples, params={"nu": 0.001}, generation="2022", device=device)
    budget = {"epochs": epochs, "minutes": None, "validate_every": VALIDATE_EVERY, "seed": seed}
    changes = budget | {"schedule": "constant", "precision": WAYS[way]}
    config = Config.load("burgers/vcnef_plus").override({"train": changes})
    data = data.view(**config.view())
    os.environ[SWITCH] = "1" if way == "fused" else "0"
    with TemporaryDirectory() as folder:
        devices = "cpu" if device == "cpu" else 1
        trained = workflow.train(config, data, out=Path(folder) / "run", devices=devices)
    os.environ[SWITCH] = "1"
    test = data.split("test").to(device)
    question = test.u[:, 0], test.grid, test.t[1:], test.params
    surrogate = trained.surrogate.to(device)
    found = {name: surrogate.answer(*question, precision=name) for name in PRECISIONS}
    return {
        "way": way,
        "seed": seed,
        "loss": [record["loss"] for record in trained.history],
        "valid": [record["valid_nrmse"] for record in trained.history[VALIDATE_EVERY - 1 :: VALIDATE_EVERY]],
        "seconds": trained.history[-1]["seconds"],
        "change": {name: change(u, found["fp32"]) for name, u in found.items()},
        "nrmse": {name: float(nrmse(u, test.u[:, 1:], initial_frames=0)) for name, u in found.items()},
    }


def compare(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """‖difference‖ / ‖curve‖ of the loss after the first epoch, for every pair of runs of one seed or of one way."""
    found = {}
    for one, other in combinations(runs, 2):
        if one["seed"] == other["seed"]:
            name = f"{one['way']} and {other['way']}, seed {one['seed']}"
        elif one["way"] == other["way"]:
            name = f"{one['way']}, seeds {one['seed']} and {other['seed']}"
        else:
            continue
        found[name] = change(*(torch.tensor(each["loss"][1:]) for each in (one, other)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--together", type=int, default=1, help="processes side by side")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()

    cases = [(*each, asked.epochs, asked.samples, asked.device) for each in product(asked.ways, asked.seeds)]
    case = {"epochs": asked.epochs, "samples": asked.samples, "torch": torch.__version__}
    runs: list[dict[str, Any]] = []
    # Each in a process of its own: compiled code of one way must not serve another.
    with ProcessPoolExecutor(asked.together, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        for each in pool.map(run, *zip(*cases, strict=True)):
            runs.append(each)
            show(each)
            if asked.json:
                found = {"case": case, "differences": compare(runs), "runs": runs}
                asked.json.write_text(json.dumps(found, indent=1))
    for name, difference in compare(runs).items():
        print(f"{name}: {difference:.4f}")


def show(each: dict[str, Any]) -> None:
    scores = ", ".join(f"{score:.4f}" for score in each["valid"])
    print(f"{each['way']}, seed {each['seed']}: loss {each['loss'][0]:.4f} … {each['loss'][-1]:.4f}, valid {scores}")
    answers = (f"{name} {each['change'][name]:.1e}, nRMSE {each['nrmse'][name]:.5f}" for name in PRECISIONS)
    print(f"    change of the answer: {'; '.join(answers)}", flush=True)


if __name__ == "__main__":
    main()
