"""Would a short trial choose a better window than the rule of `window="auto"`?

    python benchmarks/window_trial.py [--problems ks kdv heat_walls fisher_kpp] [--windows 1 2 4] [--steps 600]
                                      [--trial 60] [--json FILE]

`vcnef.fit(u, t=…, x=…, params=…)` in windows of so many frames, from the same seed, by one thread: once for a few
steps, of which nRMSE on valid would choose, and once for all steps, of which nRMSE over all frames of other
trajectories says what the right choice would have been. The rule takes the first window in which fields change by 2 %.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import vcnef
from foreign import nrmse
from foreign_problems import PROBLEMS, Data, make

SAMPLES, JUDGED, BATCH = 96, 32, 32


def train(data: Data, frames: int | None, steps: int) -> dict[str, Any]:
    """What is left after about so many steps in windows of so many frames, None is direct, and seconds of CPU."""
    gap = float(data.t[1] - data.t[0])
    x = tuple(each.numpy() for each in data.x)
    known = {"t": data.t, "x": x if len(x) > 1 else x[0], "channels": data.channels, "periodic": data.periodic}
    known |= {"params": data.params or None, "window": "direct" if frames is None else frames * gap}
    passes = 1 if frames is None else (len(data.t) - 1) // frames
    epochs = max(1, round(steps / (-(-round(0.85 * len(data.u)) // BATCH) * passes)))
    budget = {"epochs": epochs, "validate_every": 10**6, "devices": "cpu", "batch": BATCH}
    begun = time.process_time()
    with TemporaryDirectory() as folder:
        run = vcnef.fit(data.u, **known, **budget, out=Path(folder) / "run", quiet=True)
    found = {"steps": run.history[-1]["step"], "valid": run.best, "seconds": time.process_time() - begun}
    return found | {"surrogate": run.surrogate}


def judge(surrogate: Any, data: Data) -> float:
    """nRMSE over all frames after the first."""
    grid = torch.stack(torch.meshgrid(*data.x, indexing="ij"), dim=-1)
    params = torch.stack(list(data.params.values()), dim=1) if data.params else torch.zeros(len(data.u), 0)
    u = surrogate.answer(data.u[:, 0], grid, data.t[1:], params)
    return float(nrmse(u, data.u[:, 1:]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=["ks", "kdv", "heat_walls", "fisher_kpp"])
    parser.add_argument("--windows", nargs="+", default=["1", "2", "4"], help="in frames, or direct")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--trial", type=int, default=60)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for name in asked.problems:
        assert name in PROBLEMS, name
        data, judged = make(name, SAMPLES), make(name, JUDGED, seed=1)
        for window in asked.windows:
            frames = None if window == "direct" else int(window)
            short, whole = train(data, frames, asked.trial), train(data, frames, asked.steps)
            error = judge(whole.pop("surrogate"), judged)
            short.pop("surrogate")
            found.append({"problem": name, "window": window, "trial": short, "whole": whole, "nrmse": error})
            print(
                f"{name:12s} {window:>6s}: trial of {short['steps']}, {short['seconds']:.0f} s, {short['valid']:.4f};"
                f" whole of {whole['steps']}, {whole['seconds']:.0f} s, {whole['valid']:.4f}, judged {error:.4f}",
                flush=True,
            )
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
