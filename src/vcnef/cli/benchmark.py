"""`vcnef benchmark`: what models cost."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vcnef.models.interface import TrajectoryModel


class Table(StrEnum):
    """What is measured."""

    speed = "speed"


def benchmark(
    table: Annotated[Table, typer.Argument(help="speed: time and memory of inference, the paper's table.")],
    models: Annotated[str, typer.Option(help="Names of models and folders of runs, or all.")] = "all",
    steps: Annotated[str, typer.Option(help="Numbers of steps to predict.")] = "40,80,120,160,200,240",
    samples: Annotated[int, typer.Option(help="Initial states.")] = 1000,
    points: Annotated[int, typer.Option(help="Points of the 1D grid.")] = 256,
    batch: Annotated[int, typer.Option(help="Initial states at once.")] = 64,
    precision: Annotated[str, typer.Option(help="default, fp32, tf32, bf16 or fp16.")] = "default",
    repeats: Annotated[int, typer.Option(help="Measurements of each case; the fastest counts.")] = 3,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; by default a GPU if there is one.")] = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the numbers to this file too.")] = None,
) -> None:
    """Measure what models cost, all in one run on one device, so that they can be compared.

    Models of a name have the paper's sizes for one 1D field with one parameter, and random weights.
    """
    import json
    from dataclasses import asdict
    from functools import partial

    import torch

    from vcnef.cli._outputs import check_place
    from vcnef.cli.evaluate import parse_counts
    from vcnef.device import choose_device
    from vcnef.evaluation.cost import device_name
    from vcnef.evaluation.speed import measure_speed, speed_table
    from vcnef.evaluation.tables import lines
    from vcnef.surrogate.folder import write_whole

    if json_path is not None:
        check_place(json_path, "--json")
    place = choose_device(device)
    case = {"samples": samples, "points": points, "batch": batch, "precision": precision, "repeats": repeats}
    where = f"{device_name(place)}, torch {torch.__version__}"
    record = {"table": table.value, **case, "device": where, "results": []}
    found = []
    for each in measure_speed(
        _choose(models), parse_counts(steps, "--steps"), **case, device=place, report=partial(typer.echo, err=True)
    ):
        found.append(each)
        if json_path is not None:  # what is known so far, if the rest takes too long
            record["results"].append(asdict(each))
            write_whole(json_path, json.dumps(record, indent=2).encode())
    title = f"{samples} initial states × {points} points, {batch} at once, {precision} precision, {where}"
    typer.echo("\n".join(lines([speed_table(found, title)])))


def _choose(names: str) -> dict[str, TrajectoryModel]:
    """Models by name or by the folder of a run; "all" leaves out those whose cost is their training."""
    from vcnef.models.registry import MODELS, build
    from vcnef.workflow import load

    sizes = {"ndim": 1, "channels": 1, "params": 1}
    if names == "all":
        every = {name: build(name, **sizes) for name in MODELS}
        return {name: model for name, model in every.items() if not model.one_instance}
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    return {name: load(name).model if Path(name).is_dir() else build(name, **sizes) for name in chosen}
