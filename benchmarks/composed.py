"""What a composition costs: flow maps on windows, direct answers and an FNO that steps, in turn in one run.

    python benchmarks/composed.py [--ndim 1] [--samples 16] [--frames 40] [--points 256] [--device cpu] [--rounds 5]
                                  [--json FILE]

"windows" has the model of the preset own/windows1d (or 2d), with windows of one frame and of four; "direct" is the
paper's VCNeF, "fno" the FNO of its table. Weights are random, which takes the same time. A ratio is a model's time over
that of "direct".
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import torch

import vcnef
from vcnef.config import Config
from vcnef.data import Trajectories
from vcnef.surrogate import Surrogate
from vcnef.timing import time_once

WINDOWS = (1, 4)
"""Frames in a window."""


def waves(ndim: int, frames: int, points: int) -> Trajectories:
    """Data from which a surrogate takes its scales: waves that travel once through the domain."""
    t, x = torch.linspace(0, 1, frames + 1), torch.arange(points) / points
    line = torch.sin(2 * torch.pi * (x - t[:, None] + torch.rand(4, 1, 1)))
    u = line.view(4, frames + 1, points, *[1] * (ndim - 1)).expand(4, frames + 1, *(points,) * ndim)
    axes = (x.numpy(),) * ndim
    return vcnef.from_arrays(u.unsqueeze(-1).numpy(), t=t.numpy(), x=axes if ndim > 1 else axes[0])


def surrogates(ndim: int, frames: int, points: int) -> dict[str, Surrogate]:
    data = waves(ndim, frames, points)
    built = {
        "direct": Surrogate.build("vcnef", {}, data, seed=0),
        "fno": Surrogate.build("fno", {}, data, seed=0),
    }
    options = Config.load(f"own/windows{ndim}d").model.options
    for count in WINDOWS:
        built[f"windows of {count}"] = Surrogate.build("vcnef", options, data, window=count / frames, seed=0)
    return built


def measure(calls: dict[str, Callable[[], object]], device: str, rounds: int) -> dict[str, float]:
    """Median seconds of each; they take turns, after one call of each that is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            taken[name].append(time_once(call, device))
    return {name: median(times) for name, times in taken.items()}


def compare(ndim: int, samples: int, frames: int, points: int, device: str, rounds: int) -> dict[str, dict[str, float]]:
    """Seconds of each, and its ratio to the direct answer."""
    torch.manual_seed(0)
    u0, params = torch.randn(samples, *(points,) * ndim, 1), torch.zeros(samples, 0)
    question = (u0, waves(ndim, 1, points).grid, torch.linspace(0, 1, frames + 1)[1:], params)
    calls = {}
    for name, surrogate in surrogates(ndim, frames, points).items():
        calls[name] = partial(surrogate.to(device).answer, *(each.to(device) for each in question))
    seconds = measure(calls, device, rounds)
    return {name: {"seconds": each, "ratio": each / seconds["direct"]} for name, each in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ndim", type=int, choices=(1, 2), default=1)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--points", type=int, default=256)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = compare(asked.ndim, asked.samples, asked.frames, asked.points, asked.device, asked.rounds)
    for name, each in found.items():
        print(f"{name:14s} {1e3 * each['seconds']:10.1f} ms   {each['ratio']:.2f}")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
