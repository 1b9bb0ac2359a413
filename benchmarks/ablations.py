"""What each ingredient of a recipe is worth: the preset, and the preset with one thing changed, for equally many steps.

    python benchmarks/ablations.py CASE [--epochs 60] [--together 4] [--only LABEL ...] [--set key=value ...] ...

`benchmarks/ablations.yaml` has the changes. Each is one run of `benchmarks/accuracy.py`, which writes its JSON; other
options go there. Steps are the budget, not minutes: runs may then share a GPU, `--together` at a time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from vcnef.suggest import suggestion

HERE = Path(__file__).parent
CHANGES = HERE / "ablations.yaml"


def commands(case: str, epochs: int, only: list[str] | None, others: list[str]) -> dict[str, list[str]]:
    """Label -> the command that trains and judges it."""
    known = yaml.safe_load(CHANGES.read_text(encoding="utf-8"))
    if case not in known:
        raise ValueError(f"There are no ablations of {case!r}. {suggestion(case, known)}")
    for label in only or ():
        if label not in known[case]:
            raise ValueError(f"{case} has no ablation {label!r}. {suggestion(label, known[case])}")
    budget = [f"epochs={epochs}", "minutes=null"]
    start = [sys.executable, str(HERE / "accuracy.py"), case, "--preset", "vcnef_plus"]
    return {
        label: [*start, "--label", label, *others, "--set", *budget, *settings]
        for label, settings in known[case].items()
        if only is None or label in only
    }


def run(label: str, command: list[str]) -> bool:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()[-2:]
    print(f"{label}: {' '.join(last)}", flush=True)
    return done.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", help="a case of benchmarks/ablations.yaml")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--together", type=int, default=1, help="runs side by side")
    parser.add_argument("--only", nargs="+", metavar="LABEL")
    asked, others = parser.parse_known_args()
    try:
        chosen = commands(asked.case, asked.epochs, asked.only, others)
    except ValueError as error:
        sys.exit(str(error))
    with ThreadPoolExecutor(asked.together) as pool:
        succeeded = list(pool.map(run, *zip(*chosen.items(), strict=True)))
    sys.exit(0 if all(succeeded) else 1)


if __name__ == "__main__":
    main()
