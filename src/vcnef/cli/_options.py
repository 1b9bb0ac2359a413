"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

DATA_FILES = (".hdf5", ".h5", ".nc", ".npy", ".npz")
"""Suffixes of files of trajectories, as `vcnef.data.opening.READERS` has them: known here without importing torch."""

Device = Annotated[str | None, typer.Option(help="cpu or cuda; by default a GPU if there is one.")]
Batch = Annotated[int, typer.Option(help="Trajectories predicted at once.")]
Split = Annotated[
    str | None,
    typer.Option(
        help="test, valid, train or all; by default all of data that were not trained on, or else their test split.",
        show_default=False,
    ),
]
Space = Annotated[str | None, typer.Option(help="Points along an axis for super-resolution: 256,512,1024.")]
Time = Annotated[str | None, typer.Option(help="Numbers of times for super-resolution: 41,101,201.")]
Periodic = Annotated[
    bool | None,
    typer.Option(
        "--periodic/--no-periodic",
        show_default=False,
        help="Whether the domain closes on itself along all axes; by default as files say it, or it does.",
    ),
]
Walls = Annotated[
    str | None,
    typer.Option(
        metavar="AXES",
        show_default=False,
        help="Axes along which the domain ends, others close on themselves: y, or y,z.",
    ),
]
Equation = Annotated[
    str | None,
    typer.Option(help="The equation that the data obey, where files note none: burgers, ...", show_default=False),
]
Layout = Annotated[
    str | None,
    typer.Option(
        help="The axes of arrays in .npy, .npz or .hdf5 files, by letters: 'n t c x'; by default 'n t x c'.",
        show_default=False,
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", help="A PDE parameter that files do not name, or name wrongly: nu=0.001, or one value for each file."
    ),
]
