"""What a report is made of: the files of a run folder, and pictures of what its model does."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import typer

from vcnef.cli._settings import spell_sides
from vcnef.report import Picture, RunRecord, build_report
from vcnef.report.drawings import size
from vcnef.report.run_record import dig

TITLES = {
    "median": "Median trajectory",
    "worst": "Worst trajectory",
    "boxes_median": "Median trajectory at its last time",
    "boxes_worst": "Worst trajectory at its last time",
    "heat_map": "Relative error over space and time, median of test trajectories",
    "spectra": "Energy spectra, mean of test trajectories",
}
"""What a figure shows, by the beginning of its name."""
COST = {"model", "way", "steps", "seconds", "peak_memory"}
"""What a benchmark says of each case."""


def read_record(run: Path, name: str) -> RunRecord:
    """Return the record of a run folder, of the model folder inside or of a packaged model, as far as it goes."""
    from vcnef.cli._surrogates import load_surrogate, run_folder
    from vcnef.models.interface import number_of_weights
    from vcnef.packaged import is_packaged
    from vcnef.surrogate.folder import CONFIG, find
    from vcnef.training.checkpoint import LOG
    from vcnef.training.log import read_lines
    from vcnef.workflow import RUN_CONFIG

    folder = run_folder(run)
    begun = (folder / RUN_CONFIG).is_file() or (folder / LOG).is_file()
    try:
        place = find(run)
    except FileNotFoundError:
        # A run that was interrupted early has no model yet, but something to tell.
        if not begun:
            raise FileNotFoundError(
                f"{run} holds no run: there is neither a model nor a {RUN_CONFIG} or {LOG} in it. "
                "Give a folder that `vcnef train` wrote."
            ) from None
        place = None
    return RunRecord(
        name=name,
        folder=name if is_packaged(folder) else str(folder),
        model=json.loads((place / CONFIG).read_text()) if place else {},
        history=read_lines(folder / LOG),
        metrics=_read_metrics(folder / "metrics.json"),
        weights=number_of_weights(load_surrogate(run, "cpu").model) if place else None,
    )


def name_runs(runs: Sequence[Path]) -> list[str]:
    """Return the names of the folders; whole paths where two have the same."""
    from vcnef.cli._surrogates import run_folder

    folders = [run_folder(run) for run in runs]
    names = [folder.name or str(folder) for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def illustrate(record: RunRecord, drawn: Iterable[tuple[str, bytes]]) -> RunRecord:
    """Return the record with figures, PNG by the names that `_figures` gives them; the page draws its curves itself."""
    by_kind: dict[str, list[Picture]] = {kind: [] for kind in TITLES}
    for name, png in drawn:
        for kind, words in TITLES.items():
            if name.startswith(kind):
                channel = name.removeprefix(kind).lstrip("_")
                by_kind[kind].append(Picture(f"{words}, {channel}" if channel else words, png))
    spectra = tuple(by_kind.pop("spectra"))
    return replace(record, pictures=tuple(each for group in by_kind.values() for each in group), spectra=spectra)


def solver_line(surrogate: Any, judged: Any) -> list[dict[str, Any]]:
    """Return the classical solver on coarser grids, for the chart of accuracy and cost."""
    from dataclasses import asdict

    from vcnef.evaluation.fidelity import measure_fidelities
    from vcnef.evaluation.selections import as_trained

    selection, _ = as_trained(surrogate, judged)
    return [asdict(each) for each in measure_fidelities(judged, selection, surrogate.device)]


def read_benchmark(path: Path) -> dict[str, Any]:
    """Return what `vcnef benchmark speed --json` wrote."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}. Write it with `vcnef benchmark speed --json {path}`.")
    try:
        record = json.loads(path.read_text())
        whole = (
            record.get("table", "speed") == "speed"
            and record["results"]
            and all(each.keys() >= COST for each in record["results"])
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise ValueError(
            f"{path} is not what a benchmark of speed writes: expected results with {', '.join(sorted(COST))}. "
            f"Write it with `vcnef benchmark speed --json {path}`."
        )
    return record


def write_page(
    path: Path, records: Sequence[RunRecord], commands: Sequence[str], benchmark: dict[str, Any] | None = None
) -> None:
    """Write the report, complete or not at all."""
    from vcnef.whole import write_whole

    about = {"environment": describe_environment(), "benchmark": benchmark}
    content = build_report(records, commands=commands, **about).encode()
    write_whole(path, content)
    typer.echo(f"Wrote {path}, {len(content) / 2**20:.1f} MiB; open it in a browser.")


def commands_of(
    record: RunRecord, params: Iterable[str] = (), equation: str | None = None, layout: str | None = None
) -> list[str]:
    """Return the commands that train and judge a run again, with the files that the evaluation had."""
    folder = Path(record.folder)
    data = {"--data": record.found("data") or ["FILE"], "--param": params, "--equation": [equation]}
    data["--layout"] = [layout or record.found("layout")]
    lines = []
    if (folder / "config.yaml").is_file():
        # Of plain arrays only the command can say so.
        open_ends = spell_sides(dig(record.model, "problem", "periodic"))
        again = {**data, "--out": [f"{folder}-again"]}
        lines.append(spell_command("train", folder / "config.yaml", *open_ends, **again))
    if record.metrics:
        finer = {
            f"--{axis}": [",".join(str(size(each, axis)) for each in record.results(axis))]
            for axis in ("space", "time")
            if record.results(axis)
        }
        split = record.found("split")
        other = {"--split": [split]} if split in ("valid", "train", "all") else {}
        lines.append(spell_command("evaluate", folder, **data, **finer, **other))
    return lines


def spell_command(verb: str, *words: Any, **options: Iterable[Any]) -> str:
    """Return a command as one would type it; an option is repeated for each of its values, None is left out."""
    given = [(name, value) for name, values in options.items() for value in values if value is not None]
    return shlex.join(["vcnef", verb, *map(str, words), *(str(part) for pair in given for part in pair)])


def describe_environment() -> dict[str, str]:
    import torch

    from vcnef import __version__

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return {
        "vcnef": __version__,
        "torch": torch.__version__,
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, threads: {torch.get_num_threads()}",
        "GPU": gpu,
        "date": date.today().isoformat(),
    }


def _read_metrics(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text())
        record["result"]["scores"]["overall"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            f"{path} is not the record of an evaluation: it is damaged. Write it again with `vcnef evaluate`."
        ) from None
    return record
