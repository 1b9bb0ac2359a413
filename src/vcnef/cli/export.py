"""`vcnef export`: a model as one file that runs without vcnef."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    run: Annotated[Path, typer.Argument(help="A run folder, the model folder inside, or a packaged model's name.")],
    out: Annotated[Path, typer.Option(help="Where to write: .pt2 (PyTorch, Python or C++) or .onnx.")],
    points: Annotated[
        str | None, typer.Option(help="Points along the axes: 256, or 64,32 in 2D. By default those of training.")
    ] = None,
) -> None:
    """Write a model as one file that runs without vcnef: initial states, times and parameters in, trajectories out.

    Inputs are u0 (sample, *x, channel), t (time) and params (sample, parameter) in physical units and single precision,
    for any numbers of samples and times, on a grid that is chosen here. The file is run once before it is written.
    Scattered points and uneven grids are exported from Python: surrogate.export(path, x=points).
    """
    from vcnef.packaged import locate

    folder = locate(run)  # a mistyped path is answered before torch is imported

    from vcnef.cli._outputs import check_place
    from vcnef.cli._settings import parse_counts
    from vcnef.cli._surrogates import load_surrogate
    from vcnef.spelling import spell_bytes
    from vcnef.surrogate.export import check_exportable

    surrogate = load_surrogate(folder, "cpu")
    check_exportable(surrogate, out)
    check_place(out, "--out")
    sides = None if points is None else parse_counts(points, "--points")
    typer.echo("Tracing the model and comparing the file with it; that takes up to a minute.", err=True)
    distance = surrogate.export(out, resolution=sides)
    typer.echo(f"{out}: {spell_bytes(out.stat().st_size)}; its answers are within {distance:.0e} of the model's.")
