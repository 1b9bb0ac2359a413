"""Initial states from a file: arrays, NetCDF or HDF5, with the points and parameters that it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from vcnef.data import open as open_data
from vcnef.data.files import points_in, reading_netcdf, speaking_of
from vcnef.problem import Problem

STATE_KEYS = ("u0", "u")
"""Names under which a file may hold the states as one array."""
ONLY_THE_FIRST = 2**31
"""A time stride that no trajectory is as long as."""
Names = tuple[str, ...]


@dataclass
class InitialStates:
    """States as `Surrogate.predict` takes them: an array, or a labelled one that brings names and points."""

    u0: Any
    x: Any = None
    params: dict[str, Any] = field(default_factory=dict)


def read_initial_states(path: Path, problem: Problem, told: Mapping[str, Any]) -> InitialStates:
    """What a file says of initial states, of trajectories the first frame; parameters that are told replace its own."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}. Give the initial states as --input FILE.")
    if path.suffix not in READERS:
        raise ValueError(f"{path} has the suffix {path.suffix!r}; expected one of {', '.join(READERS)}. Convert it.")
    states = READERS[path.suffix](path, problem, tuple(told))
    states.params |= told
    return states


def _read_npy(path: Path, problem: Problem, told: Names) -> InitialStates:
    with speaking_of(path):
        return InitialStates(_first_frame(np.load(path, mmap_mode="r", allow_pickle=False), problem.ndim))


def _read_npz(path: Path, problem: Problem, told: Names) -> InitialStates:
    with speaking_of(path), np.load(path, allow_pickle=False) as arrays:
        if "u" in arrays and "problem" in arrays:
            return _read_trajectories(path, problem, told)
        return _from_arrays({name: arrays[name] for name in arrays}, problem)


def _read_hdf5(path: Path, problem: Problem, told: Names) -> InitialStates:
    with speaking_of(path):
        with h5py.File(path, "r") as file:
            trajectories = "t-coordinate" in file
            arrays = {} if trajectories else {name: each[()] for name, each in file.items() if hasattr(each, "shape")}
        return _read_trajectories(path, problem, told) if trajectories else _from_arrays(arrays, problem)


def _read_netcdf(path: Path, problem: Problem, told: Names) -> InitialStates:
    with reading_netcdf(path) as dataset:
        states = dataset.load()
    for name in ("t", "time"):
        states = states.isel({name: 0}, drop=True) if name in states.dims else states
    params = {name: states[name].values for name in problem.parameters if name in states.variables}
    return InitialStates(states, None, params)


def _read_trajectories(path: Path, problem: Problem, told: Names) -> InitialStates:
    # Of what is told any number will do here, so that the file need not say it; of its sides the model knows.
    given = {"params": dict.fromkeys(told, 0.0), "periodic": all(problem.closes)}
    data = open_data(path, time_stride=ONLY_THE_FIRST, stream=False, **given)
    _check_channels(path, data.problem.channels, problem)
    names = data.problem.parameters
    params = {name: data.params[:, names.index(name)].numpy() for name in problem.parameters if name in names}
    return InitialStates(data.u[:, 0].numpy(), data.grid.numpy(), params)


def _from_arrays(arrays: Mapping[str, np.ndarray], problem: Problem) -> InitialStates:
    """States as one array, as the only array, or as one array for each channel."""
    key = next((key for key in STATE_KEYS if key in arrays), None)
    if key is None and len(arrays) == 1:
        key = next(iter(arrays))
    x = points_in(arrays)
    ndim = problem.ndim if x is None or isinstance(x, tuple) or np.ndim(x) == 1 else np.ndim(x) - 1
    if key is not None:
        u0 = _first_frame(arrays[key], ndim)
    elif all(channel in arrays for channel in problem.channels):
        u0 = np.stack([arrays[channel] for channel in problem.channels], axis=-1)
    else:
        wanted = " or ".join(["u0", ", ".join(problem.channels)])
        raise ValueError(f"has neither {wanted}; it holds {sorted(arrays)[:8]}")
    return InitialStates(u0, x, {name: arrays[name] for name in problem.parameters if name in arrays})


def _first_frame(array: np.ndarray, ndim: int) -> np.ndarray:
    """Of trajectories [b t *x c] the first frame; states stay as they are."""
    return np.asarray(array[:, 0] if array.ndim == ndim + 3 else array)


def _check_channels(path: Path, got: tuple[str, ...], problem: Problem) -> None:
    if got != problem.channels:
        raise ValueError(
            f"{path} has the channels {', '.join(got)}; the model of {problem.name} expects "
            f"{', '.join(problem.channels)}. Give initial states of that problem."
        )


READERS: dict[str, Callable[[Path, Problem, Names], InitialStates]] = {
    ".nc": _read_netcdf,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".hdf5": _read_hdf5,
    ".h5": _read_hdf5,
}
