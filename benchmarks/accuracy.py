"""How accurate models become on a case of the paper: generate data, train, judge on test, keep everything as JSON.

    python benchmarks/accuracy.py CASE [--preset vcnef_plus ...] [--seed 0 ...] [--minutes M | --epochs E]
        [--set key=value ...] [--label text | --ablate [LABEL ...]] [--samples N] [--generation G]
        [--out benchmarks/results/accuracy] [--keep runs] [--cache data] [--resume] [--device D] [--smoke] [--dirty]

`benchmarks/accuracy.yaml` has the cases. Data are made once, in memory, and trained on as `vcnef train` does, for every
preset and seed in turn; only the test split is judged, at the end. A JSON has all that a repetition needs, and
`docs/results.md` is written from such files.

--label says what is different from the preset. --ablate changes the ingredients of `benchmarks/ablations.yaml` one at
a time, best with --epochs, so that all take equally many steps. --keep has a folder for every run, named as its result;
with --resume runs that were interrupted there go on, and results that are there already stay. --smoke is a case in
seconds, whose numbers mean nothing. Code that differs from its commit is refused; with --dirty the label says so.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import product
from math import nan
from pathlib import Path
from typing import Any

import yaml

from accuracy_cases import Case, CaseData, read_case
from accuracy_run import Plan, check_source, describe_source, run
from accuracy_tables import is_finished
from vcnef.config import Config
from vcnef.device import choose_device
from vcnef.evaluation.tables import number
from vcnef.suggest import suggestion
from vcnef.training import Stopped

RESULTS = Path(__file__).parent / "results" / "accuracy"
ABLATIONS = Path(__file__).parent / "ablations.yaml"
DIRTY = "dirty tree"
"""In the label of what was made by code that no commit names."""
SMOKE = {"train.minutes": None, "train.epochs": 1, "train.batch": 4, "train.compile": False}
SMOKE |= {"data.times": None, "data.random_starts": 0.0}  # there are few frames
SMOKE_VCNEF = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}


def make_config(case: Case, asked: argparse.Namespace, preset: str, seed: int, changes: Sequence[str]) -> Config:
    """The preset with the budget of the case; an ablation's changes and `--set` have the last word."""
    name = preset if "/" in preset or preset.endswith(".yaml") else f"{case.equation}/{preset}"
    by_steps = {"minutes": None, "epochs": asked.epochs}
    budget = by_steps if asked.epochs else {"minutes": asked.minutes or case.minutes}
    config = Config.load(name).override({"train": {"seed": seed, **budget}})
    if asked.smoke:
        small = {f"model.options.{key}": value for key, value in SMOKE_VCNEF.items()}
        config = config.override(SMOKE | (small if config.model.name == "vcnef" else {}))
        config = config.override({"data.passes": min(config.data.passes, 1)})
    return config.override(changes).override(asked.settings)


def make_plans(case: Case, asked: argparse.Namespace) -> Iterator[Plan]:
    """Every preset, seed and change that is asked for, but for those that `--resume` finds finished."""
    source = describe_source()
    # Numbers of a smoke test mean nothing anyway.
    check_source(source, dirty=asked.dirty or asked.smoke)
    for preset, seed, (label, changes) in product(asked.preset, asked.seed, find_changes(case, asked).items()):
        config = make_config(case, asked, preset, seed, changes)
        plain_label = label
        if asked.dirty and source["changed"] is not False:
            label = ", ".join(filter(None, (label, DIRTY)))
        path = result_path(asked.out, case.name, preset, label, seed)
        if path.exists() and not asked.resume:
            raise ValueError(f"{path} exists already. Give another --seed, --label or --out, or remove it.")
        finished = json.loads(path.read_text()) if path.exists() else None
        if finished and is_finished(finished):
            check_finished(path, finished, config, dirty=asked.dirty or asked.smoke)
            continue
        about = {
            "case": case.name,
            "preset": Path(preset).stem,
            "label": label,
            "ablation": asked.ablate is not None,
            "seed": seed,
            "smoke": asked.smoke,
            "command": spell_command(asked, preset, seed, plain_label),
            "date": date.today().isoformat(),
        }
        yield Plan(config, path, about)


