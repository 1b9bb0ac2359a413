"""Far beyond the horizon: models learn short trajectories and are asked for long ones.

    python benchmarks/far.py [--cases euler_5 gas ks kolmogorov] [--models vcnef fno] [--minutes 5] [--seeds 0]
                             [--device cpu] [--json FILE]

Gases (`gas_problems.py`) are learnt to t = 1.5 or 1 and asked for to t = 10; the error is that of VAMO's tables,
‖û − u‖ / ‖u‖ of each test trajectory over all frames after the first, a mean over channels with all velocities as one.
Chaotic problems (`foreign_problems.py`) are learnt to their horizon and continued for `LONG` windows. What can be right
there are statistics, over the second half: the energy in each shell of wave numbers, as a mean relative difference over
those shells that hold 99.9 % of it, and the distribution of values, as half of the difference between histograms (0
is the same, 1 is nothing in common). "truth" is what another set of true trajectories of the same number gives.

Models, settings after their names, rates and training are those of `foreign.py`; so is "a run is a process" on a CPU.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

import foreign
import vcnef
from foreign_problems import PROBLEMS, Data, Problem
from gas_problems import GASES, until
from vcnef.metrics import energy_spectrum

GASES_END = 10.0
TEST_SAMPLES = {"euler": 200, "gas": 50}
LONG = 200
"""Windows, of one frame each in the truth."""
LONGEST = 1000
"""Windows after which answers must still be finite and no larger than `ROOM` times what is true."""
ROOM = 3.0
LONG_SAMPLES = 32
CHAOTIC = ("ks", "kolmogorov")
BINS = 60


def learn(data: Data, model: str, minutes: float, seed: int, device: str) -> vcnef.Surrogate:
    """The best on valid of all rates of a model."""
    best = None
    for rate in foreign.RATES[foreign.read(model)[0]]:
        given = foreign.options(model, data, rate)
        budget = {"minutes": minutes, "epochs": 100_000, "seed": seed, "valid": 0.2}
        known = {"t": data.t, "x": data.x, "channels": data.channels, "periodic": data.periodic, "params": data.params}
        with TemporaryDirectory() as folder:
            out, devices = Path(folder) / "run", foreign.DEVICES[device]
            run = vcnef.fit(data.u, **known, **given, **budget, out=out, devices=devices, quiet=True)
        if best is None or run.best < best.best:
            best = run
    return best.surrogate


def make(problem: Problem, samples: int, seed: int, device: str) -> Data:
    start, params = problem.draw(samples, seed, device)
    u = problem.solve(start, params).movedim(2, -1).contiguous()
    axes = tuple(axis.float() for axis in problem.axes())
    values = {name: value.float().cpu() for name, value in params.items()}
    return Data(u, problem.times().float(), axes, values, problem.channels, problem.periodic)


def ask(surrogate: vcnef.Surrogate, data: Data) -> Tensor:
    """The answers at all frames after the first."""
    x = tuple(axis.numpy() for axis in data.x)
    params = {name: value.numpy() for name, value in data.params.items()} or None
    answer = surrogate.predict(data.u[:, 0], t=data.t[1:].numpy(), x=x if len(x) > 1 else x[0], params=params)
    return torch.from_numpy(answer.values)


def relative(found: Tensor, truth: Tensor, channels: tuple[str, ...]) -> dict[str, float]:
    """‖û − u‖ / ‖u‖ of each trajectory, a mean over them, for each scalar and for the velocities together."""
    axes = tuple(range(1, truth.ndim - 1))
    wrong, whole = ((each.double().square()).sum(dim=axes) for each in (found - truth, truth))
    flow = [place for place, name in enumerate(channels) if name in ("vx", "vy")]
    groups = {name: [place] for place, name in enumerate(channels) if place not in flow} | {"velocity": flow}
    errors = {}
    for name, places in groups.items():
        quotient = wrong[:, places].sum(dim=-1) / whole[:, places].sum(dim=-1)
        errors[name] = float(quotient.sqrt().mean())
    return errors | {"mean": sum(errors.values()) / len(errors)}


def beyond(name: str, model: str, minutes: float, seed: int, device: str, samples: int | None = None) -> dict[str, Any]:
    """A gas: learnt for a short time, asked for a long one."""
    problem = GASES[name]
    surrogate = learn(make(problem, samples or problem.samples, seed, device), model, minutes, seed, device)
    count = min(samples or LONGEST, TEST_SAMPLES[name.split("_")[0]])
    long = make(until(problem, GASES_END), count, 10_000 + seed, device)
    found = ask(surrogate, long)
    frames = problem.frames - 1
    within, all_of_it = long.u[:, 1 : frames + 1], long.u[:, 1:]
    return {
        "window": surrogate.provenance.get("window"),
        "trained to": relative(found[:, :frames], within, problem.channels),
        "all": relative(found, all_of_it, problem.channels),
    }


def statistics(u: Tensor, truth: Tensor) -> dict[str, float]:
    """How far spectrum and distribution of the second half are from the truth's."""
    later, right = u[:, u.shape[1] // 2 :], truth[:, truth.shape[1] // 2 :]
    found, wanted = (energy_spectrum(each).mean(dim=(0, 1, 3)) for each in (later, right))
    # A mean that stays zero is no shell to compare.
    shells = (wanted.cumsum(dim=0) <= 0.999 * wanted.sum()) & (wanted > 1e-6 * wanted.max())
    edges = torch.linspace(float(right.min()), float(right.max()), BINS + 1)
    edges[0], edges[-1] = -torch.inf, torch.inf
    parts = [torch.bucketize(each.flatten(), edges[1:-1]).bincount(minlength=BINS) for each in (later, right)]
    shares = [each / each.sum() for each in parts]
    return {
        "spectrum": float(((found - wanted).abs() / wanted)[shells].mean()),
        "distribution": float(0.5 * (shares[0] - shares[1]).abs().sum()),
    }


def continued(
    name: str, model: str, minutes: float, seed: int, device: str, samples: int | None = None
) -> dict[str, Any]:
    """A chaotic problem: long runs, of which statistics are compared."""
    problem = PROBLEMS[name]
    gap = problem.horizon / (problem.frames - 1)
    surrogate = learn(make(problem, samples or problem.samples, seed, device), model, minutes, seed, device)
    count, long = min(samples or LONGEST, LONG_SAMPLES), until(problem, LONG * gap)
    truth, another = (make(long, count, place + seed, device) for place in (10_000, 20_000))
    found = {"answer": statistics(ask(surrogate, truth), truth.u), "truth": statistics(another.u, truth.u)}
    last = surrogate.predict(
        truth.u[:, 0], t=[LONGEST * gap], params={name: each.numpy() for name, each in truth.params.items()} or None
    )
    largest = float(torch.from_numpy(last.values).abs().max() / truth.u.abs().max())
    return {**found, "largest after a thousand windows": largest, "bounded": largest < ROOM}


def main() -> None:
    cases: dict[str, Callable[..., dict[str, Any]]] = dict.fromkeys(GASES, beyond) | dict.fromkeys(CHAOTIC, continued)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=cases, default=list(cases))
    parser.add_argument("--models", nargs="+", default=["vcnef", "fno"])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--device", choices=foreign.DEVICES, default="cpu")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = []
    for name, model, seed in product(asked.cases, asked.models, asked.seeds):
        known = {"case": name, "model": model, "seed": seed, "minutes": asked.minutes, "device": asked.device}
        found.append(known | cases[name](name, model, asked.minutes, seed, asked.device))
        print(json.dumps(found[-1]), flush=True)
        if asked.json:
            asked.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
