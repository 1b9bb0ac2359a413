"""Train and judge the rows of a table of the paper, every model in the same minutes.

    python benchmarks/tables.py TABLE [--rows LABEL ...] [options of benchmarks/accuracy.py]

`benchmarks/tables.yaml` has the tables. Data are made once; each row is a JSON as `benchmarks/accuracy.py` writes them,
with the command that repeats it alone. With --keep and --resume an interrupted table goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import accuracy
from accuracy_cases import CaseData, read_case
from accuracy_run import Plan, run
from vcnef.device import choose_device
from vcnef.suggest import suggestion
from vcnef.training import Stopped

TABLES = Path(__file__).parent / "tables.yaml"
SIZES = ("batch=", "epochs=", "data.times=", "precision=", "validate_every=", "save_every=", "data.passes=")
"""Settings that say how large a run is."""


def read_tables() -> dict[str, Any]:
    """The tables by name, with settings of settings as one list."""
    tables = yaml.safe_load(TABLES.read_text(encoding="utf-8"))
    for table in tables.values():
        for row in table["rows"].values():
            row["set"] = _flat(row.get("set", []))
    return tables


def make_plans(name: str, rows: Sequence[str] | None, others: Sequence[str]) -> tuple[list[Plan], argparse.Namespace]:
    """A run for each row and seed of a table, and what else was asked; all are checked before any begins."""
    tables = read_tables()
    if name not in tables:
        raise ValueError(f"There is no table {name!r}. {suggestion(name, tables)}")
    table = tables[name]
    for label in rows or ():
        if label not in table["rows"]:
            raise ValueError(f"{name} has no row {label!r}. {suggestion(label, table['rows'])}")
    asked = accuracy._parse([table["case"], *others])
    case = read_case(table["case"])
    plans: list[Plan] = []
    for label, row in table["rows"].items():
        if not rows or label in rows:
            plans += accuracy.make_plans(case, _asked_of(row, label, table["minutes"], asked))
    return plans, asked


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", help="a table of benchmarks/tables.yaml")
    parser.add_argument("--rows", nargs="+", metavar="LABEL", help="by default all")
    own, others = parser.parse_known_args(arguments)
    try:
        plans, asked = make_plans(own.table, own.rows, others)
        case = read_case(asked.case)
        data = CaseData(case.shrunk() if asked.smoke else case, choose_device(asked.device), asked.cache)
        for plan in plans:
            folder = asked.keep / plan.path.stem if asked.keep else None
            accuracy.show(plan.path, run(plan, data, folder, resume=asked.resume))
    except (ValueError, OSError, Stopped) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


def _asked_of(row: Mapping[str, Any], label: str, minutes: float, asked: argparse.Namespace) -> argparse.Namespace:
    """What `accuracy.py` would be asked for this row; settings from the command line have the last word."""
    given = vars(asked) | {"preset": [row["preset"]], "settings": [*row["set"], *asked.settings]}
    given["label"] = ", ".join(filter(None, (label.removeprefix(row["preset"]).lstrip(", "), asked.label)))
    if not asked.epochs:
        given["minutes"] = asked.minutes or minutes
    if asked.smoke:
        # Settings of a row must not undo the tiny sizes of a smoke test.
        given["settings"] = [each for each in given["settings"] if not each.startswith(SIZES)]
    return argparse.Namespace(**given)


def _flat(settings: Sequence[Any]) -> list[str]:
    """YAML's anchors put lists into lists."""
    flat: list[str] = []
    for each in settings:
        flat += _flat(each) if isinstance(each, list) else [each]
    return flat


if __name__ == "__main__":
    main()
