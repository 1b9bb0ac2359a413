"""Data that the package has no solver for: vcnef's default against models that step, the same minutes for each.

    python benchmarks/foreign.py [--problems ks kdv] [--models vcnef fno unet neuralop] [--minutes 3] [--seeds 0]
                                 [--device cpu] [--together 1] [--json FILE]

"vcnef" is what `vcnef.fit(u, t=…, x=…, params=…)` does without any option, "direct" the same with `window="direct"`.
"fno" gives the change in a step, knows no edge where the domain has none, and is trained with push-forward, as "unet"
and "neuralop" are, which is neuraloperator's FNO and needs that library. Each of them is trained with every rate of
`RATES`, for as many minutes as vcnef is given once, and the one with the smallest error on valid is judged. All have
the same trajectories, the same validation, averaged weights and a cosine schedule. On a CPU a run is a process with one
thread; `--together` runs as many side by side. nRMSE is over all frames after the first, on trajectories that nobody
has seen. Settings after a model's name make another one: `--models vcnef "vcnef modes=32 pushes=2" "fno chain=4"`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import torch

import foreign_models
import vcnef
from foreign_problems import PROBLEMS, Data, make
from vcnef.config.settings import parse_setting

TEST_SHARE = 0.1
"""Of the trajectories, drawn by a seed of their own, which neither trains nor chooses weights."""

STEPPING = {
    "unroll": "push_forward",
    "loss": "relative",
    "schedule": "cosine",
    "warm_up": 0.05,
    "ema": 0.999,
    "optimiser": "adamw",
    "batch": 16,
}
"""The recipe of models that step. An FNO on `ks` for two minutes: AdamW at 2e-3 0.0153, with batches of 64 0.0179, Muon
0.0149, which on `kolmogorov` takes longer steps."""

RATES = {"vcnef": (None,), "direct": (None,), "fno": (1e-3, 4e-3), "unet": (5e-4, 2e-3), "neuralop": (1e-3, 4e-3)}
"""Learning rates; None is that of the default."""

FNO_SIZES = {1: {"width": 64, "modes": 24}, 2: {"width": 32, "modes": 12}}
SIZES = {"fno": FNO_SIZES, "neuralop": FNO_SIZES, "unet": {1: {}, 2: {}}}
"""The widths that neuraloperator's users take for such grids; the UNet's are its own."""

ZEROS = 0.1
"""Part of a domain that is not periodic by which neuraloperator's FNO continues it."""


DEVICES = {"cpu": "cpu", "cuda": 1}
"""As torch and as `vcnef.fit` name them."""


def parts(data: Data) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of `vcnef.fit`, and a question with its truth."""
    order = torch.randperm(len(data.u), generator=torch.Generator().manual_seed(1))
    count = round(TEST_SHARE * len(data.u))
    test, train = order[:count], order[count:]
    known = {"t": data.t, "x": data.x, "channels": data.channels, "periodic": data.periodic}
    learnt = known | {"u": data.u[train], "params": {name: each[train] for name, each in data.params.items()}}
    asked = {"u": data.u[test], "params": {name: each[test] for name, each in data.params.items()}}
    return learnt, asked


def options(asked: str, data: Data, rate: float | None) -> dict[str, Any]:
    model, settings = read(asked)
    return recipe(model, data, rate) | settings


def read(asked: str) -> tuple[str, dict[str, Any]]:
    """A model's name, and the settings after it."""
    model, *settings = asked.split()
    if model not in RATES:
        raise ValueError(f"The model is {model!r}; expected one of {', '.join(RATES)}.")
    return model, dict(map(parse_setting, settings))