def check_finished(path: Path, found: Mapping[str, Any], config: Config, *, dirty: bool) -> None:
    """Whether a result that is there is what would be made: an older one of that name must not stay unnoticed."""
    different = [
        key
        for section, values in config.to_dict().items()
        for key, value in values.items()
        if found["config"].get(section, {}).get(key, value) != value
    ]
    why = f"other settings ({', '.join(different)})" if different else ""
    if found["source"]["changed"] and not dirty:
        why = "code that no commit names"
    if why:
        raise ValueError(f"{path} is finished, but of {why}. Remove it to repeat it, or give another --label.")


def find_changes(case: Case, asked: argparse.Namespace) -> dict[str, list[str]]:
    """Label -> settings: those of the ablations, or just the label that is given."""
    if asked.ablate is None:
        return {asked.label: []}
    known = yaml.safe_load(ABLATIONS.read_text(encoding="utf-8"))
    if case.name not in known:
        raise ValueError(f"There are no ablations of {case.name!r}. {suggestion(case.name, known)}")
    for label in asked.ablate:
        if label not in known[case.name]:
            raise ValueError(f"{case.name} has no ablation {label!r}. {suggestion(label, known[case.name])}")
    return {label: each for label, each in known[case.name].items() if not asked.ablate or label in asked.ablate}


def result_path(folder: Path, case: str, preset: str, label: str, seed: int) -> Path:
    words = [case, Path(preset).stem, *"".join(c if c.isalnum() else " " for c in label).split(), f"seed{seed}"]
    return folder / f"{'_'.join(words)}.json"


def spell_command(asked: argparse.Namespace, preset: str, seed: int, label: str) -> str:
    """The command that gives the same numbers; where they were written does not belong to it."""
    kind = "label" if asked.ablate is None else "ablate"
    given = {"preset": preset, "seed": seed or None, "minutes": asked.minutes, "epochs": asked.epochs}
    given |= {"samples": asked.samples, "generation": asked.generation, kind: label or None}
    options = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
    settings = ["--set", *asked.settings] if asked.settings else []
    flags = [f"--{name}" for name in ("smoke", "dirty") if getattr(asked, name)]
    return shlex.join(["python", "benchmarks/accuracy.py", asked.case, *options, *settings, *flags])


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _parse(arguments)
    try:
        case = read_case(asked.case)
        changes = {"samples": asked.samples, "generation": asked.generation}
        case = replace(case.shrunk() if asked.smoke else case, **{k: v for k, v in changes.items() if v is not None})
        # All of them first: what is wrong with the last should be said before the first begins.
        plans = list(make_plans(case, asked))
        data = CaseData(case, choose_device(asked.device), asked.cache)
        for plan in plans:
            folder = asked.keep / plan.path.stem if asked.keep else None
            show(plan.path, run(plan, data, folder, resume=asked.resume))
    except (ValueError, OSError, Stopped) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


def show(path: Path, found: Mapping[str, Any]) -> None:
    for each in found["evaluations"]:
        overall, values = each["result"]["overall"], ", ".join(f"{k}={v:g}" for k, v in each["params"].items())
        kind = "seen" if each["seen"] else "unseen"
        nrmse, joint = (
            number(overall[name] if overall[name] is not None else nan) for name in ("nrmse", "relative_l2")
        )
        print(f"{values} ({kind}): nRMSE {nrmse}, joint relative L2 {joint}")
    print(f"Wrote {path}.", flush=True)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", help="a case of benchmarks/accuracy.yaml")
    parser.add_argument(
        "--preset", nargs="+", default=["vcnef"], help="of the case's equation, or equation/name, or a YAML file"
    )
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="of weights and batches; data have their own")
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--minutes", type=float, help="training time; by default the case's")
    budget.add_argument("--epochs", type=int, help="in place of minutes")
    parser.add_argument("--set", dest="settings", action="extend", nargs="+", default=[], metavar="key=value")
    difference = parser.add_mutually_exclusive_group()
    difference.add_argument("--label", default="", help="what is different from the preset")
    difference.add_argument("--ablate", nargs="*", metavar="LABEL", help="ingredients to change; by default all")
    parser.add_argument("--samples", type=int, help="trajectories of each parameter value")
    parser.add_argument("--generation", help="of the data: documented or 2022")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the JSON")
    parser.add_argument("--keep", type=Path, help="folder for the runs, which are thrown away otherwise")
    parser.add_argument("--cache", type=Path, help="folder for generated data; empty it when solvers have changed")
    parser.add_argument("--resume", action="store_true", help="go on with what is in --keep and --out")
    parser.add_argument("--device")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--dirty", action="store_true", help="also with code that no commit names; the label says so")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
