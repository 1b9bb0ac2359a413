"""The benchmark's HDF5 layout, read: one dataset per field, coordinates beside them, parameters as attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from vcnef.data.arrays import box, columns_of, make_params, noted_periodic, one_or_each, varying_among
from vcnef.data.files import check_axes
from vcnef.data.hdf5 import ADVICE, FileError, increasing, number, numbers, reading, record, units_in
from vcnef.data.names import FileName, name_own, parse_name, promises_parameters
from vcnef.data.notes import NOTE, understand
from vcnef.data.precision import check_digits, some_rows
from vcnef.data.rows import cut_shape, cut_within
from vcnef.data.source import Source, runs
from vcnef.data.views import View
from vcnef.labels import TIME
from vcnef.periodicity import SPACE, settle
from vcnef.problem import Problem
from vcnef.units import check_units

FIELD_KEYS = {"density": "density", "pressure": "pressure", "vx": "Vx", "vy": "Vy", "vz": "Vz"}
"""Dataset of each channel; a single channel is stored as `tensor`."""
AXIS_KEYS = ("x-coordinate", "y-coordinate", "z-coordinate")
TIME_KEY = "t-coordinate"
LAYOUT = {"tensor", *FIELD_KEYS.values(), *AXIS_KEYS, TIME_KEY, "params", "attempts"}
PARAMETER_KEYS = {"beta": "beta", "nu": "Nu", "eta": "eta", "zeta": "zeta"}
"""Attribute of each parameter."""
SCALAR_PROBLEMS = {("beta",): "advection", ("nu",): "burgers"}


def describe(path: Path, view: View, params: Mapping[str, float], periodic: Any, layout: str | None) -> Source:
    """Look at everything in a file but its fields. What is given is added to what it says, and replaces it."""
    parsed = parse_name(path.stem)
    name = parsed or FileName("", {})
    with reading(path) as file:
        if layout is not None:
            raise FileError(f"names its axes itself, but layout is {layout!r}. Leave layout out.")
        notes = record(file, "problem")
        keys = _field_keys(file, notes)
        lines = [increasing(file, key) for key in AXIS_KEYS if key in file]
        leading, shape = _shape(file, keys, lines)
        times = _times(file, shape[1])
        _check_digits(file, keys, leading, shape)
        if notes:
            problem, table = _noted_problem(file, notes, shape[:2], params, lines)
        else:
            beside = _params_beside(file, shape[:2])
            values = _values(file, path.stem, name, params, beside)
            given = {**values, **beside, **params}
            names, table = make_params(given, *shape[:2])
            # Only what the benchmark would have noted tells an equation: anybody may call a parameter nu.
            problem = _benchmark_problem(name, path.stem, keys, lines, tuple(values))
            problem = replace(problem, parameters=names, varying=varying_among(given, shape[1]), periodic=name.periodic)
            if "periodic" in file.attrs and periodic is None:
                problem = replace(problem, periodic=noted_periodic(file.attrs["periodic"], problem.ndim))
        problem = _with_units(problem, file, keys, params)
        if periodic is not None:
            problem = replace(problem, periodic=settle(periodic, problem.ndim))
        known = bool(notes or parsed) or periodic is not None or "periodic" in file.attrs
        _check_complete(file)
        selection = (view.frames(times), *view.points(shape[2:], periodic=problem.periodic))
        made = {} if notes else _first_generation(problem)
        origin = record(file, NOTE) | {"attributes": made | _attributes(file, name)}
        if not notes:
            origin["split_in_order"] = _is_published(file, path.stem)
        noted = understand(origin, shape[0])
    t = torch.from_numpy(times[selection[0]]).float()
    table = table[:, selection[0]] if problem.varying else table
    thin = [torch.from_numpy(line[cut]) for line, cut in zip(lines, selection[1:], strict=True)]
    grid = torch.stack(torch.meshgrid(*thin, indexing="ij"), dim=-1).float()
    read = partial(_read, path, tuple(keys.values()), leading, selection)
    return Source(path, t, grid, table, problem, read, sides_known=known, **noted)


def _read(
    path: Path,
    keys: tuple[str, ...],
    leading: tuple[int, ...],
    selection: tuple[slice, ...],
    rows: np.ndarray,
    cut: tuple[slice, ...],
) -> np.ndarray:
    """Fields of sorted rows, fetched from the file by strided selections."""
    with reading(path) as file:
        whole = file[keys[0]].shape[len(leading) + 1 :]
        taken = cut_within(selection, cut, whole)
        u = np.empty((len(rows), *cut_shape(whole, taken), len(keys)), dtype=np.float32)
        for channel, key in enumerate(keys):
            chunks = file[key].chunks
            for first, last in runs(rows, chunks[len(leading)] if chunks else 1):
                wanted = rows[first:last]
                # The last axis is thinned here: a disk reads whole lines anyway, and HDF5 skips points slowly.
                lines = file[key][(*leading, slice(int(wanted[0]), int(wanted[-1]) + 1), *taken[:-1])]
                if len(lines) > len(wanted):
                    lines = lines[wanted - wanted[0]]
                u[first:last, ..., channel] = lines[..., taken[-1]]
        bad = ~np.isfinite(u.reshape(len(u), -1)).all(axis=1)
        if bad.any():
            raise FileError(f"has NaN or infinity in trajectory {rows[bad.argmax()]}; remove it from the file.")
    return u


def _is_published(file: h5py.File, stem: str) -> bool:
    """Whether a file without notes of ours is one of the benchmark's: it has their name, or their parameters."""
    return parse_name(stem) is not None or any(key in file.attrs for key in PARAMETER_KEYS.values())


