"""`vcnef evaluate`: how good a trained model is."""

from __future__ import annotations

import json
import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcnef.cli._options import Batch, Device, Equation, Layout, Params, Space, Split, Time

if TYPE_CHECKING:
    from vcnef.evaluation import Evaluation


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder, the model folder inside, or a packaged model's name.")],
    more: Annotated[list[Path] | None, typer.Argument(help="Further data files.", metavar="FILE")] = None,
    data: Annotated[
        list[Path] | None, typer.Option(help="Data at full resolution; several files make one set.")
    ] = None,
    space: Space = None,
    time: Time = None,
    horizon: Annotated[
        float | None, typer.Option(help="Go on to so many horizons of training, as far as the data do.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Halve windows that differ from their two halves by more than this.")
    ] = None,
    params: Params = None,
    equation: Equation = None,
    layout: Layout = None,
    split: Split = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write all numbers to this file too.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Draw figures into this folder.")] = None,
    batch: Batch = 64,
    device: Device = None,
    solver: Annotated[bool, typer.Option(help="Time the classical solver beside the model.")] = True,
    break_even: Annotated[
        bool, typer.Option("--break-even", help="Time the solver at the model's error, on coarser grids.")
    ] = False,
) -> None:
    """Judge a trained model on what it has not seen: all metrics, super-resolution, parameter values, time and memory.

    Of data that it was trained on that is the test split, of others all.

    The numbers are printed and saved as metrics.json in the run folder; those of a packaged model only with --json.
    """
    from vcnef.checks import check_file
    from vcnef.cli._outputs import check_apart, check_place
    from vcnef.cli._settings import known_sides, parse_counts, parse_settings
    from vcnef.cli._surrogates import load_surrogate, plain_warnings, run_folder
    from vcnef.packaged import is_packaged, locate

    # A mistyped path is answered before torch is imported.
    files = [*(data or []), *(more or [])]
    if not files:
        raise ValueError(
            "There are no data to judge the model on; give files, e.g. --data burgers.hdf5. "
            "Those of a known equation can be made by `vcnef generate`."
        )
    finer = {"space": parse_counts(space, "--space"), "time": parse_counts(time, "--time"), "horizon": horizon}
    for path, option in ((json_path, "--json"), (figures and figures / "figure.png", "--figures")):
        if path is not None:
            check_place(path, option)
            check_apart(path, option, "numbers", data=files)
    folder = locate(run)
    for file in files:
        check_file(file)

    from vcnef.data import open as open_data
    from vcnef.evaluation import evaluate as judge
    from vcnef.progress import progress

    surrogate = load_surrogate(folder, device)
    # Only the rows of the split are ever read.
    told = {"params": parse_settings(params or [], "--param"), "equation": equation, "layout": layout}
    with plain_warnings():
        opened = open_data(files, **told, periodic=known_sides(surrogate.problem.periodic), stream=True)
    begun = clock.monotonic()
    with plain_warnings(), progress() as report:
        found = judge(
            surrogate,
            opened,
            **finer,
            tolerance=tolerance,
            split=split,
            batch=batch,
            solver=solver,
            break_even=break_even,
            progress=report,
        )
    show(found)
    record = {"data": [str(each) for each in files], **found.to_dict()}
    if layout is not None:
        record["layout"] = layout
    if not is_packaged(folder):
        save(run_folder(folder) / "metrics.json", record)
    if json_path is not None:
        save(json_path, record)
    if figures is not None:
        from vcnef.cli._figures import draw

        count = len(draw(surrogate, found, opened, figures))
        typer.echo(f"Wrote {count} figures to {figures}.")
    typer.echo(f"Done in {clock.monotonic() - begun:.1f} s.")


def show(found: Evaluation) -> None:
    """Print tables with lines and colours on a terminal, plain text elsewhere."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        typer.echo(found.table() + "\n")
        return
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    for section in found.sections():
        # Apart from the table, whose title would be folded to its width.
        console.print(f"[bold]{escape(section.title)}[/bold]", highlight=False)
        table = Table(box=box.SIMPLE_HEAD)
        for index, name in enumerate(section.header):
            table.add_column(name, justify="right" if index else "left")
        for row in section.rows:
            table.add_row(*row)
        console.print(table)
    for note in found.notes:
        console.print(f"[yellow]Note:[/yellow] {escape(note)}")


def save(path: Path, record: dict[str, Any]) -> None:
    """Write the numbers of an evaluation, and say so."""
    from vcnef.whole import write_whole

    try:
        write_whole(path, (json.dumps(record, indent=2, allow_nan=False) + "\n").encode())
        typer.echo(f"Wrote {path}.")
    except OSError as error:
        # A model that may not be written to can be judged all the same.
        typer.echo(f"Warning: {error}", err=True)
