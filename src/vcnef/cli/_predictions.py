"""Predicted trajectories to files, by suffix; complete or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vcnef.cli._outputs import cannot_write, check_place
from vcnef.data.arrays import note_periodic
from vcnef.data.save import HEAD, SAVERS
from vcnef.labels import CHANNEL, POINT, TIME
from vcnef.problem import SPACE, Problem
from vcnef.whole import check_room, replacing

if TYPE_CHECKING:
    import xarray

GRIDS = (".hdf5", ".h5")
"""The benchmark's layout."""


def check_writable(path: Path, times: Sequence[float]) -> None:
    """Raise an error unless a file of this name can be written and hold such times."""
    if path.suffix not in WRITERS:
        known = ", ".join(WRITERS)
        raise ValueError(f"{path} has the suffix {path.suffix!r}; expected one of {known}. Name the file so.")
    layout = path.suffix in GRIDS
    if layout and len(times) < 2:
        raise ValueError(f"{path} cannot hold a single time; its layout needs two or more. Write .nc, .npz or .npy.")
    if (layout or path.suffix == ".npz") and (np.diff(np.array(times, dtype=np.float32)) <= 0).any():
        raise ValueError(f"{path} cannot hold times that do not increase. Sort them in --times, or write .nc or .npy.")
    check_place(path, "--out")


def check_points(path: Path, scattered: bool) -> None:
    """Raise an error unless a file of this name can hold such points."""
    if scattered and path.suffix in GRIDS:
        raise ValueError(f"{path} cannot hold scattered points; its layout is of grids. Write .nc, .npz or .npy.")


def write_prediction(path: Path, u: xarray.DataArray, problem: Problem) -> None:
    """Write to a draft beside the file, then put it in its place."""
    try:
        with replacing(path) as draft:
            WRITERS[path.suffix](draft, u, problem)
    except OSError as error:
        raise cannot_write(path, error, "--out") from None


def _write_netcdf(path: Path, u: xarray.DataArray, problem: Problem) -> None:
    """Write one variable per channel, so that any viewer shows them by name."""
    dataset = u.drop_vars("units", errors="ignore").to_dataset(dim=CHANNEL)
    for channel in problem.channels:
        unit = problem.units.get(channel)
        if unit:
            dataset[channel].attrs["units"] = unit
    box = np.array(problem.domain, dtype=np.float64).ravel()
    described = dataset.assign_attrs(problem=problem.name, periodic=note_periodic(problem.periodic), domain=box)
    check_room(path, described.nbytes + HEAD)
    described.to_netcdf(path, engine="h5netcdf")


def _write_npy(path: Path, u: xarray.DataArray, problem: Problem) -> None:
    check_room(path, u.nbytes)  # NumPy would only say how many bytes it has written
    np.save(path, u.values)


def _write_trajectories(path: Path, u: xarray.DataArray, problem: Problem) -> None:
    """Write a file as `vcnef.open` reads it."""
    import torch

    from vcnef.data import Trajectories
    from vcnef.data.arrays import make_params, varying_among

    # A copy of its own, of the precision that data have.
    lines = [torch.from_numpy(np.array(u[axis].values, dtype="f4")) for axis in SPACE[: problem.ndim]]
    scattered = POINT in u.dims
    grid = torch.stack(lines if scattered else torch.meshgrid(*lines, indexing="ij"), dim=-1)
    columns = {name: u[name].values for name in problem.parameters}
    _, params = make_params(columns, len(u), u.sizes[TIME])
    t = torch.from_numpy(np.array(u[TIME].values, dtype="f4"))
    problem = replace(problem, ranges={}, varying=varying_among(columns, u.sizes[TIME]))
    SAVERS[path.suffix](Trajectories(torch.from_numpy(u.values), t, grid, params, problem), path)


WRITERS: dict[str, Callable[[Path, xarray.DataArray, Problem], None]] = {
    ".nc": _write_netcdf,
    ".npy": _write_npy,
    ".npz": _write_trajectories,
    ".hdf5": _write_trajectories,
    ".h5": _write_trajectories,
}
