"""Initial states from a file: arrays, NetCDF or HDF5, with the points and parameters that it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from vcnef.data import open as open_data
from vcnef.data.files import layout_of, points_in, reading_netcdf, speaking_of
from vcnef.data.layout import arrange, read_layout, spell_layout, usual_layout
from vcnef.problem import SPACE, Problem

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
    layout: str | None = None
    """Of u0, where somebody said it."""


def read_initial_states(
    path: Path, problem: Problem, told: Mapping[str, Any], layout: str | None = None
) -> InitialStates:
    """What a file says of initial states, of trajectories the first frame; parameters that are told replace its own.

    `layout` names the axes of arrays that have them in another order, with or without times.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}. Give the initial states as --input FILE.")
    if path.suffix not in READERS:
        raise ValueError(f"{path} has the suffix {path.suffix!r}; expected one of {', '.join(READERS)}. Convert it.")
    if layout is not None:
        read_layout(layout, needed=("x",))
    states = READERS[path.suffix](path, problem, tuple(told), layout)
    states.params |= told
    if layout is not None:
        states.layout = spell_layout(usual_layout(states.u0.ndim - 2, times=False))
    return states


def _read_npy(path: Path, problem: Problem, told: Names, layout: str | None) -> InitialStates:
    with speaking_of(path):
        u = np.load(path, mmap_mode="r", allow_pickle=False)
        return InitialStates(_first_frame(u, problem.ndim, layout, {}))


def _read_npz(path: Path, problem: Problem, told: Names, layout: str | None) -> InitialStates:
    with speaking_of(path), np.load(path, allow_pickle=False) as arrays:
        if "u" in arrays and "problem" in arrays:
            _refuse_layout(layout)
            return _read_trajectories(path, problem, told)
        return _from_arrays({name: arrays[name] for name in arrays}, problem, layout)


def _read_hdf5(path: Path, problem: Problem, told: Names, layout: str | None) -> InitialStates:
    with speaking_of(path), h5py.File(path, "r") as file:
        trajectories = "t-coordinate" in file
        if not trajectories:
            # Datasets are not read here: of trajectories only the first frame is.
            arrays = {name: each for name, each in file.items() if hasattr(each, "shape")}
            told_by_file = (*problem.parameters, "channels", *SPACE, "t")
            noted = {name: np.asarray(file.attrs[name]) for name in told_by_file if name in file.attrs}
            return _from_arrays(arrays | noted, problem, layout)
        _refuse_layout(layout)
    return _read_trajectories(path, problem, told)


def _read_netcdf(path: Path, problem: Problem, told: Names, layout: str | None) -> InitialStates:
    with reading_netcdf(path) as dataset:
        _refuse_layout(layout)
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


def _from_arrays(arrays: Mapping[str, Any], problem: Problem, layout: str | None) -> InitialStates:
    """States as one array, as the only array, or as one array for each channel."""
    key = next((key for key in STATE_KEYS if key in arrays), None)
    others = [name for name in arrays if name not in ("t", *SPACE, "channels", *problem.parameters)]
    if key is None and len(others) == 1:
        key = others[0]
    x = points_in({name: np.asarray(arrays[name]) for name in SPACE if name in arrays})
    ndim = problem.ndim if x is None or isinstance(x, tuple) or np.ndim(x) == 1 else np.ndim(x) - 1
    if key is not None:
        u0 = _in_order(_first_frame(arrays[key], ndim, layout, arrays), arrays, problem)
    elif all(channel in arrays for channel in problem.channels):
        u0 = np.stack([arrays[channel] for channel in problem.channels], axis=-1)
    else:
        wanted = " or ".join(["u0", ", ".join(problem.channels)])
        raise ValueError(f"has neither {wanted}; it holds {sorted(arrays)[:8]}")
    params = {name: np.asarray(arrays[name]) for name in problem.parameters if name in arrays}
    return InitialStates(u0, x, params)


def _first_frame(array: Any, ndim: int, layout: str | None, arrays: Mapping[str, Any]) -> np.ndarray:
    """Of trajectories [b t *x c] the first frame; states stay as they are."""
    if layout is not None:
        letters = read_layout(layout, needed=("x",))
        arranged = arrange(array, letters)
        return np.asarray(arranged[:, 0] if "t" in letters else arranged)
    beside = {name: np.asarray(arrays[name]) for name in ("t", *SPACE) if name in arrays}
    if array.ndim != ndim + 3 and not (array.ndim == ndim + 2 and {"t", "x"} <= beside.keys()):
        return np.asarray(array)
    # Axes in another order are refused, or the first points would be taken for the first times.
    letters = layout_of(array, None, beside)
    return np.asarray(array[:, 0]) if "c" in letters else np.asarray(array[:, 0])[..., None]


def _in_order(u0: np.ndarray, arrays: Mapping[str, Any], problem: Problem) -> np.ndarray:
    """The channels in the order of the model, where the file names them."""
    if "channels" not in arrays:
        return u0
    names = [each.decode() if isinstance(each, bytes) else str(each) for each in np.ravel(arrays["channels"])]
    if set(names) != set(problem.channels) or u0.shape[-1] != len(names):
        raise ValueError(
            f"has the channels {', '.join(names)}, and an array of shape {u0.shape}; the model of {problem.name} "
            f"expects {', '.join(problem.channels)}. Give initial states of that problem"
        )
    return u0[..., [names.index(name) for name in problem.channels]]


def _refuse_layout(layout: str | None) -> None:
    if layout is not None:
        raise ValueError(f"names its axes itself, but layout is {layout!r}. Leave layout out")


def _check_channels(path: Path, got: tuple[str, ...], problem: Problem) -> None:
    if got != problem.channels:
        raise ValueError(
            f"{path} has the channels {', '.join(got)}; the model of {problem.name} expects "
            f"{', '.join(problem.channels)}. Give initial states of that problem."
        )


READERS: dict[str, Callable[[Path, Problem, Names, str | None], InitialStates]] = {
    ".nc": _read_netcdf,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".hdf5": _read_hdf5,
    ".h5": _read_hdf5,
}
