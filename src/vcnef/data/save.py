"""Trajectories to files, by suffix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vcnef.data.notes import lasting_attributes, origin, write_note
from vcnef.data.rows import bytes_of_one, row_blocks
from vcnef.grid import axes, is_scattered
from vcnef.whole import check_room, naming, replacing

if TYPE_CHECKING:
    from vcnef.data.trajectories import Trajectories

HEAD = 2**16
"""Bytes of an HDF5 file beside its fields, or more."""


def save(data: Trajectories, path: Path) -> Path:
    if path.suffix not in SAVERS:
        raise ValueError(
            f"{path} cannot be written: the suffix is {path.suffix!r}, expected one of {', '.join(SAVERS)}."
        )
    if is_scattered(data.grid) and SAVERS[path.suffix] is save_hdf5:
        raise ValueError(f"{path} cannot hold scattered points; save them as .npz or .nc.")
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            SAVERS[path.suffix](data, draft)
    return path


def save_hdf5(data: Trajectories, path: Path) -> None:
    from vcnef.data.writer import create

    if len(data.t) < 2:
        raise ValueError("An HDF5 file cannot hold one time alone; its layout needs two or more. Save as .npz.")
    check_room(path, data.u.nbytes + HEAD)
    lines = [line.cpu().numpy() for line in axes(data.grid)]
    attributes = lasting_attributes(data)
    recipe = attributes.pop("recipe", None)
    t, params = data.t.cpu().numpy(), data.params.cpu().numpy()
    writer = create(path, data.problem, t, lines, params, attributes, recipe, origin(data))
    for rows in row_blocks(len(data), bytes_of_one(data)):
        writer.write(int(rows[0]), data.u[rows[0] : rows[-1] + 1])
    writer.finish()


def save_netcdf(data: Trajectories, path: Path) -> None:
    dataset = data.to_xarray()
    check_room(path, dataset.nbytes + HEAD)
    dataset.to_netcdf(path, engine="h5netcdf")


def save_npz(data: Trajectories, path: Path) -> None:
    arrays = {name: getattr(data, name).cpu().numpy() for name in ("u", "t", "params")}
    problem = json.dumps(data.problem.to_dict())
    np.savez(path, **arrays, x=data.grid.cpu().numpy(), problem=problem, **write_note(data))


SAVERS = {".hdf5": save_hdf5, ".h5": save_hdf5, ".nc": save_netcdf, ".npz": save_npz}
