"""Violins of what `benchmarks/accuracy.py` has measured at parameters seen and unseen, for `docs/results.md`.

    python benchmarks/accuracy_figures.py

Each model of many values has a picture, `docs/images/<case>.png`; where a case has several, they are named as their
results. Runs that differ in their seed alone make one picture, of the errors of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from accuracy_tables import Record, alike, is_single, read_results
from vcnef.plots import violins

IMAGES = Path(__file__).parent.parent / "docs" / "images"


def draw(runs: Sequence[Record]) -> Figure:
    """Errors of all test trajectories of all runs, value by value."""
    judged = sorted(
        (each for run in runs for each in run["evaluations"]), key=lambda each: list(each["params"].values())
    )
    errors: dict[float, list[float]] = {}
    for each in judged:
        errors.setdefault(value_of(each), []).extend(known(each))
    unseen = {value_of(each) for each in judged if not each["seen"]}
    return violins({runs[0]["preset"]: errors}, unseen=unseen, parameter=" = ".join(judged[0]["params"]), log=True)


def known(judged: Record) -> list[float | None]:
    """Errors of the trajectories that have one; where their mean is finite, the others are at rest."""
    defined = judged["result"]["overall"]["nrmse"] is not None
    return [each for each in judged["nrmse"] if not (defined and each is None)]


def value_of(judged: Record) -> float:
    """Parameters of a case are equal to each other."""
    return next(iter(judged["params"].values()))


def name_pictures(records: Sequence[Record]) -> Iterator[tuple[str, list[Record]]]:
    """What is drawn together, each with a name of its own."""
    groups = alike(each for each in records if not is_single(each))
    pictures = Counter(runs[0]["case"] for runs in groups)
    for runs in groups:
        case, preset, label = (runs[0][key] for key in ("case", "preset", "label"))
        words = "".join(c if c.isalnum() else " " for c in label).split()
        # Runs of another budget have the same words, but never the same seeds.
        seeds = "_".join(str(each["seed"]) for each in runs)
        yield case if pictures[case] == 1 else "_".join([case, preset, *words, f"seed{seeds}"]), runs


def main(folder: Path = IMAGES) -> None:
    for name, runs in name_pictures(read_results()):
        path = folder / f"{name}.png"
        draw(runs).savefig(path, dpi=110)
        print(f"Wrote {path}.")


if __name__ == "__main__":
    main()
