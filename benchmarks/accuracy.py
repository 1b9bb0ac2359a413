"""How accurate a model becomes on a case of the paper: generate data, train, judge on test, keep everything as JSON.

    python benchmarks/accuracy.py CASE [--preset vcnef_plus] [--seed 0] [--minutes M] [--set key=value ...]
        [--samples N] [--generation G] [--label text] [--out benchmarks/results/accuracy] [--keep runs/x] [--smoke]

`benchmarks/accuracy.yaml` has the cases. Data are made in memory and trained on as `vcnef train` does; only the test
split is judged, at the end. The JSON has all that a repetition needs, and `docs/results.md` is written from such files.
--label says what is different from the preset, for an ablation. --smoke is a case in seconds, whose numbers mean
nothing.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from hashlib import sha256
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from accuracy_cases import Case, held_out, make_data, read_case
from vcnef import __version__, workflow
from vcnef.cli._training import training_progress
from vcnef.config import Config
from vcnef.device import choose_device
from vcnef.evaluation import Evaluation, evaluate
from vcnef.evaluation.cost import device_name
from vcnef.evaluation.tables import number
from vcnef.models.interface import number_of_weights
from vcnef.surrogate.folder import WEIGHTS, find, write_whole

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results" / "accuracy"
SMOKE = {"train.minutes": None, "train.epochs": 1, "train.batch": 4, "train.compile": False, "data.times": None}
SMOKE_VCNEF = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}


def make_config(
    case: Case, preset: str, seed: int, minutes: float | None, settings: Sequence[str], smoke: bool
) -> Config:
    """The preset with the budget of the case; `--set` has the last word."""
    name = preset if "/" in preset or preset.endswith(".yaml") else f"{case.equation}/{preset}"
    config = Config.load(name).override({"train.seed": seed, "train.minutes": minutes or case.minutes})
    if smoke:
        small = {f"model.options.{key}": value for key, value in SMOKE_VCNEF.items()}
        config = config.override(SMOKE | (small if config.model.name == "vcnef" else {}))
        # There are few frames to start from.
        config = config.override({"data.passes": min(config.data.passes, 1)})
    return config.override(settings)


def run(
    case: Case, config: Config, path: Path, *, record: Mapping[str, Any], keep: Path | None, device: torch.device
) -> dict[str, Any]:
    """Train and judge; the file is written after training and after each evaluation."""
    data, full = make_data(case, config, device)
    with nullcontext(keep) if keep else TemporaryDirectory() as place:
        folder = Path(place) if keep else Path(place) / "run"
        devices = "cpu" if device.type == "cpu" else 1
        with training_progress(config.train.epochs) as report:
            trained = workflow.train(config, data, out=folder, devices=devices, on_progress=report)
        last, surrogate = trained.history[-1], trained.surrogate
        found = {
            **record,
            "config": config.to_dict(),
            "data": case.describe() | {"trained_on": surrogate.provenance["train"]},
            "device": device_name(device),
            "torch": torch.__version__,
            "vcnef": __version__,
            "source": describe_source(),
            "training": {"seconds": last["seconds"], "epochs": last["epoch"], "steps": last["step"]},
            "weights": number_of_weights(surrogate.model),
            "weights_sha256": sha256((find(folder) / WEIGHTS).read_bytes()).hexdigest(),
        }
    write(path, found)
    sets = list(held_out(case, full, device))
    # The plain errors are safe in the file before those that need more memory and time.
    for finer in ({}, {"space": case.space, "time": case.time}):
        judged: list[dict[str, Any]] = []
        for values, seen, trajectories in sets:
            evaluation = evaluate(surrogate, trajectories, **finer, device=device, solver=False)
            judged.append({"params": values, "seen": seen, **summarise(evaluation)})
            found["evaluations"] = judged + found.get("evaluations", [])[len(judged) :]
            write(path, found)
    return found


def summarise(evaluation: Evaluation) -> dict[str, Any]:
    """The numbers of an evaluation, without its curves over time; of each trajectory the nRMSE, for violins."""
    record = evaluation.to_dict()
    kept = ("resolution", "frames", "trained", "not_finite", "change")

    def short(result: Mapping[str, Any]) -> dict[str, Any]:
        scores = {name: result["scores"][name] for name in ("overall", "per_channel", "left_out")}
        return {name: result[name] for name in kept} | scores

    return {
        "samples": record["samples"],
        "result": short(record["result"]),
        "space": [short(each) for each in record["space"]],
        "time": [short(each) for each in record["time"]],
        "nrmse": [each if each is None else float(f"{each:.4g}") for each in record["nrmse"]],
        "notes": record["notes"],
    }


def describe_source() -> dict[str, Any]:
    """Which code this was: the commit, where git knows it, and a hash of the package's files in any case."""
    code = sha256()
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".py", ".yaml"):
            code.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", "src", "benchmarks")
    return {"commit": commit, "changed": None if changes is None else bool(changes), "sha256": code.hexdigest()}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:  # there is no git on this machine
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def write(path: Path, record: Mapping[str, Any]) -> None:
    write_whole(path, (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())


def result_path(folder: Path, case: str, preset: str, label: str, seed: int) -> Path:
    """Where a result belongs; one that is there already is not overwritten."""
    words = [case, Path(preset).stem, *"".join(c if c.isalnum() else " " for c in label).split(), f"seed{seed}"]
    path = folder / f"{'_'.join(words)}.json"
    if path.exists():
        raise ValueError(f"{path} exists already. Give another --seed, --label or --out, or remove it.")
    return path


def spell_command(asked: argparse.Namespace) -> str:
    """The command that gives the same numbers; where they were written does not belong to it."""
    names = ("preset", "seed", "minutes", "samples", "generation", "label")
    options = [word for name in names if (value := getattr(asked, name)) for word in (f"--{name}", str(value))]
    settings = ["--set", *asked.settings] if asked.settings else []
    smoke = ["--smoke"] if asked.smoke else []
    return shlex.join(["python", "benchmarks/accuracy.py", asked.case, *options, *settings, *smoke])


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _parse(arguments)
    try:
        case = read_case(asked.case)
        changes = {"samples": asked.samples, "generation": asked.generation}
        case = replace(case.shrunk() if asked.smoke else case, **{k: v for k, v in changes.items() if v is not None})
        config = make_config(case, asked.preset, asked.seed, asked.minutes, asked.settings, asked.smoke)
        path = result_path(asked.out, case.name, asked.preset, asked.label, asked.seed)
        record = {
            "case": case.name,
            "preset": Path(asked.preset).stem,
            "label": asked.label,
            "seed": asked.seed,
            "smoke": asked.smoke,
            "command": spell_command(asked),
            "date": date.today().isoformat(),
        }
        found = run(case, config, path, record=record, keep=asked.keep, device=choose_device(asked.device))
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    for each in found["evaluations"]:
        overall, values = each["result"]["overall"], ", ".join(f"{k}={v:g}" for k, v in each["params"].items())
        kind = "seen" if each["seen"] else "unseen"
        nrmse, joint = (
            number(overall[name] if overall[name] is not None else nan) for name in ("nrmse", "relative_l2")
        )
        print(f"{values} ({kind}): nRMSE {nrmse}, joint relative L2 {joint}")
    print(f"Wrote {path}.")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", help="a case of benchmarks/accuracy.yaml")
    parser.add_argument("--preset", default="vcnef", help="of the case's equation, or equation/name, or a YAML file")
    parser.add_argument("--seed", type=int, default=0, help="of weights and batches; the data have their own")
    parser.add_argument("--minutes", type=float, help="training time; by default the case's")
    parser.add_argument("--set", dest="settings", action="extend", nargs="+", default=[], metavar="key=value")
    parser.add_argument("--samples", type=int, help="trajectories of each parameter value")
    parser.add_argument("--generation", help="of the data: documented or 2022")
    parser.add_argument("--label", default="", help="what is different from the preset")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the JSON")
    parser.add_argument("--keep", type=Path, help="folder for the run, which is thrown away otherwise")
    parser.add_argument("--device")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, to see that it works")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
