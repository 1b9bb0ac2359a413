"""Two versions of the code in one run: predictions and training steps of the paper's models, measured in turn.

    python benchmarks/two_codes.py --before CHECKOUT [--cases predict-1d-40 train-2d-20] [--device cuda] [--json FILE]

Every case of each version has a process of its own, which imports that version from its checkout. All get ready at
once, since compilers take minutes; then one after the other measures alone, the versions of a case in turn. A ratio is
the median of this code over that of the earlier one: below 1, this code is faster. Memory is the peak of a prediction
beyond what lay there, or all of a training step.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

PREDICTIONS = {
    "predict-1d-40": {"ndim": 1, "samples": 1000, "times": 40, "points": 256},
    "predict-1d-240": {"ndim": 1, "samples": 1000, "times": 240, "points": 256},
    "predict-2d-20": {"ndim": 2, "samples": 1000, "times": 20, "points": 64},
    "predict-3d-10": {"ndim": 3, "samples": 100, "times": 10, "points": 32},
    "predict-small": {"ndim": 1, "samples": 16, "times": 40, "points": 256},
}
TRAININGS = {
    "train-1d-40": {"ndim": 1, "times": 40, "points": 256, "frames": 40},
    "train-1d-8": {"ndim": 1, "times": 8, "points": 256, "frames": 40},
    "train-1d-softmax": {"ndim": 1, "times": 40, "points": 256, "frames": 40, "attention": "softmax"},
    "train-2d-20": {"ndim": 2, "times": 20, "points": 64, "frames": 20},
}
STEPS = {"cpu": 1, "cuda": 20}
"""Training steps of one measurement."""

AROUND_STEPS = ExitStack()
"""Contexts that stay open until the process ends, as they are around a run."""

HERE = Path(__file__).resolve().parent.parent


# --- In the process of one version ----------------------------------------------------------------------------------


def prepare_prediction(size: dict[str, Any], device: str, precision: str) -> tuple[Callable[[], None], int, int]:
    """What is to be measured, how often in one measurement, and the bytes at its peak."""
    import torch

    import vcnef
    from vcnef.grid import cell_centres
    from vcnef.timing import peak_memory

    torch.manual_seed(0)
    ndim, sides = size["ndim"], (size["points"],) * size["ndim"]
    channels = 1 if ndim == 1 else ndim + 2
    model = vcnef.build("vcnef", ndim=ndim, channels=channels).to(device).eval()
    grid, t = cell_centres(((0.0, 1.0),) * ndim, sides), torch.linspace(0, 1, size["times"] + 1)[1:]
    inputs = [each.to(device) for each in (torch.randn(size["samples"], *sides, channels), grid, t)]
    try:
        from vcnef.accelerate import predict
    except ImportError:  # where models predict themselves
        answer = partial(model.predict, *inputs, precision=precision)
    else:
        answer = partial(predict, model, *inputs, precision=precision)
    answer()
    lay_there = torch.cuda.memory_allocated() if device == "cuda" else 0
    return answer, 1, (peak_memory(answer, device) or 0) - lay_there


def prepare_training(size: dict[str, Any], device: str, precision: str) -> tuple[Callable[[], None], int, int]:
    """The same of steps as `vcnef benchmark train` takes them. Compiled code that is known serves it, too."""
    import torch

    import vcnef
    from vcnef.data import Queries, Scaling
    from vcnef.surrogate import Surrogate
    from vcnef.training import cost
    from vcnef.training.devices import fused, numerics
    from vcnef.training.recipe import Recipe

    torch.manual_seed(0)
    channels = 1 if size["ndim"] == 1 else size["ndim"] + 2
    options = {name: size[name] for name in ("attention",) if name in size}
    model = vcnef.build("vcnef", ndim=size["ndim"], channels=channels, **options)
    case = cost.Case(size["points"], size["frames"], 64, size["times"], precision, torch.device(device))
    queries, recipe = Queries(times=cost._fewer(case, model)), Recipe(batch=case.batch, precision=precision)
    data = cost._random_trajectories(model, case)
    surrogate = Surrogate(model, "benchmark", {}, data.problem, Scaling.fit(data))
    given = {"queries": queries, "symmetries": (), "objective": None, "resume": False}
    try:
        from vcnef.training.checkpoint import RunFolder

        job = cost.prepare(cost._one_device(case), surrogate, data, None, recipe, folder=RunFolder(None), **given)
    except TypeError:  # where a run makes its folder itself
        job = cost.prepare(cost._one_device(case), surrogate, data, None, recipe, out=None, **given)
    advance = cost._advancing(job)
    AROUND_STEPS.enter_context(numerics(recipe))
    AROUND_STEPS.enter_context(fused(model, recipe, queries, case.device))
    peak = cost._warm_up(advance, case.device)
    return partial(advance, STEPS[device]), STEPS[device], (peak or data.u.nbytes) - data.u.nbytes


def serve(case: str, device: str, precision: str) -> None:
    """Measure once for every line that comes in."""
    from vcnef.timing import time_once

    kind, table = (prepare_prediction, PREDICTIONS) if case in PREDICTIONS else (prepare_training, TRAININGS)
    call, repeats, peak = kind(table[case], device, precision)
    call()
    print(json.dumps({"MiB": peak / 2**20}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"ms": 1e3 * time_once(call, device) / repeats}), flush=True)


# --- Around them ----------------------------------------------------------------------------------------------------


class Measured:
    """A case of one version in its own process."""

    def __init__(self, source: Path, case: str, device: str, precision: str) -> None:
        command = [sys.executable, __file__, "--serve", case, "--device", device, "--precision", precision]
        path = os.pathsep.join([str(source / "src"), os.environ.get("PYTHONPATH", "")])
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, **pipes)
        self.taken: list[float] = []
        self.peak = 0.0

    def wait(self) -> None:
        self.peak = self._read()["MiB"]

    def measure(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.taken.append(self._read()["ms"])

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()

    def _read(self) -> dict[str, float]:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args} has ended with code {self.process.wait()}.")
        return json.loads(line)


def compare(before: Path, cases: list[str], device: str, precision: str, rounds: int) -> dict[str, dict[str, Any]]:
    """Of each case the median time of both versions, all times, and the memory."""
    versions = {"before": before, "after": HERE}
    running = {
        case: {
            name: Measured(source, case, device, default_precision(case, precision))
            for name, source in versions.items()
        }
        for case in cases
    }
    for pair in running.values():
        for each in pair.values():
            each.wait()
    found = {}
    for case, pair in running.items():
        for _ in range(rounds):
            for each in pair.values():
                each.measure()
        times = {name: median(each.taken) for name, each in pair.items()}
        found[case] = {
            **{f"{name} ms": value for name, value in times.items()},
            "ratio": times["after"] / times["before"],
            **{f"{name} MiB": each.peak for name, each in pair.items()},
            **{f"{name}, all": each.taken for name, each in pair.items()},
        }
        print(f"{case:18s}", *(f"{k} {v:<9.4g}" for k, v in found[case].items() if isinstance(v, float)), flush=True)
        for each in pair.values():
            each.end()
    return found


def default_precision(case: str, precision: str | None) -> str:
    return precision or ("fp16" if case in PREDICTIONS else "bf16")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cases = [*PREDICTIONS, *TRAININGS]
    parser.add_argument("--before", type=Path, help="a checkout of the earlier version")
    parser.add_argument(
        "--cases", nargs="+", choices=cases, default=[each for each in cases if each != "predict-small"]
    )
    parser.add_argument("--device", choices=sorted(STEPS), default="cuda")
    parser.add_argument("--precision", help="fp16 for predictions and bf16 for training where it is left out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", choices=cases, help=argparse.SUPPRESS)
    asked = parser.parse_args()

    if asked.serve:
        serve(asked.serve, asked.device, asked.precision)
        return
    if asked.before is None or not (asked.before / "src" / "vcnef").is_dir():
        parser.error(f"--before is {asked.before}; expected a checkout with src/vcnef in it.")
    found = compare(asked.before, asked.cases, asked.device, asked.precision, asked.rounds)
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
