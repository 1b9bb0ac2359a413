"""Conserved means, with and without: drift of the mean and nRMSE over five horizons, after the same steps.

    python benchmarks/conserved.py [--problems ks kdv kolmogorov] [--steps 600] [--seeds 0] [--horizons 5] [--json FILE]

Each surrogate is `vcnef.fit(u, t=…, x=…, params=…)` on a few trajectories of one horizon, with `conserve="auto"` and
with `conserve=[]`, by one thread. It is judged on other trajectories that are as many times as long: nRMSE at the end
of each horizon, and how far the mean over the domain has drifted by then, in units of the field's spread.
"""

from __future__ import annotations

import argparse
import json
import time
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import vcnef
from foreign import nrmse
from foreign_problems import PROBLEMS, Data, make

SAMPLES = {1: 160, 2: 40}
"""Trajectories to train on, by the number of space axes."""
JUDGED = {1: 32, 2: 8}
BATCH = {1: 32, 2: 8}


def longer(name: str, horizons: int, samples: int) -> Data:
    """Trajectories of other states, over so many horizons."""
    usual = PROBLEMS[name]
    PROBLEMS[name] = copy(usual)
    PROBLEMS[name].frames, PROBLEMS[name].horizon = horizons * (usual.frames - 1) + 1, horizons * usual.horizon
    try:
        return make(name, samples, seed=1)
    finally:
        PROBLEMS[name] = usual


def train(data: Data, steps: int, seed: int, **settings: Any) -> Any:
    """A surrogate after about so many steps."""
    x = tuple(each.numpy() for each in data.x)
    known = {"t": data.t, "x": x if len(x) > 1 else x[0], "channels": data.channels, "periodic": data.periodic}
    batches = -(-len(data.u) // BATCH[len(x)]) * (len(data.t) - 1)
    budget = {"epochs": max(1, round(steps / batches)), "validate_every": 10**6, "seed": seed, "devices": "cpu"}
    with TemporaryDirectory() as folder:
        run = vcnef.fit(
            data.u, **known, params=data.params or None, **budget, **settings, out=Path(folder) / "run", quiet=True
        )
    return run.surrogate


def judge(surrogate: Any, data: Data, horizons: int) -> dict[str, list[float]]:
    """nRMSE and drift at the end of each horizon."""
    grid = torch.stack(torch.meshgrid(*data.x, indexing="ij"), dim=-1)
    params = torch.stack(list(data.params.values()), dim=1) if data.params else torch.zeros(len(data.u), 0)
    frames = (len(data.t) - 1) // horizons * torch.arange(1, horizons + 1)
    u = surrogate.answer(data.u[:, 0], grid, data.t[frames], params)
    truth, axes = data.u[:, frames], tuple(range(2, data.u.ndim - 1))
    drift = (u.mean(axes) - data.u[:, :1].mean(axes)).abs() / data.u.flatten(0, -2).std(dim=0)
    return {"nrmse": nrmse(u, truth).mean(0).tolist(), "drift": drift.mean((0, 2)).tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=["ks", "kdv", "kolmogorov"], choices=list(PROBLEMS))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--horizons", type=int, default=5)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for name in asked.problems:
        ndim = len(PROBLEMS[name].points)
        data, judged = make(name, SAMPLES[ndim]), longer(name, asked.horizons, JUDGED[ndim])
        for seed in asked.seeds:
            for label, conserve in (("kept", "auto"), ("free", [])):
                begun = time.process_time()
                surrogate = train(data, asked.steps, seed, conserve=conserve)
                numbers = judge(surrogate, judged, asked.horizons)
                found.append({"problem": name, "seed": seed, "means": label, **numbers})
                for what, values in numbers.items():
                    shown = "  ".join(f"{value:9.2e}" for value in values)
                    print(f"{name:12s} seed {seed} {label} {what:5s} {shown}", flush=True)
                print(f"{time.process_time() - begun:.0f} s of CPU", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
