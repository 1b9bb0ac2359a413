"""What makes the classical solvers fast on a device: the scheme for diffusion, how many at once, compiled steps.

    python benchmarks/solver_settings.py [--device cpu] [--threads 1] [--processor] [--rounds 3]

Prints tables in Markdown. Everything that is compared is timed in turn in one process, and the median of the rounds is
kept. Errors are those against the solver on four times as many points.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import pi
from statistics import median
from typing import Any

import torch
from torch import Tensor

import vcnef.timing
from vcnef.evaluation.cost import device_name
from vcnef.metrics import nrmse
from vcnef.pde import equation
from vcnef.pde.reference import finer_solution
from vcnef.timing import time_once

STIFFNESS = (0.5, 1.0, 1.5, 2.0, 4.0, 8.0)
"""ν/π in units of Δx max|u0|."""
SOLVERS: dict[str, tuple[dict[str, float], int, float]] = {
    "advection": ({"beta": 1.0}, 256, 0.5),
    "burgers": ({"nu": 0.004}, 256, 0.5),
    "cns1d": ({"eta": 0.01, "zeta": 0.01}, 128, 0.2),
    "cns2d": ({"eta": 0.01, "zeta": 0.01}, 32, 0.1),
}
"""Parameters, cells along an axis, and last time."""
TOGETHER = (1, 4, 32)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processor", action="store_true", help="seconds of the processor, for a shared machine")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--solvers", nargs="+", choices=list(SOLVERS), default=list(SOLVERS), metavar="NAME")
    parser.add_argument("--points", type=int, nargs="+", default=[64, 256], help="of the table of schemes")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(asked.threads)
    if asked.processor:
        vcnef.timing.clock = time.process_time
    device = torch.device(asked.device)
    print(f"{device_name(device)}, torch {torch.__version__}\n")
    print("| points | ν/π / (Δx max\\|u0\\|) | explicit | exponential | ratio | nRMSE explicit | exponential |")
    print("|---|---|---|---|---|---|---|")
    for points in asked.points:
        for stiffness in STIFFNESS:
            print(compare_schemes(points, stiffness, device, asked.rounds), flush=True)
    print("\n| equation | cells | 1 at once | 4 | 32 | 1, compiled | 4 | 32 | ratio, 4 plain to 32 compiled |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in asked.solvers:
        print(compare_settings(name, device, asked.rounds), flush=True)


def compare_schemes(points: int, stiffness: float, device: torch.device, rounds: int) -> str:
    """Both schemes for diffusion, one trajectory at once, as written."""
    known, t = equation("burgers"), torch.linspace(0.0, 0.5, 11)[1:]
    u0 = known.initial_states([0], seed=3, resolution=points, device=device)
    nu = {"nu": stiffness * pi * float(u0.abs().amax()) / points}
    truth = finer_solution(known, u0, t, nu, known.problem.domain, 4).u
    calls = {way: partial(known.solve, u0, t, nu, diffusion=way) for way in ("explicit", "exponential")}
    errors = [float(nrmse(call(), truth, initial_frames=0)) for call in calls.values()]
    explicit, exponential = in_turn(calls, device, rounds).values()
    times = f"{1e3 * explicit:.0f} ms | {1e3 * exponential:.0f} ms | {explicit / exponential:.2f}"
    return f"| {points} | {stiffness:g} | {times} | {errors[0]:.2e} | {errors[1]:.2e} |"


def compare_settings(name: str, device: torch.device, rounds: int) -> str:
    """Per trajectory, for several at once, as written and compiled."""
    params, points, last = SOLVERS[name]
    known, t = equation(name), torch.linspace(0.0, last, 5)[1:]
    calls: dict[Any, Callable[[], Tensor]] = {}
    for compiled in (False, True):
        for count in TOGETHER:
            u0 = known.initial_states(range(count), seed=3, resolution=points, device=device)
            run = partial(known.solve, u0, params=params, compiled=compiled)
            run(t[:1] / 64)
            calls[compiled, count] = partial(run, t)
    found = in_turn(calls, device, rounds)
    each = {key: seconds / key[1] for key, seconds in found.items()}
    cells = " | ".join(f"{1e3 * seconds:.2f} ms" for seconds in each.values())
    return f"| {name} | {points} | {cells} | {each[False, 4] / each[True, 32]:.1f} |"


def in_turn(calls: Mapping[Any, Callable[[], Tensor]], device: torch.device, rounds: int) -> dict[Any, float]:
    """Median seconds of each call; one round after the other, so that the load of a machine falls on all."""
    seconds: dict[Any, list[float]] = {key: [] for key in calls}
    for _ in range(rounds):
        for key, call in calls.items():
            seconds[key].append(time_once(call, device))
    return {key: median(each) for key, each in seconds.items()}


if __name__ == "__main__":
    main()
