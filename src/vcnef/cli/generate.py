"""`vcnef generate`: data sets from seeds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from vcnef.cli._options import Device


def generate(
    equation: Annotated[str, typer.Argument(help="Its name; `vcnef equations` lists them.")],
    samples: Annotated[int, typer.Option(help="Trajectories per data set.")] = 1000,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A parameter or an option of the initial states: nu=0.001, several values: nu=0.001,0.01, "
            "or a range that each sample draws from: nu=0.001:1.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="An .hdf5 file, or a folder for files under the benchmark's names.")] = Path(
        "data"
    ),
    seed: Annotated[int, typer.Option(help="Decides every random choice.")] = 0,
    device: Device = None,
    resolution: Annotated[int | None, typer.Option(help="Cells along each axis; by default the benchmark's.")] = None,
    times: Annotated[str | None, typer.Option(help="Output times: first:last:count, or 0,0.1,0.5.")] = None,
    frames: Annotated[int | None, typer.Option(help="Equally spaced output times, the initial one included.")] = None,
    horizon: Annotated[float | None, typer.Option(help="The last time.")] = None,
    generation: Annotated[
        str, typer.Option(help="documented, or 2022 for the benchmark's first files.")
    ] = "documented",
    batch: Annotated[int | None, typer.Option(help="Trajectories solved at once.")] = None,
    store_stride: Annotated[int, typer.Option(help="Store every so many cells only.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted file.")] = False,
) -> None:
    """Generate trajectories of an equation and write them in the benchmark's HDF5 layout.

    A killed run is continued with --resume and ends with the same bytes. Under torchrun several processes share
    one run.
    """
    from vcnef.cli._settings import parse_settings, parse_times, share_out
    from vcnef.data.generator import generate as make
    from vcnef.pde import equation as find
    from vcnef.progress import progress
    from vcnef.spelling import spell_bytes

    model = find(equation, generation=generation)
    params, initial = share_out(parse_settings(settings or []), model.defaults, model.initial_options, what=equation)
    first = os.environ.get("RANK", "0") == "0"
    begun = time.monotonic()
    with _advice(), progress(quiet=not first) as report:
        paths = cast(
            list[Path],
            make(
                cast(Any, model),
                samples=samples,
                params=params,
                seed=seed,
                device=device,
                out=out,
                generation=generation,
                resume=resume,
                progress=report,
                resolution=resolution,
                t=None if times is None else parse_times(times),
                frames=frames,
                horizon=horizon,
                batch=batch,
                store_stride=store_stride,
                **initial,
            ),
        )
    for path in paths if first else ():
        typer.echo(f"{path}: {samples} trajectories, {spell_bytes(path.stat().st_size)}")
    if first:
        typer.echo(f"Done in {time.monotonic() - begun:.1f} s.")


@contextmanager
def _advice() -> Iterator[None]:
    """Say to whoever interrupts that what is made stays."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("What is made so far is kept; continue with --resume.") from None
