"""One run of `benchmarks/accuracy.py`: train, judge on test, and the JSON that keeps all of it."""

from __future__ import annotations

import gc
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from accuracy_cases import CaseData
from vcnef import __version__, workflow
from vcnef.config import Config
from vcnef.evaluation import Evaluation, evaluate
from vcnef.evaluation.cost import device_name
from vcnef.models.interface import number_of_weights
from vcnef.surrogate import Surrogate
from vcnef.surrogate.folder import WEIGHTS, find
from vcnef.training.fit import Run
from vcnef.training.screen import training_progress
from vcnef.whole import write_whole

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Plan:
    """What is trained, where its result belongs, and what the result says of itself first."""

    config: Config
    path: Path
    about: Mapping[str, Any]


def run(plan: Plan, data: CaseData, folder: Path | None, *, resume: bool) -> dict[str, Any]:
    """Train in that folder, or in one that is thrown away, and judge; the file is written after each evaluation."""
    # Compilers keep few versions of the code that models share, and a recorded step its memory.
    torch.compiler.reset()
    gc.collect()
    with TemporaryDirectory() as place:
        if resume and folder and plan.path.exists():
            surrogate, found = read_trained(plan.path, folder)
        else:
            folder = folder or Path(place) / "run"
            trained = train(plan.config, data, folder, resume=resume and folder.is_dir())
            surrogate, found = trained.surrogate, dict(plan.about) | describe(plan.config, data, trained, folder)
    found |= {"data": data.case.describe() | {"trained_on": surrogate.provenance["train"]}, "evaluations": []}
    write(plan.path, found)
    # The plain errors are safe in the file before those that need more memory and time.
    for finer in ({}, {"space": data.case.space, "time": data.case.time}):
        for number, (values, seen, trajectories) in enumerate(data.held_out()):
            evaluation = evaluate(surrogate, trajectories, **finer, split="test", device=data.device, solver=False)
            found["evaluations"][number : number + 1] = [{"params": values, "seen": seen, **summarise(evaluation)}]
            write(plan.path, found)
    return found


def read_trained(path: Path, folder: Path) -> tuple[Surrogate, dict[str, Any]]:
    """A run whose training is done and whose judgement was interrupted."""
    found = json.loads(path.read_text())
    if hash_weights(folder) != found["weights_sha256"]:
        raise ValueError(f"The weights in {folder} are not those of {path}. Remove one of them.")
    return Surrogate.load(folder), found


def train(config: Config, data: CaseData, folder: Path, *, resume: bool) -> Run:
    devices = "cpu" if data.device.type == "cpu" else 1
    with training_progress(config.train.epochs) as report:
        return workflow.train(
            config, data.seen(config), out=folder, resume=resume, devices=devices, on_progress=report
        )  # fmt: skip


def describe(config: Config, data: CaseData, trained: Run, folder: Path) -> dict[str, Any]:
    """What a repetition needs, and what training took."""
    last, surrogate = trained.history[-1], trained.surrogate
    return {
        "config": config.to_dict(),
        "device": device_name(data.device),
        "torch": torch.__version__,
        "vcnef": __version__,
        "source": describe_source(),
        "training": {"seconds": last["seconds"], "epochs": last["epoch"], "steps": last["step"]},
        "weights": number_of_weights(surrogate.model),
        "weights_sha256": hash_weights(folder),
    }


def hash_weights(folder: Path) -> str:
    return sha256((find(folder) / WEIGHTS).read_bytes()).hexdigest()


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
        "baselines": record["baselines"],
        "notes": record["notes"],
    }


def describe_source() -> dict[str, Any]:
    """Which code this was: the commit, where git knows it, and a hash of the package's files in any case."""
    code = sha256()
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".py", ".yaml"):
            code.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    # Results are no code: a run that wrote one does not make the next one's tree dirty.
    code_alone = ("--", "src", "benchmarks", ":(exclude)benchmarks/results")
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", *code_alone)
    return {"commit": commit, "changed": None if changes is None else bool(changes), "sha256": code.hexdigest()}


def check_source(source: Mapping[str, Any], *, dirty: bool) -> None:
    """Refuse code that no commit names, whose numbers nobody could repeat, unless that is what was asked for."""
    if source["changed"] is False or dirty:
        return
    if source["commit"] is None:
        what = "The code is not in a git repository, so no commit names it."
    else:
        what = f"The code in src or benchmarks differs from commit {source['commit'][:12]}."
    raise ValueError(f"{what} Commit it first, or give --dirty, which the label of the result then says.")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:  # there is no git on this machine
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def write(path: Path, record: Mapping[str, Any]) -> None:
    write_whole(path, (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())
