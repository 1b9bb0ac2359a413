"""Initial states from a file: arrays, NetCDF or HDF5, with the points and parameters that it holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from vcnef.checks import check_file
from vcnef.cli._beside import check_frames, check_noted_units, doubt_arrays, doubt_trajectories, warn_of_conversions
from vcnef.conversion import convert_states
from vcnef.data.archives import reading_npz
from vcnef.data.files import layout_of, points_in, reading_netcdf, speaking_of, texts_of
from vcnef.data.hdf5 import units_in
from vcnef.data.inside import open_hdf5
from vcnef.data.layout import arrange, read_layout, spell_layout, usual_layout
from vcnef.data.notes import NOTE, read_note
from vcnef.data.opening import describe
from vcnef.data.other_units import convert_trajectories
from vcnef.data.views import View
from vcnef.labels import params_of, units_of_states
from vcnef.problem import SPACE, Problem
from vcnef.units import Conversion, along_all_axes, conversions, factors_of

STATE_KEYS = ("u0", "u")
"""Names under which a file may hold the states as one array."""
ONLY_THE_FIRST = 2**31
"""A time stride that no trajectory is as long as."""


class Wanted(NamedTuple):
    """The parameters that are told, how many frames an answer begins with, and the axes of arrays, if they are told."""

    told: tuple[str, ...]
    frames: int
    layout: str | None


@dataclass
class InitialStates:
    """States as `Surrogate.predict` takes them: an array, or a labelled one that brings names and points."""

    u0: Any
    x: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    start: float | None = None
    """The time of the first frame, or of the last one of a history, where a file says it."""
    layout: str | None = None
    """Of u0, where somebody said it."""


def read_initial_states(
    path: Path, problem: Problem, told: Mapping[str, Any], layout: str | None = None, frames: int = 1
) -> InitialStates:
    """Return the initial states of a file, of trajectories the first frame, or so many.

    Parameters that are told replace its own. `layout` names the axes of arrays that have them in another order, with
    or without times.
    """
    check_file(path, "Give the initial states as --input FILE.")
    if path.suffix not in READERS:
        raise ValueError(f"{path} has the suffix {path.suffix!r}; expected one of {', '.join(READERS)}. Convert it.")
    if layout is not None:
        read_layout(layout, needed=("x",))
    states = READERS[path.suffix](path, problem, Wanted(tuple(told), frames, layout))
    states.params |= told
    if layout is not None:
        remembered = frames > 1 and "t" in read_layout(layout, needed=("x",))
        states.layout = spell_layout(usual_layout(states.u0.ndim - 2 - remembered, times=remembered))
    return states


def _read_npy(path: Path, problem: Problem, wanted: Wanted) -> InitialStates:
    with speaking_of(path):
        u = np.load(path, mmap_mode="r", allow_pickle=False)
        return InitialStates(_first_frames(u, problem.ndim, wanted, {}))


def _read_npz(path: Path, problem: Problem, wanted: Wanted) -> InitialStates:
    with speaking_of(path), reading_npz(path) as arrays:
        if "u" in arrays and "problem" in arrays:
            _refuse_layout(wanted.layout)
            return _read_trajectories(path, problem, wanted)
        return _from_arrays(path, arrays, problem, wanted)


def _read_hdf5(path: Path, problem: Problem, wanted: Wanted) -> InitialStates:
    with speaking_of(path), open_hdf5(path) as file:
        trajectories = "t-coordinate" in file
        if not trajectories:
            # Datasets are not read here: of trajectories only the first frame is.
            arrays = {name: each for name, each in file.items() if hasattr(each, "shape")}
            if twice := [name for name in file.attrs if name in arrays]:
                raise ValueError(f"has {twice[0]!r} as a dataset and as an attribute. Keep one of them")
            states = _from_arrays(path, arrays | _noted(file.attrs), problem, wanted)
            named = {name: name for name in arrays}
            whole = _key_of_states(arrays, problem)
            units = units_in(file, named, whole or "", _channels(file, problem) if whole else ())
            return _in_units(path, states, units, problem, wanted)
        _refuse_layout(wanted.layout)
    return _read_trajectories(path, problem, wanted)


def _read_netcdf(path: Path, problem: Problem, wanted: Wanted) -> InitialStates:
    with reading_netcdf(path) as dataset:
        _refuse_layout(wanted.layout)
        states, said = convert_states(problem, dataset.load(), f"the model of {problem.name}", wanted.told)
        for sentence in said:
            warnings.warn(f"{path}: {sentence}", UserWarning, stacklevel=3)
        check_noted_units(path, units_of_states(problem, states), problem, wanted.told)
        for name in ("t", "time"):
            if name in states.coords and name in states.dims:
                check_frames(states[name].values, states.sizes[name])
        if NOTE in states.attrs:
            read_note(states.attrs[NOTE])
    start = None
    for name in ("t", "time"):
        if name not in states.dims:
            continue
        last = min(wanted.frames, states.sizes[name]) - 1
        start = float(states[name][last]) if name in states.coords else None
        states = states.isel({name: slice(last + 1)}) if wanted.frames > 1 else states.isel({name: 0}, drop=True)
    return InitialStates(states, None, params_of(problem, states), start)


def _read_trajectories(path: Path, problem: Problem, wanted: Wanted) -> InitialStates:
    # Of what is told any number will do here, so that the file need not say it.
    view = View(time_stride=ONLY_THE_FIRST if wanted.frames == 1 else 1)
    stored = describe(path, view, dict.fromkeys(wanted.told, 0.0))
    _check_channels(path, stored.problem.channels, problem)
    expected = dict(problem.units)
    for name in wanted.told:
        expected.pop(name, None)
    stored, found = convert_trajectories(stored, expected)
    warn_of_conversions(path, found, problem)
    check_noted_units(path, stored.problem.units, problem, wanted.told)
    doubt_trajectories(stored, problem)
    data = stored.load()
    names = data.problem.parameters
    stay = [name for name in problem.parameters if name in names and name not in data.problem.varying]
    table = data.params[:, 0] if data.problem.varying else data.params
    params = {name: table[:, names.index(name)].numpy() for name in stay}
    if wanted.frames > 1:
        # With labels, by which their times are compared with those of training.
        begin = data.to_xarray().isel(t=slice(wanted.frames))
        return InitialStates(begin, None, params, float(begin["t"][-1]))
    return InitialStates(data.u[:, 0].numpy(), data.grid.numpy(), params, float(data.t[0]))


def _from_arrays(path: Path, arrays: Mapping[str, Any], problem: Problem, wanted: Wanted) -> InitialStates:
    """Return states as one array, as the only array, or as one array for each channel."""
    key = _key_of_states(arrays, problem)
    x = points_in({name: np.asarray(arrays[name]) for name in SPACE if name in arrays})
    ndim = problem.ndim if x is None or isinstance(x, tuple) or np.ndim(x) == 1 else np.ndim(x) - 1
    start = None
    if key is not None:
        if "t" in arrays and _has_times(arrays[key], ndim, wanted, arrays):
            check_frames(arrays["t"], np.size(arrays["t"]))
            start = float(np.ravel(arrays["t"])[: wanted.frames][-1])
        u0 = _in_order(_first_frames(arrays[key], ndim, wanted, arrays), arrays, problem)
    elif all(channel in arrays for channel in problem.channels):
        u0 = np.stack([arrays[channel] for channel in problem.channels], axis=-1)
    else:
        expected = " or ".join(["u0", ", ".join(problem.channels)])
        raise ValueError(f"has neither {expected}; it holds {sorted(arrays)[:8]}")
    params = {name: np.asarray(arrays[name]) for name in problem.parameters if name in arrays}
    states = problem.channels if key is None else (key,)
    doubt_arrays(path, arrays, (*states, "t", *SPACE, "channels", *params), problem)
    return InitialStates(u0, x, params, start)


def _in_units(
    path: Path, states: InitialStates, units: Mapping[str, str], problem: Problem, wanted: Wanted
) -> InitialStates:
    """Return states in the units of the model; units that have no certain factor are refused."""
    axes = SPACE[: problem.ndim]
    noted = dict(units)
    if states.x is not None:
        noted = along_all_axes(noted, axes)
    found = conversions(noted, problem.units)
    for name in wanted.told:
        found.pop(name, None)
    check_noted_units(path, units, problem, {*wanted.told, *found})
    warn_of_conversions(path, found, problem)
    states.u0 = _multiply(states.u0, problem.channels, found)
    if isinstance(states.x, tuple):
        lines = []
        for axis, line in zip(axes, states.x, strict=False):
            lines.append(_multiply(line, (axis,), found))
        states.x = tuple(lines)
    elif states.x is not None:
        states.x = _multiply(states.x, axes, found)
    for name, values in states.params.items():
        states.params[name] = _multiply(values, (name,), found)
    if states.start is not None and "t" in found:
        states.start *= found["t"].factor
    return states


def _multiply(values: Any, names: Sequence[str], found: Mapping[str, Conversion]) -> Any:
    """Return values whose last axis is that of the names, or which are of the only name, each by its factor."""
    if not set(names) & found.keys():
        return values
    factors = np.array(factors_of(names, found))
    array = np.asarray(values, dtype="f8")
    if len(names) > 1 and array.shape[-1:] != factors.shape:
        # Of axes that are too few or in another order, which is said where they are read.
        return values
    if len(names) == 1:
        return array * factors[0]
    return array * factors


def _key_of_states(arrays: Mapping[str, Any], problem: Problem) -> str | None:
    """The name of the array that holds all channels, if there is one."""
    key = next((key for key in STATE_KEYS if key in arrays), None)
    others = [name for name in arrays if name not in ("t", *SPACE, "channels", "periodic", *problem.parameters)]
    if key is None and len(others) == 1 and not {*problem.channels} <= {*arrays}:
        key = others[0]
    return key


def _noted(attributes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Names, coordinates and numbers among the attributes of a file; other texts are remarks."""
    noted = {name: np.asarray(value) for name, value in attributes.items() if not isinstance(value, h5py.Empty)}
    told = ("channels", "periodic", *SPACE, "t")
    return {name: value for name, value in noted.items() if name in told or value.dtype.kind in "fiu"}


