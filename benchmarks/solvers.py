"""Trajectories per second of the classical solvers, at the benchmark's resolution and output times.

    python benchmarks/solvers.py                             a few trajectories of each equation, on the CPU
    python benchmarks/solvers.py --device cuda --full        10,000 (3D: 100) trajectories of each equation
    python benchmarks/solvers.py --pde cns2d --samples 256 --batch 128 --device cuda --json out.json

Initial states are drawn outside the clock. The first solve, which compiles, is not counted: it runs one short frame.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from vcnef.pde import EQUATIONS, equation


@dataclass(frozen=True)
class Load:
    """How much to solve: trajectories in all and at once; frames and cells along an axis where not the benchmark's."""

    samples: int
    batch: int
    frames: int | None = None
    resolution: int | None = None


QUICK = {
    "advection": Load(64, 64, 21),
    "burgers": Load(64, 64, 3),
    "cns1d": Load(32, 32, 2),
    "cns2d": Load(4, 4, 2),
    "cns3d": Load(1, 1, 2, resolution=32),
}
FULL = {
    "advection": Load(10_000, 10_000),
    "burgers": Load(10_000, 10_000),
    "cns1d": Load(10_000, 10_000),
    "cns2d": Load(10_000, 2_500),
    "cns3d": Load(100, 20),
}


@dataclass(frozen=True)
class Result:
    pde: str
    device: str
    cells: str
    frames: int
    samples: int
    seconds: float
    per_second: float
    full_horizon_per_second: float
    """Trajectories per second over all the benchmark's frames, scaled from the frames run."""
    not_finite: int


def measure(name: str, load: Load, device: torch.device, seed: int, compiled: bool | None) -> Result:
    chosen = equation(name)
    frames, resolution = load.frames or chosen.frames, load.resolution or chosen.resolution
    if not 2 <= frames <= chosen.frames:
        raise ValueError(
            f"frames is {frames}; expected 2 to the benchmark's {chosen.frames}, the initial one included."
        )
    t = torch.linspace(0.0, chosen.horizon, chosen.frames, dtype=torch.float64)[:frames]
    seconds, lost = 0.0, 0
    for start in range(0, load.samples, load.batch):
        indices = range(start, min(start + load.batch, load.samples))
        u0 = chosen.initial_states(indices, seed=seed, resolution=resolution, device=device)
        if start == 0:
            chosen.solve(u0, t[1:2] * 1e-3, compiled=compiled)
        _synchronise(device)
        began = time.perf_counter()
        u = chosen.solve(u0, t, compiled=compiled)
        _synchronise(device)
        seconds += time.perf_counter() - began
        lost += int((~torch.isfinite(u[:, -1]).flatten(1).all(1)).sum())
        del u
    rate = load.samples / seconds
    cells = f"{resolution}^{chosen.problem.ndim}"
    share = (frames - 1) / (chosen.frames - 1)
    return Result(name, _describe(device), cells, frames, load.samples, seconds, rate, rate * share, lost)


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _describe(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pde", nargs="*", choices=list(EQUATIONS), default=list(EQUATIONS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compiled", action="store_true", default=None, help="fuse the steps on the CPU too")
    parser.add_argument("--full", action="store_true", help="the benchmark's sample counts, all frames")
    parser.add_argument("--samples", type=int, help="trajectories in all")
    parser.add_argument("--batch", type=int, help="trajectories solved at once")
    parser.add_argument("--frames", type=int, help="frames to go through, the initial one included")
    parser.add_argument("--resolution", type=int, help="cells along each axis")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    asked = parser.parse_args()

    columns = ("pde", "cells", "frames", "samples", "seconds", "per s", "full per s", "lost")
    print("{:<10} {:>7} {:>6} {:>7} {:>9} {:>9} {:>10} {:>5}".format(*columns))
    results = []
    for name in asked.pde:
        usual = (FULL if asked.full else QUICK)[name]
        samples = asked.samples or usual.samples
        batch = min(asked.batch or usual.batch, samples)
        load = Load(samples, batch, asked.frames or usual.frames, asked.resolution or usual.resolution)
        r = measure(name, load, torch.device(asked.device), asked.seed, asked.compiled)
        results.append(asdict(r))
        print(
            f"{r.pde:<10} {r.cells:>7} {r.frames:>6} {r.samples:>7} {r.seconds:>9.2f} "
            f"{r.per_second:>9.4g} {r.full_horizon_per_second:>10.4g} {r.not_finite:>5}",
            flush=True,
        )
    if asked.json:
        asked.json.write_text(json.dumps({"torch": torch.__version__, "results": results}, indent=2))


if __name__ == "__main__":
    main()