def _field_keys(file: h5py.File, notes: Mapping[str, Any]) -> dict[str, str]:
    """Channel name to dataset name, in the order of the channels."""
    axes = sum(key in file for key in AXIS_KEYS)
    noted = notes.get("channels", [])
    if len(noted) > 1:
        keys = {name: FIELD_KEYS.get(name, name) for name in noted}
    elif "tensor" in file:
        keys = {(noted or ["u"])[0]: "tensor"}
    elif any(key in file for key in FIELD_KEYS.values()):
        keys = {name: FIELD_KEYS[name] for name in ("density", "pressure", *("vx", "vy", "vz")[:axes])}
    else:
        raise FileError(f"has neither 'tensor' nor 'density' nor 'u'; it holds {sorted(file)[:8]}. {ADVICE}")
    for key in keys.values():
        numbers(file, key)
    return keys


def _shape(file: h5py.File, keys: Mapping[str, str], lines: list[np.ndarray]) -> tuple[Any, tuple[int, ...]]:
    """Leading indices to drop, and the shape [n t *x] that the fields then have."""
    numbers(file, AXIS_KEYS[0])
    shapes = {key: file[key].shape for key in keys.values()}
    shape = next(iter(shapes.values()))
    if len(set(shapes.values())) > 1:
        raise FileError(f"has fields of different shapes: {shapes}.")
    # Some early files carry one more axis in front, of length one, from the devices they were made on.
    leading = (0,) if len(shape) == len(lines) + 3 and shape[0] == 1 else ()
    inner = shape[len(leading) :]
    points = tuple(len(line) for line in lines)
    if len(inner) != len(points) + 2 or inner[2:] != points or not inner[0]:
        expected = ", ".join(["samples", "times", *map(str, points)])
        raise FileError(f"has fields of shape {shape}; expected [{expected}] beside its coordinates.")
    return leading, inner


def _check_digits(file: h5py.File, keys: Mapping[str, str], leading: Any, shape: tuple[int, ...]) -> None:
    """Of fields in double precision, for the benchmark's own are in single."""
    for channel, key in keys.items():
        if file[key].dtype.itemsize > 4:
            rows = some_rows(shape[0], file[key].dtype.itemsize * int(np.prod(shape[1:])))
            check_digits(file[key][(*leading, rows)][..., None], (channel,))


def _times(file: h5py.File, frames: int) -> np.ndarray:
    times = increasing(file, TIME_KEY)
    # The benchmark writes one time more than there are frames.
    if len(times) not in (frames, frames + 1):
        raise FileError(f"has {len(times)} times in {TIME_KEY!r} for {frames} frames; expected {frames} or one more.")
    return times[:frames]


def _noted_problem(
    file: h5py.File, notes: Mapping[str, Any], sizes: tuple[int, int], given: Any, lines: list[np.ndarray]
) -> tuple[Problem, Tensor]:
    """Problem and parameters of a file of ours, which describes itself."""
    try:
        problem = Problem.from_dict(notes)
    except (KeyError, TypeError, AttributeError) as error:
        raise FileError(f"has an attribute 'problem' that does not describe one ({error}).") from None
    from vcnef.data.labelled import fit_to_points

    check_axes(problem, len(lines))
    points = torch.stack(torch.meshgrid(*map(torch.from_numpy, lines), indexing="ij"), dim=-1)
    sides = fit_to_points(
        {"domain": problem.domain, "periodic": problem.periodic}, tuple(box(line) for line in lines), points
    )
    problem, names = replace(problem, **sides), problem.parameters
    expected = (*sizes, len(names)) if problem.varying else (sizes[0], len(names))
    table = numbers(file, "params")[()] if names else np.zeros(expected)
    if table.shape != expected or not np.isfinite(table).all():
        raise FileError(f"has 'params' of shape {table.shape}; expected finite {expected} for {names}.")
    known = {**columns_of(table, problem), **given}
    names, columns = make_params(known, *sizes)
    return replace(problem, parameters=names, varying=varying_among(known, sizes[1]), ranges={}), columns


