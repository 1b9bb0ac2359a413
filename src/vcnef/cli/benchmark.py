"""`vcnef benchmark`: what models cost."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vcnef.cli._options import Device


class BenchmarkTable(StrEnum):
    """What is measured."""

    speed = "speed"
    memory = "memory"
    train = "train"


def benchmark(
    table: Annotated[
        BenchmarkTable,
        typer.Argument(
            help="speed: time and memory of inference, the paper's table. memory: that of one batch only, on a GPU. "
            "train: time per step and per epoch, and memory."
        ),
    ] = BenchmarkTable.speed,
    models: Annotated[
        str,
        typer.Option(
            help="Names of models, also with options of their own as in fno,vcnef[OPTION=VALUE,OPTION=VALUE]; folders "
            "of runs; packaged models; or all."
        ),
    ] = "all",
    ndim: Annotated[int, typer.Option(help="Space axes: 1, 2 or 3.")] = 1,
    steps: Annotated[
        str | None, typer.Option(help="Numbers of steps to predict; by default 40,80,…,240 in 1D, 20 in 2D, 10 in 3D.")
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Initial states; by default 1000, in 3D 100.")] = None,
    points: Annotated[
        int | None, typer.Option(help="Points of a side of the grid; by default 256, 64 in 2D, 32 in 3D.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Initial states at once; by default 64, in 3D 4.")] = None,
    times: Annotated[
        int | None, typer.Option(help="train: query times per step; by default all, 40 in 1D, 20 in 2D, 10 in 3D.")
    ] = None,
    epoch_samples: Annotated[int | None, typer.Option(help="train: trajectories of an epoch; by default 9000.")] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="fp32, tf32, bf16 or fp16. By default what `predict` does; for train bf16 on a GPU and fp32 elsewhere."
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="Measurements of each case; the fastest counts. By default 3.")
    ] = None,
    release: Annotated[
        Path | None, typer.Option(help="Folder of the authors' repository: their code becomes the model release.")
    ] = None,
    device: Device = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the numbers to this file too.")] = None,
) -> None:
    """Measure what models cost, all in one run on one device, so that they can be compared.

    Models of a name have the paper's sizes and random weights, for data of the paper's kind: one field and one
    parameter in 1D, four fields in 2D, five in 3D. For train, models that step go through the whole rollout.
    """
    import json
    from dataclasses import asdict
    from functools import partial

    import torch

    from vcnef.cli._benchmark_models import choose_models
    from vcnef.cli._benchmarks import MEASURES, settle, table_of, title_of
    from vcnef.cli._outputs import check_place
    from vcnef.cli._settings import parse_counts
    from vcnef.device import choose_device
    from vcnef.evaluation.cost import device_name
    from vcnef.evaluation.tables import lines
    from vcnef.whole import write_whole

    if json_path is not None:
        check_place(json_path, "--json")
    place = choose_device(device)
    given = {
        "steps": steps and parse_counts(steps, "--steps"), "samples": samples, "points": points, "batch": batch,
        "times": times, "epoch_samples": epoch_samples, "precision": precision, "repeats": repeats,
    }  # fmt: skip
    asked = settle(table, ndim, place, given)
    where = f"{device_name(place)}, torch {torch.__version__}"
    record = {"table": table.value, "ndim": ndim, **asked, "device": where, "results": []}
    chosen = choose_models(models, ndim, asked["points"], release)
    found = []
    for each in MEASURES[table](chosen, **asked, device=place, report=partial(typer.echo, err=True)):
        found.append(each)
        if json_path is not None:  # what is known so far, if the rest takes too long
            record["results"].append(asdict(each))
            write_whole(json_path, json.dumps(record, indent=2).encode())
    typer.echo("\n".join(lines([table_of(table, found, title_of(table, ndim, asked, where))])))
