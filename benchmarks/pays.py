"""When the packaged models pay: each beside the classical solver at equal error, both at their best settings.

    python benchmarks/pays.py [--cases NAME ...] [--device D] [--processor]
                                [--out benchmarks/results/break_even] [--dirty]
    python benchmarks/pays.py --cards

States are drawn anew, with a seed that no training saw, and solved at the points of the training data. `vcnef.evaluate`
with `break_even=True` does the rest; a JSON for each case has its numbers. `docs/when-it-pays.md` is written from them,
and with --cards what the cards of the models say of it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch

import accuracy_tables
import vcnef
import vcnef.timing
from accuracy_run import check_source, describe_source, write
from vcnef.device import choose_device
from vcnef.evaluation.cost import device_name
from vcnef.packaged import CARD, list_packaged
from vcnef.packaged import FOLDER as PACKAGED
from vcnef.spelling import spell_error, spell_seconds, spell_solves, spell_speed_up
from vcnef.whole import write_whole

RESULTS = Path(__file__).parent / "results" / "break_even"
SEED = 7
HEADING, LIMITS = "## Does it pay?", "\n## Limits"
OFFSET = {"constant_offsets": True}
CASES: dict[str, dict[str, Any]] = {
    "advection_1": {"model": "advection", "params": {"beta": 1.0}, "samples": 32},
    "burgers_0.004": {"model": "burgers", "params": {"nu": 0.004}, "samples": 32, "initial": OFFSET},
    "burgers_0.04": {"model": "burgers", "params": {"nu": 0.04}, "samples": 32, "initial": OFFSET},
    "burgers_0.4": {"model": "burgers", "params": {"nu": 0.4}, "samples": 32, "initial": OFFSET},
    "cns1d_0.01": {"model": "cns1d", "params": {"eta": 0.01, "zeta": 0.01}, "samples": 16},
    "cns1d_1e-8": {"model": "cns1d", "params": {"eta": 1e-8, "zeta": 1e-8}, "samples": 16},
    "cns2d_0.01": {"model": "cns2d", "params": {"eta": 0.01, "zeta": 0.01}, "samples": 4, "initial": {"mach": 0.1}},
}


def measure(case: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """What `evaluate` finds on fresh states of a case."""
    surrogate = vcnef.load(case["model"]).to(device)
    data = vcnef.generate(
        surrogate.problem.name, samples=case["samples"], params=case["params"], seed=SEED,
        device=device, **case.get("initial", {}),
    )  # fmt: skip
    found = vcnef.evaluate(surrogate, data, split="all", device=device, break_even=True, solver=False)
    record = found.to_dict()
    kept = ("samples", "device", "break_even", "notes")
    return {name: record[name] for name in kept} | {"nrmse": found.result.value("nrmse")}


def table(folder: Path | None = None) -> accuracy_tables.Table:
    """What has been measured, for `docs/when-it-pays.md`."""
    titles = ("model", "device", "nRMSE", "time", "solver, same error", "speed", "invested", "pays after")
    rows = []
    for path in sorted((folder or RESULTS).glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        values = ", ".join(f"{name} = {value:g}" for name, value in found["params"].items())
        rows.append((f"`{found['model']}`, {values}", found["device"], spell_error(found["nrmse"]), *_cells(found)))
    return titles, rows


def card_section(model: str, folder: Path | None = None) -> str:
    """What the card of a packaged model says of it; empty where nothing has been measured."""
    titles, rows = table(folder)
    own = [(f"at {row[0].split(', ', 1)[1]}", *row[1:]) for row in rows if row[0].startswith(f"`{model}`")]
    if not own:
        return ""
    lines = [f"| {' | '.join(cells)} |" for cells in (("value", *titles[1:]), ("---",) * len(titles), *own)]
    said = (
        "Beside the classical solver at equal error, on fresh states, both with the settings that make them fastest.\n"
        "Invested are training on an H200 and solving its trajectories on the device of the row. "
        "docs/when-it-pays.md has the\ndefinitions."
    )
    return "\n".join((HEADING, "", said, "", *lines))


def write_cards() -> None:
    """Put that section before the limits of every card, in place of an older one."""
    for model in list_packaged():
        path = PACKAGED / model / CARD
        text = path.read_text(encoding="utf-8")
        before, limits = text.split(LIMITS)
        section = card_section(model)
        kept = [before.split(HEADING)[0].rstrip(), *filter(None, [section]), LIMITS.strip() + limits]
        write_whole(path, "\n\n".join(kept).encode())


def _cells(found: dict[str, Any]) -> tuple[str, ...]:
    paid = found["break_even"]
    if paid is None:
        return ("–",) * 5
    at_most = paid["at_most"]
    solver = f"{'at most ' * at_most}{spell_seconds(paid['solver_seconds'])}"
    solves = spell_solves(paid["solves"], never=paid["never"], at_least=at_most)
    invested = "–" if paid["invested"] is None else spell_seconds(paid["invested"])
    return spell_seconds(paid["seconds"]), solver, spell_speed_up(paid["speed_up"], at_most=at_most), invested, solves


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), metavar="NAME")
    parser.add_argument("--cards", action="store_true", help="write the cards of what has been measured, and no more")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--processor", action="store_true", help="one thread, and seconds of the processor: for a shared machine"
    )
    parser.add_argument("--dirty", action="store_true", help="also with code that no commit names; the file says so")
    asked = parser.parse_args(arguments)
    if asked.cards:
        write_cards()
        return
    device, source = choose_device(asked.device), describe_source()
    try:
        check_source(source, dirty=asked.dirty)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    if asked.processor:
        torch.set_num_threads(1)
        vcnef.timing.clock = time.process_time
    for name in asked.cases:
        flags = [f"--{flag}" for flag in ("processor", "dirty") if getattr(asked, flag)]
        words = ["python", "benchmarks/pays.py", "--cases", name, "--device", device.type, *flags]
        about = {"case": name, **CASES[name], "seed": SEED, "command": shlex.join(words), "source": source}
        about |= {"torch": torch.__version__, "date": date.today().isoformat()}
        path = asked.out / f"{name}_{'cpu' if device.type == 'cpu' else device_name(device).replace(' ', '_')}.json"
        found = about | measure(CASES[name], device)
        write(path, found)
        paid = found["break_even"]
        print(name, found["nrmse"], paid and (paid["seconds"], paid["solver_seconds"], paid["speed_up"]), flush=True)


if __name__ == "__main__":
    main()
