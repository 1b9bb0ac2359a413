"""`vcnef train`: from data files and a preset to a run folder."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcnef.cli._options import DATA_FILES, Equation, Layout, Params, Periodic, Walls

if TYPE_CHECKING:
    from vcnef.config import Config
    from vcnef.training.fit import Run


def train(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PRESET",
            show_default=False,
            help="A preset's name (see `vcnef presets`) or a YAML file; by default one that suits the data.",
        ),
    ] = None,
    data: Annotated[
        list[Path] | None, typer.Option(metavar="FILE...", help="One or more files of trajectories.")
    ] = None,
    valid: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Choose the weights on this file; by default on a twentieth of the data."),
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Leave nothing of the data for the test, which is this file."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to write, e.g. runs/x.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A value of the preset: train.epochs=50, or epochs=50 where that is unambiguous."),
    ] = None,
    params: Params = None,
    equation: Equation = None,
    periodic: Periodic = None,
    walls: Walls = None,
    layout: Layout = None,
    devices: Annotated[str, typer.Option(help="Processes per node, one device each; auto, or cpu.")] = "auto",
    nodes: Annotated[int, typer.Option(help="Machines that train together.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the interrupted run in --out.")] = False,
) -> None:
    """Train a model on files of trajectories: vcnef train burgers/vcnef --data FILE... --out runs/x

    Of each file a tenth is left for `vcnef evaluate`, and a twentieth chooses the weights that are kept: drawn by a
    fixed seed, but the first ones of the benchmark's files and of what `vcnef generate` made.
    A killed run is continued with --resume. Under torchrun or SLURM several processes share one run.
    """
    from vcnef.checks import check_file
    from vcnef.presets import find_config

    # A mistyped name or path is answered before torch is imported.
    preset, files = _sort(words or [], data or [], alone=bool(valid or test))
    if preset:
        find_config(preset)
    if out is None:
        raise ValueError("There is no folder for the run; name one, e.g. --out runs/x.")
    for file in (*files, *(valid or []), *(test or [])):
        check_file(file)

    from vcnef import workflow
    from vcnef.cli._settings import parse_settings, read_sides
    from vcnef.cli._surrogates import plain_warnings, spoken_warnings
    from vcnef.config import Config
    from vcnef.data import open as open_data
    from vcnef.own_data import asked_window, choose_preset, suit

    # Whatever can be refused without reading data is refused first.
    workflow.check_folder(out, resume=resume)
    given = {
        "params": parse_settings(params, "--param") if params else None,
        "periodic": read_sides(periodic, walls),
        "equation": equation,
        "layout": layout,
    }
    chosen = Config.load(preset) if preset else None
    if chosen is None:
        with warnings.catch_warnings():
            # Whatever is to be said of the data is said where they are read, below.
            warnings.simplefilter("ignore")
            streamed = open_data(files, **given, stream=True)
        preset = choose_preset(streamed, asked_window(settings or []), _number(devices))
        chosen = suit(preset, streamed)
    config = chosen.override(settings or [])
    with plain_warnings():
        trajectories = open_data(files, **config.view(), **given)
        sets = {}
        for name, paths in (("valid", valid), ("test", test)):
            if paths:
                sets[name] = open_data(paths, **config.view(), **given)
    with spoken_warnings():
        run = workflow.train(
            config, trajectories, **sets, out=out, resume=resume, devices=_number(devices), nodes=nodes, preset=preset
        )
    if workflow.is_first_process():
        _summarise(run, config, test or [])


def _sort(words: list[str], data: list[Path], *, alone: bool) -> tuple[str | None, list[Path]]:
    """Return the preset and the files: `--data a.hdf5 b.hdf5` leaves the second file among the words.

    Beside other files, with `alone`, nobody could tell whose it is.
    """
    further = [Path(word) for word in words if Path(word).suffix in DATA_FILES]
    if further and alone:
        raise ValueError(
            f"{further[0]} may be meant for --data, --valid or --test. Give each file an option of its own, "
            "e.g. --data a.hdf5 --data b.hdf5 --valid c.hdf5."
        )
    files = data + further
    names = [word for word in words if Path(word).suffix not in DATA_FILES]
    if len(names) > 1:
        raise ValueError(f"Expected one preset, got {', '.join(names)}. Data files end in {', '.join(DATA_FILES)}.")
    if not files:
        raise ValueError("There are no data to train on; name one or more files, e.g. --data data/*.hdf5.")
    return (names[0] if names else None), files


def _number(devices: str) -> int | str:
    if devices.isdigit() and int(devices):
        return int(devices)
    if devices not in ("auto", "cpu"):
        raise ValueError(f"--devices is {devices}; expected a number of devices, auto or cpu.")
    return devices


def _summarise(run: Run, config: Config, test: list[Path]) -> None:
    from math import isfinite
    from shlex import quote

    from vcnef.cli._tables import count_weights

    surrogate, folder, named = run.surrogate, Path(run.folder or "."), quote(str(run.folder))
    weights = count_weights(surrogate.model)
    typer.echo(f"{config.model.name} of {weights} weights, trained on {surrogate.provenance['train']}")
    if "window" in surrogate.provenance:
        typer.echo(f"It answers in windows of {surrogate.window:.4g}: {surrogate.provenance['window']['why']}")
    if run.history:
        last = run.history[-1]
        score = f", best nRMSE on valid {run.best:.4g}" if isfinite(run.best) else ""
        typer.echo(f"{last['epoch']} epochs in {last['seconds']:.1f} s, last loss {last['loss']:.4g}{score}")
    typer.echo(f"{folder / 'model'}: the model, for vcnef.load({str(folder)!r}) and `vcnef predict {named}`")
    typer.echo(f"{folder / 'config.yaml'}, {folder / 'log.jsonl'}: what was run, and how it went")
    files = " ".join(quote(str(path)) for path in test) or "FILE..."
    typer.echo(f"Judge it on test data with `vcnef evaluate {named} --data {files}`")