def _with_units(problem: Problem, file: h5py.File, keys: Mapping[str, str], told: Mapping[str, Any]) -> Problem:
    """With the units that datasets note; what is told replaces what the file says, and its unit."""
    named = {TIME: TIME_KEY, **dict(zip(SPACE, AXIS_KEYS, strict=True)), **keys}
    named |= {name: name for name in problem.parameters if name not in told}
    found = units_in(file, {name: key for name, key in named.items() if key != "tensor"}, "tensor", tuple(keys))
    check_units(found, problem.units, "its dataset", "its note 'problem'")
    return replace(problem, units={**found, **problem.units})


def _benchmark_problem(
    name: FileName, stem: str, keys: Mapping[str, str], lines: list[np.ndarray], parameters: tuple[str, ...]
) -> Problem:
    """The problem of a file that does not describe itself: by its name, its fields or its parameters."""
    fluid = f"cns{len(lines)}d" if "density" in keys else ""
    scalar = SCALAR_PROBLEMS.get(parameters, "") if len(lines) == 1 else ""
    domain = tuple(box(line) for line in lines)
    return Problem(name.problem or fluid or scalar or name_own(stem), tuple(keys), parameters, domain)


def _first_generation(problem: Problem) -> dict[str, str]:
    """What a file does not say of itself: Burgers' equation on (−1, 1) is that of 2022, whose waves move at 2u.

    A stride shifts the domain a little.
    """
    (low, high), *_ = problem.domain
    old = problem.name == "burgers" and isclose(low, -1.0, abs_tol=0.05) and isclose(high, 1.0, abs_tol=0.05)
    return {"generation": "2022"} if old else {}


def _params_beside(file: h5py.File, sizes: tuple[int, int]) -> dict[str, np.ndarray]:
    """Datasets of one number, one for each trajectory, or one for each of its frames, that the layout does not know:
    parameters by their names."""
    others = {key: each for key, each in file.items() if key not in LAYOUT and isinstance(each, h5py.Dataset)}
    found = {key: each for key, each in others.items() if each.dtype.kind in "fiu" and each.size is not None}
    changing = {key: each[()] for key, each in found.items() if each.shape == sizes}
    return {key: np.ravel(each) for key, each in found.items() if one_or_each(each, sizes[0])} | changing


def _values(
    file: h5py.File, stem: str, name: FileName, given: Mapping[str, float], beside: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """Parameters of a file that does not describe itself; one of an unknown equation may have none."""
    gas = "tensor" not in file
    expected = ("eta", "zeta") if gas else tuple(name.params) or ("beta", "nu")
    stored = {each: number(file, PARAMETER_KEYS[each]) for each in expected if PARAMETER_KEYS[each] in file.attrs}
    if "params" in file:
        raise FileError("has 'params', but no attribute 'problem' that names them; save such data with `save`.")
    if not (stored or name.params or given or beside) and (gas or promises_parameters(stem)):
        usual = "eta=0.01 and zeta=0.01" if gas else "nu=0.001"
        raise FileError(
            "names its parameters neither in its attributes nor in a file name of the benchmark; "
            f"give them, e.g. --param {usual}, or as params to vcnef.open."
        )
    for key in (stored.keys() & name.params.keys()) - given.keys():
        if not np.isclose(stored[key], name.params[key], rtol=1e-5, atol=0.0):
            raise FileError(
                f"has {key} = {stored[key]:g} in its attributes but {name.params[key]:g} in its name; "
                f"pass the right one as --param {key}=... or params={{{key!r}: ...}}."
            )
    return {**name.params, **stored, **given}


def _attributes(file: h5py.File, name: FileName) -> dict[str, Any]:
    """What else is known: the Mach number of the initial states, and how the file was made."""
    attributes = record(file, "attributes") | ({"recipe": recipe} if (recipe := record(file, "recipe")) else {})
    if "M" in file.attrs:
        attributes["mach"] = number(file, "M")
    elif name.mach is not None:
        attributes["mach"] = name.mach
    if name.initial:
        attributes["initial"] = name.initial
    return attributes


def _check_complete(file: h5py.File) -> None:
    if "attempts" not in file:
        return
    attempts = numbers(file, "attempts")[()]
    if missing := int((attempts < 0).sum()):
        done = f"{attempts.size - missing} of {attempts.size}"
        raise FileError(f"is unfinished: {done} trajectories are made. Resume its generation.")