def _channels(file: Any, problem: Problem) -> tuple[str, ...]:
    """The names of the channels that a file has in one array."""
    for found in (file, file.attrs):
        if "channels" in found:
            return texts_of(np.asarray(found["channels"]))
    return problem.channels


def _has_times(array: Any, ndim: int, wanted: Wanted, arrays: Mapping[str, Any]) -> bool:
    """Return whether an array holds trajectories [b t *x c], or [b t *x] of the only channel, and not states."""
    if wanted.layout is not None:
        return "t" in read_layout(wanted.layout, needed=("x",))
    return array.ndim == ndim + 3 or (array.ndim == ndim + 2 and {"t", "x"} <= arrays.keys())


def _first_frames(array: Any, ndim: int, wanted: Wanted, arrays: Mapping[str, Any]) -> np.ndarray:
    """Return the first frame of trajectories [b t *x c], or so many; states stay as they are."""
    taken = 0 if wanted.frames == 1 else slice(wanted.frames)
    if wanted.layout is not None:
        letters = read_layout(wanted.layout, needed=("x",))
        arranged = arrange(array, letters)
        return np.asarray(arranged[:, taken] if "t" in letters else arranged)
    if not _has_times(array, ndim, wanted, arrays):
        return np.asarray(array)
    beside = {name: np.asarray(arrays[name]) for name in ("t", *SPACE) if name in arrays}
    # Axes in another order are refused, or the first points would be taken for the first times.
    letters = layout_of(array, None, beside)
    frames = np.asarray(array[:, taken])
    return frames if "c" in letters else frames[..., None]


def _in_order(u0: np.ndarray, arrays: Mapping[str, Any], problem: Problem) -> np.ndarray:
    """Return the channels in the order of the model, where the file names them."""
    if "channels" not in arrays:
        return u0
    names = texts_of(np.asarray(arrays["channels"]))
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


READERS: dict[str, Callable[[Path, Problem, Wanted], InitialStates]] = {
    ".nc": _read_netcdf,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".hdf5": _read_hdf5,
    ".h5": _read_hdf5,
}
