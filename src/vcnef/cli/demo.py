"""`vcnef demo`: the main job from end to end, small enough for a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from vcnef.config import Config
    from vcnef.evaluation import Evaluation
    from vcnef.training.fit import Run

WORLD: dict[str, Any] = {
    "samples": 1200,
    "params": {"nu": 0.01},
    "resolution": 256,
    "frames": 41,
    "horizon": 1.0,
    "seed": 0,
}
SPACE, TIME = (64, 128, 256), (21, 41)
"""Points and times: the models are trained with the first of each and asked for the others too."""


def demo(
    out: Annotated[Path, typer.Option(help="The folder for data, runs, figures and numbers.")] = Path("demo"),
    minutes: Annotated[float, typer.Option(help="Training time of each model.")] = 1.4,
    samples: Annotated[int, typer.Option(help="Trajectories to generate.")] = WORLD["samples"],
) -> None:
    """Generate a small Burgers world, train VCNeF and FNO on it for equal minutes, judge both, and draw what they do.

    Minutes on two CPU cores. Every number comes from trajectories that neither model has seen.
    """
    from shlex import quote

    from vcnef.config import Config

    # Whatever can be refused is refused before data are made.
    configs = {name: Config.load(f"demo/{name}").override({"minutes": minutes}) for name in ("vcnef", "fno")}
    for name in configs:
        _check_own(name, out / "runs" / name)
    data = _generate(out, samples)
    found = {}
    for name, config in configs.items():
        run = _train(config, data, out / "runs" / name)
        found[name] = (run, _evaluate(name, run, data, out / "runs" / name, out / "figures" / name))
    typer.echo(_comparison(found))
    _report(out, minutes, samples, found)
    typer.echo(f"Data in {data}, runs in {out / 'runs'}, figures in {out / 'figures'}.")
    run = str(out / "runs" / "vcnef")
    typer.echo(f"Next: `vcnef serve {quote(run)}`, `vcnef predict {quote(run)} --help`, or vcnef.load({run!r}).")


def _check_own(name: str, folder: Path) -> None:
    """Raise an error where the demo would replace runs that are not its own."""
    from vcnef import workflow
    from vcnef.config import Config

    if not (folder / workflow.RUN_CONFIG).is_file():
        workflow.check_folder(folder, resume=False)
        return
    try:
        workflow.check_same(folder, Config.load(f"demo/{name}"))
    except ValueError:
        raise FileExistsError(
            f"{folder} holds another run, which the demo would replace. Choose another --out."
        ) from None


def _generate(out: Path, samples: int) -> Path:
    from vcnef.data import generate
    from vcnef.progress import progress

    path = out / "data" / "1D_Burgers_Sols_Nu0.01.hdf5"
    typer.echo(f"1. Data: {samples} solutions of Burgers' equation, ν = 0.01, 256 cells.")
    with progress() as report:
        world = {**WORLD, "samples": samples}
        generate("burgers", **world, device="cpu", out=path, resume=True, progress=report)
    return path


def _train(config: Config, data: Path, folder: Path) -> Run:
    import shutil

    from vcnef import workflow
    from vcnef.data import open as open_data

    trajectories = open_data(data, **config.view())
    asked = f"{config.model.name} for {config.train.minutes:.2g} minutes"
    typer.echo(f"2. Training {asked} on {trajectories.split('train')}.")
    # A demo that is run again shows the same thing again.
    if (folder / workflow.RUN_CONFIG).is_file():
        shutil.rmtree(folder, ignore_errors=True)
    return workflow.train(config, trajectories, out=folder, devices="cpu")


def _evaluate(name: str, run: Run, data: Path, folder: Path, figures: Path) -> Evaluation:
    import json

    from vcnef.cli._figures import draw
    from vcnef.cli._reports import solver_line
    from vcnef.cli._surrogates import plain_warnings
    from vcnef.data import open as open_data
    from vcnef.evaluation import evaluate
    from vcnef.evaluation.held_out import choose_judged
    from vcnef.whole import write_whole

    typer.echo(f"3. Judging {name} on {SPACE} points and {TIME} times, and drawing.")
    fine = open_data(data)
    with plain_warnings():
        found = evaluate(run.surrogate, fine, space=SPACE, time=TIME)
    judged = choose_judged(run.surrogate, fine, found.split).data
    record = {"data": [str(data)], **found.to_dict(), "solver": solver_line(run.surrogate, judged)}
    write_whole(folder / "metrics.json", json.dumps(record, indent=2).encode())
    draw(run.surrogate, found, fine, figures)
    return found


def _report(out: Path, minutes: float, samples: int, found: dict[str, tuple[Run, Evaluation]]) -> None:
    """Write both models on one page, with the figures that are drawn already."""
    from vcnef.cli._reports import illustrate, read_record, spell_command, write_page

    records = []
    for name in found:
        drawn = sorted((out / "figures" / name).glob("*.png"))
        record = read_record(out / "runs" / name, name)
        records.append(illustrate(record, ((each.stem, each.read_bytes()) for each in drawn)))
    command = spell_command("demo", **{"--out": [out], "--minutes": [minutes], "--samples": [samples]})
    write_page(out / "report.html", records, [command])


def _comparison(found: dict[str, tuple[Run, Evaluation]]) -> str:
    """Return both models side by side."""
    from vcnef.models.interface import number_of_weights

    rows: dict[str, list[Any]] = {"nRMSE on test": [], "bRMSE": []}
    for run, each in found.values():
        rows["nRMSE on test"].append(each.result.value("nrmse"))
        rows["bRMSE"].append(each.result.value("brmse"))
        for result in each.space[1:]:
            rows.setdefault(f"nRMSE at {result.resolution[0]} points", []).append(result.value("nrmse"))
        for result in each.time[1:]:
            rows.setdefault(f"nRMSE at {result.frames} times", []).append(result.value("nrmse"))
        cost = each.result.cost
        if cost is not None and cost.solver_seconds is not None:
            rows.setdefault("ms per trajectory", []).append(1e3 * cost.seconds)
            rows.setdefault("solver's ms per trajectory", []).append(1e3 * cost.solver_seconds)
        rows.setdefault("weights", []).append(number_of_weights(run.surrogate.model))
        rows.setdefault("minutes of training", []).append(run.history[-1]["seconds"] / 60)
    lines = [f"{'':28}" + "".join(f"{name:>12}" for name in found)]
    for name, values in rows.items():
        numbers = [f"{value:>12,.4g}" for value in values]
        lines.append(f"{name:28}" + "".join(numbers))
    return "\n".join(lines)
