"""`vcnef report`: what is known of a run, or of several side by side, on one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcnef.cli._options import DATA_FILES, Batch, Device, Equation, Layout, Params, Space, Split, Time

if TYPE_CHECKING:
    from vcnef.report import RunRecord


def report(
    words: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Run folders or packaged models' names; several are compared."),
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="Judge the runs on these files first, and draw what the models do."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The page; by default report.html in the run folder, or here for several.")
    ] = None,
    space: Space = None,
    time: Time = None,
    params: Params = None,
    equation: Equation = None,
    layout: Layout = None,
    split: Split = None,
    batch: Batch = 64,
    device: Device = None,
    solver: Annotated[
        bool, typer.Option(help="Time the classical solver beside the models, on coarser grids too.")
    ] = True,
    costs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show this record of `vcnef benchmark speed --json FILE` too.")
    ] = None,
) -> None:
    """Write a page about a run, or a comparison of runs: vcnef report runs/a runs/b --data FILE --out report.html

    Numbers, curves, pictures, environment and commands in one HTML file that needs no network. Without --data it
    shows what the run folders hold; with it the models are judged first, as `vcnef evaluate` does.
    """
    from vcnef.checks import check_file
    from vcnef.cli._outputs import check_apart, check_place
    from vcnef.cli._settings import known_sides, parse_counts, parse_settings
    from vcnef.cli._surrogates import plain_warnings, run_folder
    from vcnef.packaged import is_packaged, locate

    # `--data a.hdf5 b.hdf5` leaves the second file among the words.
    further = [word for word in words if word.suffix in DATA_FILES and not word.is_dir()]
    files, runs = [*(data or []), *further], list(dict.fromkeys(word for word in words if word not in further))
    if not runs:
        raise ValueError("There is no run to report on; name run folders, e.g. `vcnef report runs/a`.")
    finer = {"space": parse_counts(space, "--space"), "time": parse_counts(time, "--time")}
    if not files and (any(finer.values()) or split is not None):
        raise ValueError(
            "--space, --time and --split need data to judge the runs on; give files, e.g. --data burgers.hdf5."
        )
    # Whatever can be refused is refused before a model is judged; a mistyped path before torch is imported.
    folders = [locate(run) for run in runs]
    for file in files:
        check_file(file)

    from vcnef.cli._reports import commands_of, name_runs, read_benchmark, read_record, spell_command, write_page
    from vcnef.data import open as open_data
    from vcnef.report.run_record import dig

    _check_data(folders, files)
    records = [read_record(folder, name) for folder, name in zip(folders, name_runs(runs), strict=True)]
    alone = len(runs) == 1 and not is_packaged(folders[0])
    page = out or (run_folder(folders[0]) / "report.html" if alone else Path("report.html"))
    check_place(page, "--out")
    check_apart(page, "--out", "page", data=files, costs=[costs] if costs else [])
    benchmark = read_benchmark(costs) if costs else None
    if files:
        told = {"params": parse_settings(params, "--param") if params else None, "equation": equation, "layout": layout}
        sides = known_sides(*(dig(each.model, "problem", "periodic") for each in records))
        with plain_warnings():
            opened = open_data(files, **told, periodic=sides, stream=True)
        asked = [{"split": split} | _finer(each, finer, files) for each in records]
        judged = list(zip(folders, records, asked, strict=True))
        for run, record, question in judged:
            _check_fit(run, record.name, opened, question)
        judging = {"files": files, "batch": batch, "device": device, "solver": solver}
        records = [_judge(run, record, opened, **question, **judging) for run, record, question in judged]
    given = {
        "--data": files, "--param": params or (), "--equation": [equation], "--layout": [layout],
        "--space": [space], "--time": [time], "--device": [device], "--split": [split], "--costs": [costs],
        "--out": [out],
    }  # fmt: skip
    own = spell_command("report", *runs, **given) + ("" if solver else " --no-solver")
    lines = [line for each in records for line in commands_of(each, params or (), equation, layout)]
    write_page(page, records, [*lines, own], benchmark)


def _check_data(folders: list[Path], files: list[Path]) -> None:
    """Nothing is written into the folder of a packaged model, so it holds no evaluation."""
    from vcnef.packaged import is_packaged

    packaged = [folder.name for folder in folders if is_packaged(folder)]
    if packaged and not files:
        raise ValueError(
            f"{packaged[0]} is a packaged model, whose folder holds no evaluation to report on. "
            "Give data to judge it on, e.g. --data burgers.hdf5."
        )


def _check_fit(run: Path, name: str, data: Any, question: dict[str, Any]) -> None:
    """Refuse what `evaluate` would, by the name of the run."""
    from vcnef.cli._surrogates import load_surrogate
    from vcnef.evaluation.evaluate import prepare

    surrogate = load_surrogate(run, "cpu")
    try:
        prepare(surrogate, data, **question)
    except ValueError as error:
        raise ValueError(f"{name} cannot be judged on these data. {error}") from None


def _judge(run: Path, record: RunRecord, data: Any, *, files: list[Path], device: str | None, **options) -> RunRecord:
    """Return the record with a new evaluation, which is saved as metrics.json too, and with pictures."""
    from vcnef.cli._figures import pictures
    from vcnef.cli._reports import illustrate, solver_line
    from vcnef.cli._surrogates import load_surrogate, plain_warnings
    from vcnef.cli.evaluate import save
    from vcnef.evaluation import evaluate
    from vcnef.evaluation.held_out import choose_judged
    from vcnef.packaged import is_packaged
    from vcnef.progress import progress
    from vcnef.report.drawings import png

    typer.echo(f"Judging {record.name}.")
    surrogate = load_surrogate(run, device)
    with plain_warnings() as said, progress() as tell:
        found = evaluate(surrogate, data, **options, progress=tell)
    judged = choose_judged(surrogate, data, found.split).data
    coarser = {"solver": solver_line(surrogate, judged)} if options["solver"] else {}
    metrics = {"data": [str(each) for each in files], **found.to_dict(), **coarser}
    if not is_packaged(run):
        save(Path(record.folder) / "metrics.json", metrics)
    drawn = ((name, png(figure)) for name, figure in pictures(surrogate, found, judged))
    return illustrate(replace(record, metrics=metrics, warnings=tuple(said)), drawn)


def _finer(record: RunRecord, given: dict[str, tuple[int, ...]], files: list[Path]) -> dict[str, tuple[int, ...]]:
    """Return the super-resolution that is asked for, else that of an earlier evaluation on the same files."""
    from vcnef.report.drawings import size

    same = record.found("data") == [str(each) for each in files]
    before = {axis: tuple(size(each, axis) for each in record.results(axis)) if same else () for axis in given}
    return {axis: counts or before[axis] for axis, counts in given.items()}
