"""Files of trajectories, opened by suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vcnef.checks import check_file, check_path
from vcnef.data import files, named_hdf5, pdebench
from vcnef.data.arrays import by_name
from vcnef.data.layout import read_layout
from vcnef.data.machine import machine_memory
from vcnef.data.seams import warn_of_seams
from vcnef.data.source import Source
from vcnef.data.stored import StoredTrajectories, store
from vcnef.data.trajectories import Trajectories
from vcnef.data.views import View
from vcnef.pde import equation as equation_called
from vcnef.periodicity import check_periodic
from vcnef.problem import Problem
from vcnef.spelling import spell_value

Reader = Callable[[Path, View, Mapping[str, float], Any, str | None], Source]


def describe_hdf5(path: Path, *asked: Any) -> Source:
    """A file in the benchmark's layout, or with arrays under the names of `from_arrays`."""
    return (named_hdf5 if named_hdf5.is_named(path) else pdebench).describe(path, *asked)


READERS: dict[str, Reader] = {
    ".hdf5": describe_hdf5,
    ".h5": describe_hdf5,
    ".nc": files.describe_netcdf,
    ".npy": files.describe_npy,
    ".npz": files.describe_npz,
}
LOADERS = {".pt": "torch.load(path)", ".pth": "torch.load(path)", ".mat": "scipy.io.loadmat(path)"}
"""How others' files are read, whose arrays may mean anything."""
MEMORY_SHARE = 0.5
"""Data larger than this share of the machine's memory stay in their files."""


def open(
    path: str | Path | Sequence[str | Path],
    space_stride: int = 1,
    time_stride: int = 1,
    horizon: float | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    periodic: Any = None,
    equation: str | None = None,
    layout: str | None = None,
    stream: bool | None = None,
) -> Trajectories | StoredTrajectories:
    """Open one file, or several with the same grid, times and channels as one data set.

    Strides and the horizon (a physical time) are applied while reading; the rest of a file is never touched, but for
    .nc and .npz, which are read whole and kept in memory even if streamed.
    `params` are added to the parameters that a file names, or replace them: one value for all files or one for each.
    `periodic` says whether the domain closes on itself, along all axes or along each, as (True, False) or by name, as
    {"y": False}, whatever a file notes; one that notes nothing is taken to.
    `equation` names the one that the data obey ("burgers", ...), with its symmetries, residual and solver, where files
    note none; what a file is called says nothing, unless the name is one of the benchmark's.
    `layout` names the axes of u in .npy, .npz and .hdf5 files that do not: "n t c x", as in `from_arrays`.
    `stream` keeps the fields in their files (True) or reads them now (False); by default whichever the machine's
    memory allows.
    """
    stored = describe(path, View(space_stride, time_stride, horizon), params, periodic, layout)
    if equation is not None:
        stored = replace(stored, problem=_obeying(stored.problem, equation))
    if stream is None:
        stream = stored.nbytes > MEMORY_SHARE * machine_memory()
    data = stored if stream else stored.load()
    if not are_sides_known(stored):
        warn_of_seams(data)
    return data


def describe(
    path: str | Path | Sequence[str | Path],
    view: View,
    params: Mapping[str, Any] | None = None,
    periodic: Any = None,
    layout: str | None = None,
) -> StoredTrajectories:
    """Look at files and what they say of themselves, but not at their fields."""
    several = isinstance(path, Sequence) and not isinstance(path, str)
    paths = [check_path(each, "The file to open") for each in (path if several else [path])]
    if not paths:
        raise ValueError("There is no file to open; give at least one path.")
    if periodic is not None:
        check_periodic(periodic)
    if layout is not None:
        read_layout(layout)
    told = _per_file(by_name(params), paths)
    opened = (_reader(each)(each, view, own, periodic, layout) for each, own in zip(paths, told, strict=True))
    return store(tuple(opened))


def are_sides_known(stored: StoredTrajectories) -> bool:
    """Whether somebody has said of every file, here or in it, along which axes its domain closes."""
    return all(source.sides_known for source in stored.sources)


def _reader(path: Path) -> Reader:
    check_file(path)
    if path.suffix in LOADERS:
        raise ValueError(
            f"{path} is a {path.suffix} file, whose arrays may mean anything; expected one of {', '.join(READERS)}. "
            f"Take its arrays with {LOADERS[path.suffix]} and give that of the trajectories to vcnef.from_arrays, with "
            "its axes: layout='n t x'; an initial and a final state, [samples, x] each, are two frames: "
            "np.stack([a, u], axis=1)[..., None]."
        )
    if path.suffix not in READERS:
        raise ValueError(f"{path} has the suffix {path.suffix!r}; expected one of {', '.join(READERS)}.")
    return READERS[path.suffix]


def _obeying(problem: Problem, name: str) -> Problem:
    """The problem as one of that equation, if its fields are those of the equation."""
    known = equation_called(name).problem
    if (problem.ndim, problem.channels) != (known.ndim, known.channels):
        raise ValueError(
            f"The equation {name!r} is {known.ndim}D with the channels {', '.join(known.channels)}; the data are "
            f"{problem.ndim}D with {', '.join(problem.channels)}. Name the channels so in the files, or leave equation "
            "out."
        )
    return replace(problem, name=name)


def _per_file(params: Mapping[str, Any], paths: list[Path]) -> list[dict[str, float]]:
    columns = {name: _values(name, value, len(paths)) for name, value in params.items()}
    return [{name: float(column[i]) for name, column in columns.items()} for i in range(len(paths))]


def _values(name: str, value: Any, files: int) -> np.ndarray:
    """One number for each file."""
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        values = None
    if values is None or (values.ndim and values.size != files):
        count = f"{files} file{'s' if files > 1 else ''}"
        got = f"is {spell_value(value)}" if values is None else f"has {values.size} values for {count}"
        raise ValueError(
            f"params[{name!r}] {got}; expected one number for all files, or one for each. "
            "Values of single samples go into the file, by their name."
        )
    return np.broadcast_to(values.reshape(-1), files)
