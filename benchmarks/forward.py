"""The method as it is written against what is fast: ratios of predictions and of training steps, in one run.

    python benchmarks/forward.py [--ndim 1] [--batch 16] [--times 40] [--points 256] [--device cpu] [--json FILE]

"reference" is `models/vcnef.py`, asked in the same chunks (`VCNEF_KERNELS=0`); the others are `vcnef.accelerate`, in
the precisions that are named. All compute the same function from the same weights, which is checked before it is timed.
`change` is ‖found − reference‖ / ‖reference‖, and a ratio is the reference's time over the other's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

import vcnef
from vcnef.accelerate import predict
from vcnef.accelerate.engine import training_engine
from vcnef.accelerate.kernels.requirements import SWITCH
from vcnef.grid import cell_centres
from vcnef.models.vcnef import VCNeF


def reference(model: VCNeF, *question: Tensor) -> Tensor:
    os.environ[SWITCH] = "0"
    try:
        return predict(model, *question, precision="fp32")
    finally:
        os.environ.pop(SWITCH)


def step(function: Callable[..., Tensor], model: VCNeF, *question: Tensor) -> None:
    model.zero_grad(set_to_none=True)
    function(*question).square().mean().backward()


def change(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


def seconds(functions: dict[str, Callable[[], object]], device: str, repeats: int) -> dict[str, float]:
    """Median time of each function after one warm-up; they take turns, so that a busy moment meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for repeat in range(repeats + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if device == "cuda":
                torch.cuda.synchronize()
            if repeat:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def compare(args: argparse.Namespace, variant: str) -> dict[str, float | str]:
    torch.manual_seed(0)
    model = vcnef.build("vcnef", ndim=args.ndim, channels=1, params=1, variant=variant).to(args.device).eval()
    sides = (args.points,) * args.ndim
    u0, params = torch.randn(args.batch, *sides, 1), torch.rand(args.batch, 1)
    grid = cell_centres(((0.0, 1.0),) * args.ndim, sides)
    t = torch.linspace(1 / args.times, 1, args.times)
    question = tuple(x.to(args.device) for x in (u0, grid, t, params))
    row: dict[str, float | str] = {"variant": variant}

    fast = {f"predict {name}": partial(predict, model, precision=name) for name in args.precisions}
    expected = reference(model, *question)
    for name, function in fast.items():
        row[f"{name}, change"] = change(function(*question), expected)
    ways = {"reference": partial(reference, model)} | fast
    taken = seconds({name: partial(way, *question) for name, way in ways.items()}, args.device, args.repeats)
    row |= {f"{name}, s": value for name, value in taken.items()}
    row |= {f"{name}, ratio": taken["reference"] / taken[name] for name in fast}

    if args.steps:
        engine = training_engine(model, question[0].device, None, compiled=False)
        steps = {"reference step": model, "engine step": engine.forward}
        taken = seconds({k: partial(step, f, model, *question) for k, f in steps.items()}, args.device, args.steps)
        row |= {f"{name}, s": value for name, value in taken.items()}
        row["engine step, ratio"] = taken["reference step"] / taken["engine step"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ndim", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--points", type=int, default=256, help="points a side")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"], help="of predictions, e.g. fp32 fp16 bf16")
    parser.add_argument("--repeats", type=int, default=7, help="timed predictions of each kind")
    parser.add_argument("--steps", type=int, default=2, help="timed training steps of each kind; 0 leaves them out")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    rows = [compare(args, variant) for variant in ("paper", "release")]
    for name in rows[0]:
        print(f"{name:24s}", *(f"{v:>10.3g}" if isinstance(v, float) else f"{v:>10s}" for v in (r[name] for r in rows)))
    if args.json:
        where = {"torch": torch.__version__, "threads": torch.get_num_threads(), "machine": platform.processor()}
        case = {key: value for key, value in vars(args).items() if key != "json"}
        args.json.write_text(json.dumps({"case": case, **where, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
