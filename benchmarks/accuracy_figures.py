"""Violins of what `benchmarks/accuracy.py` has measured at parameters seen and unseen, for `docs/results.md`.

    python benchmarks/accuracy_figures.py

Each model of many values has a picture, `docs/images/<case>.png`.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from accuracy_tables import Record, is_single, read_results
from vcnef.plots import violins

IMAGES = Path(__file__).parent.parent / "docs" / "images"


def draw(record: Record) -> Figure:
    """Errors of all test trajectories, value by value."""
    judged = sorted(record["evaluations"], key=lambda each: list(each["params"].values()))
    errors = {next(iter(each["params"].values())): each["nrmse"] for each in judged}
    unseen = [value for value, each in zip(errors, judged, strict=True) if not each["seen"]]
    return violins({record["preset"]: errors}, unseen=unseen, parameter=" = ".join(judged[0]["params"]), log=True)


def main(folder: Path = IMAGES) -> None:
    for record in read_results():
        if not is_single(record):
            path = folder / f"{record['case']}.png"
            draw(record).savefig(path, dpi=110)
            print(f"Wrote {path}.")


if __name__ == "__main__":
    main()