def recipe(model: str, data: Data, rate: float | None) -> dict[str, Any]:
    if model in ("vcnef", "direct"):
        return {"window": "direct"} if model == "direct" else {}
    ndim = data.u.ndim - 3
    sizes = dict(SIZES[model][ndim])
    if model == "fno":
        sizes |= {"padding": not data.periodic, "residual": True}
    if model == "neuralop":
        sizes |= {"padding": 0.0 if data.periodic else ZEROS}
    return STEPPING | {"learning_rate": rate, "model.options": sizes, "model": model}


def nrmse(found: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Of each trajectory and frame, mean over channels."""
    axes = tuple(range(2, truth.ndim - 1))
    return ((found - truth).square().sum(axes).sqrt() / truth.square().sum(axes).sqrt()).mean(dim=-1)


def run(problem: str, model: str, rate: float | None, seed: int, minutes: float, device: str) -> dict[str, Any]:
    if device == "cpu":
        torch.set_num_threads(1)
    if read(model)[0] == "neuralop":
        foreign_models.register()
    data = make(problem, device=device)
    learnt, asked = parts(data)
    u, given = learnt.pop("u"), options(model, data, rate)
    budget = {"minutes": minutes, "epochs": 100_000, "seed": seed}
    with TemporaryDirectory() as folder:
        trained = vcnef.fit(
            u, **learnt, **given, **budget, out=Path(folder) / "run", devices=DEVICES[device], quiet=True
        )
    surrogate, truth = trained.surrogate, asked["u"]
    x = tuple(each.numpy() for each in data.x)
    params = {name: each.numpy() for name, each in asked["params"].items()} or None
    answer = surrogate.predict(truth[:, 0], t=data.t[1:].numpy(), x=x if len(x) > 1 else x[0], params=params)
    errors = nrmse(torch.from_numpy(answer.values), truth[:, 1:])
    return {
        "problem": problem,
        "model": model,
        "rate": rate,
        "seed": seed,
        "minutes": minutes,
        "device": device,
        "weights": sum(weight.numel() for weight in surrogate.model.parameters()),
        "steps": trained.history[-1].get("step"),
        "window": surrogate.provenance.get("window"),
        "valid": trained.best,
        "nrmse": float(errors.mean()),
        "median": float(errors.mean(dim=1).median()),
        "last": float(errors[:, -1].mean()),
    }


def chosen(found: Iterable[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Of each problem, model and seed the run with the smallest error on valid."""
    best: dict[tuple[str, str, int], dict[str, Any]] = {}
    for each in found:
        key = each["problem"], each["model"], each["seed"]
        if key not in best or each["valid"] < best[key]["valid"]:
            best[key] = each
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (problem, model, _), each in best.items():
        runs.setdefault((problem, model), []).append(each)
    return runs


def table(found: Iterable[dict[str, Any]]) -> str:
    """nRMSE on test, means over seeds, as Markdown."""
    runs = chosen(found)
    problems, models = (list(dict.fromkeys(key[place] for key in runs)) for place in (0, 1))
    rows = ["| | " + " | ".join(models) + " |", "|---" * (1 + len(models)) + "|"]
    for problem in problems:
        cells = []
        for model in models:
            errors = [each["nrmse"] for each in runs.get((problem, model), [])]
            cells.append(f"{mean(errors):.4f}" if errors else "–")
        rows.append(f"| {problem} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    known = [model for model in RATES if model != "neuralop" or foreign_models.INSTALLED]
    parser.add_argument("--models", nargs="+", default=known)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()

    jobs = []
    for problem, model, seed in product(asked.problems, asked.models, asked.seeds):
        jobs += [(problem, model, rate, seed, asked.minutes, asked.device) for rate in RATES[read(model)[0]]]
    found = []
    with ProcessPoolExecutor(asked.together, mp_context=multiprocessing.get_context("spawn")) as pool:
        for each in pool.map(run, *zip(*jobs, strict=True)):
            found.append(each)
            print(json.dumps(each), flush=True)
            if asked.json:
                asked.json.write_text(json.dumps(found, indent=1))
    print(table(found))


if __name__ == "__main__":
    main()
