"""The errors of answers that need no model, on the test states of the cases of `benchmarks/accuracy.py`.

    python benchmarks/trivial.py CASE ... [--samples N] [--device D] [--out benchmarks/results/trivial] [--dirty]

The initial state repeated, and its mean over the points, judged at the points and times of training on the first N test
trajectories of each value that training sees. A model that is no better has learnt nothing; `docs/results.md` shows
them beside the models.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import torch

from accuracy_cases import Case, by_value, read_case
from accuracy_run import check_source, describe_source, write
from vcnef.config import Config
from vcnef.device import choose_device
from vcnef.evaluation.baselines import Baselines
from vcnef.evaluation.cost import device_name
from vcnef.evaluation.selections import Selection

RESULTS = Path(__file__).parent / "results" / "trivial"


def measure(case: Case, device: torch.device) -> list[dict[str, Any]]:
    """nRMSE of each answer, for each value that is seen in training."""
    view = Config.load(f"{case.equation}/vcnef").view()
    found = []
    for values in by_value(case.params):
        data = case.generate_tests(values, device).view(**view)
        judge = Baselines(Selection(1, tuple(range(len(data.t)))), None)
        judge.update(data.u)
        found.append({"params": values, "samples": len(data), "nrmse": judge.errors()})
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--samples", type=int, help="test trajectories of each value; by default the case's")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--dirty", action="store_true", help="also with code that no commit names; the file says so")
    asked = parser.parse_args(arguments)
    device = choose_device(asked.device)
    try:
        source = describe_source()
        check_source(source, dirty=asked.dirty)
        for name in asked.cases:
            case = read_case(name)
            case = case if asked.samples is None else replace(case, samples=10 * asked.samples, fresh=0)
            options = [] if asked.samples is None else ["--samples", str(asked.samples)]
            words = ["python", "benchmarks/trivial.py", name, *options, *["--dirty"] * asked.dirty]
            about = {"case": name, "generation": case.generation, "command": shlex.join(words), "source": source}
            about |= {"device": device_name(device), "date": date.today().isoformat()}
            write(asked.out / f"{name}.json", about | {"values": measure(case, device)})
            print(json.dumps(json.loads((asked.out / f"{name}.json").read_text())["values"]), flush=True)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
