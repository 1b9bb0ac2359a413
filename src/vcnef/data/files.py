"""NumPy and NetCDF files, described for reading."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vcnef.data.archives import reading_npz
from vcnef.data.arrays import (
    columns_of,
    from_arrays,
    make_grid,
    make_params,
    noted_periodic,
    one_or_each,
    usual_names,
    varying_among,
)
from vcnef.data.fields import Fields, HeldFields, MappedFields, bytes_each, look, read_finite
from vcnef.data.inside import open_hdf5
from vcnef.data.layout import EXAMPLES, Letters, arrange, choose_layout, lengths_of, spell_layout, usual_layout
from vcnef.data.names import name_own
from vcnef.data.notes import NOTE, read_note, understand
from vcnef.data.precision import check_digits, some_rows
from vcnef.data.source import Source
from vcnef.data.views import View
from vcnef.periodicity import SPACE, settle
from vcnef.problem import Problem
from vcnef.suggest import nearest

if TYPE_CHECKING:
    import xarray as xr

ARRAYS = ("u", "t", *SPACE, "channels", "periodic", "params", "problem", NOTE)
"""What an .npz file holds; every other array is a parameter."""
MEANT = {
    "time": "t", "times": "t", "t-coordinate": "t", "grid": "x", "points": "x", "coordinates": "x", "coords": "x",
    "x-coordinate": "x", "y-coordinate": "y", "z-coordinate": "z",
}  # fmt: skip
Params = Mapping[str, float]
DAMAGE = (
    OSError, EOFError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError, MemoryError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What libraries raise over files that are damaged."""


def describe_npy(path: Path, view: View, params: Params, periodic: Any, layout: str | None) -> Source:
    """One array `u [n t *x c]`; it is mapped, so that only the frames and points asked for are read."""
    with speaking_of(path):
        u = np.load(path, mmap_mode="r", allow_pickle=False)
        letters = layout_of(u, layout, {})
        mapped = MappedFields(path, letters, arrange(u, letters).shape, u.dtype)
        return describe_fields(path, view, mapped, params=params, known=told(periodic), settled=layout is not None)


def describe_npz(path: Path, view: View, params: Params, periodic: Any, layout: str | None) -> Source:
    """Arrays `u`, and if known `t`, `x`, `channels`, `periodic` and parameters by name.

    `params [n p]` and `problem` are as `save` writes them.
    """
    from vcnef.data.labelled import fit_to_points

    with speaking_of(path), reading_npz(path) as arrays:
        if "u" not in arrays:
            raise ValueError(f"has no array 'u'; it holds {sorted(arrays)[:8]}")
        problem = _noted_problem(arrays["problem"]) if "problem" in arrays else None
        if problem is None:
            letters = layout_of(arrays["u"], layout, arrays)
            u = HeldFields(arrange(arrays["u"], letters))
            return describe_named(path, view, u, arrays, params, periodic, settled=layout is not None)
        _refuse_layout(layout)
        u = arrays["u"]
        given = {**_named_params(arrays, problem, u.shape[:2]), **params}
        labels = {"t": arrays.get("t"), "x": points_in(arrays), "params": given, "note": read_note(arrays.get(NOTE))}
        known = {name: getattr(problem, name) for name in ("name", "domain", "periodic", "units")}
        grid, box = make_grid(labels["x"], u.shape[2:-1])
        check_axes(problem, len(box))
        known = fit_to_points(known, box, grid) | told(periodic)
        return describe_fields(path, view, HeldFields(u), **labels, channels=problem.channels, known=known)


def describe_netcdf(path: Path, view: View, params: Params, periodic: Any, layout: str | None) -> Source:
    """Variables over t and x (and sample, y, z, channel) or point, as `Trajectories.save` or xarray write them."""
    from vcnef.data.labelled import fit_to_points, noted_problem, units_of, unpack

    with reading_netcdf(path) as dataset:
        _refuse_layout(layout)
        labels = unpack(dataset)
        units = units_of(dataset, labels.get("channels", ()), labels["params"])
        labels["params"] = {**labels["params"], **params}
        u = HeldFields(labels.pop("u"))
        grid, box = make_grid(labels["x"], u.shape[2:-1])
        attributes = {name: value for name, value in dataset.attrs.items() if name not in told(periodic)}
        noted = fit_to_points(noted_problem(attributes, len(box)), box, grid)
        known = noted | {"units": units} | told(periodic)
        return describe_fields(path, view, u, **labels, known=known, note=read_note(dataset.attrs.get(NOTE)))


def describe_named(
    path: Path,
    view: View,
    u: Fields,
    arrays: Mapping[str, Any],
    params: Params,
    periodic: Any,
    *,
    settled: bool,
    units: Mapping[str, str] | None = None,
) -> Source:
    """Fields with arrays beside them, whose names say what they are."""
    channels = list(name_channels(arrays, u.shape[-1])) if "channels" in arrays else None
    known = told(periodic)
    if "periodic" in arrays and periodic is None:
        _, box = make_grid(points_in(arrays), u.shape[2:-1])
        known = {"periodic": noted_periodic(arrays["periodic"], len(box))}
    given = {**_named_params(arrays, None, tuple(u.shape[:2])), **params}
    labels = {"t": arrays.get("t"), "x": points_in(arrays), "params": given, "note": read_note(arrays.get(NOTE))}
    known |= {"units": dict(units or {})}
    return describe_fields(path, view, u, **labels, channels=channels, known=known, settled=settled)


def name_channels(arrays: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """The names of so many channels that lie beside them, or the usual ones."""
    return texts_of(arrays["channels"]) if "channels" in arrays else usual_names(count)


def texts_of(array: Any) -> tuple[str, ...]:
    """The texts of an array, which files often hold as bytes."""
    return tuple(each.decode() if isinstance(each, bytes) else str(each) for each in np.ravel(array).tolist())


def layout_of(u: Any, layout: str | None, arrays: Mapping[str, Any]) -> Letters:
    """The layout of an array, by what is told or lies beside it; see `choose_layout`."""
    if u.dtype.kind not in "fiu" or not u.size:
        raise ValueError(f"has {u.dtype} of shape {u.shape}; expected numbers [samples, times, space..., channels]")
    channels = np.atleast_1d(arrays["channels"]) if "channels" in arrays else None
    letters = choose_layout(layout, u.shape, lengths_of(arrays.get("t"), points_in(arrays), channels))
    if letters is None:
        raise ValueError(
            f"has {u.dtype} of shape {u.shape}; expected numbers [samples, times, space..., channels]. Add what is "
            f"missing, or name the axes, e.g. layout={EXAMPLES.get(u.ndim, EXAMPLES[4])!r}"
        )
    return letters


def _refuse_layout(layout: str | None) -> None:
    if layout is not None:
        raise ValueError(f"names its axes itself, but layout is {layout!r}. Leave layout out")


@contextmanager
def reading_netcdf(path: Path) -> Iterator[xr.Dataset]:
    """The open dataset."""
    import xarray as xr

    with speaking_of(path):
        with path.open("rb") as file:
            if file.read(3) == b"CDF":
                raise ValueError("has the classic format of NetCDF 3; expected NetCDF 4. Convert it with nccopy -k nc4")
        open_hdf5(path).close()
        # Times as they are counted: "hours since" a day would be read as dates.
        with xr.open_dataset(path, engine="h5netcdf", decode_times=False) as dataset:
            yield dataset


@contextmanager
def speaking_of(path: Path) -> Iterator[None]:
    """Whatever goes wrong inside is said in one sentence that names the file."""
    try:
        yield
    except ValueError as error:
        text = str(error).splitlines()[0].rstrip(".")
        if text.startswith(str(path)):  # It has been said so inside.
            raise ValueError(f"{text}.") from None
        raise ValueError(f"{path} {text if text.startswith('has ') else f'cannot be used: {text}'}.") from None
    except DAMAGE as error:
        reason = (str(error).strip("'\"").splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ValueError(f"{path} is no {path.suffix} file, or it is damaged or cut short ({reason}).") from None


def points_in(arrays: Mapping[str, Any]) -> Any:
    """The points as `from_arrays` takes them: `x` as it is, or a tuple where y, or y and z, lie beside it."""
    there = [axis for axis in SPACE if axis in arrays]
    if there != list(SPACE[: len(there)]):
        raise ValueError(f"has the axes {', '.join(there)}; expected {', '.join(SPACE[: len(there)])}. Rename them")
    return tuple(arrays[axis] for axis in there) if len(there) > 1 else arrays.get("x")


def _noted_problem(text: np.ndarray) -> Problem:
    try:
        return Problem.from_dict(json.loads(str(text)))
    except (json.JSONDecodeError, RecursionError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"has an array 'problem' that does not describe one as `save` does: {str(text)[:40]!r}. Leave it out; "
            "an equation is named by open(..., equation=...)"
        ) from None


def check_axes(problem: Problem, ndim: int) -> None:
    """Refuse a description of data with other space axes."""
    if problem.ndim != ndim:
        raise ValueError(
            f"has 'problem' with a domain of {problem.ndim} axes, but points along {ndim}. Both must come from one "
            "`save`"
        )


def _named_params(arrays: Mapping[str, Any], problem: Problem | None, sizes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """The columns of `params`, which `problem` names, and all arrays of one number for each sample or for all, or of
    one for each sample and frame, whose numbers are the `sizes`."""
    samples = sizes[0] if sizes else 0
    if "params" in arrays and problem is None:
        shape = arrays["params"].shape
        raise ValueError(f"has 'params' of shape {shape} without names; save each by its own, e.g. nu=params[:, 0]")
    named = {}
    if problem is not None and ("params" in arrays or problem.parameters):
        table = arrays["params"]
        if table.ndim not in (2, 3) or table.shape[-1] != len(problem.parameters):
            raise ValueError(
                f"has 'params' of shape {table.shape}; expected a column for each of the {len(problem.parameters)} "
                f"parameters, {', '.join(problem.parameters) or 'of which there are none'}. Both must come from one "
                "`save`"
            )
        named = columns_of(table, problem)
    for name in [each for each in arrays if each not in ARRAYS]:
        values = arrays[name]
        varies = len(sizes) == 2 and values.shape == sizes
        if name in MEANT or not (varies or one_or_each(values, samples)) or values.dtype.kind not in "fiu":
            hint = f"Did you mean {MEANT[name]!r}?" if name in MEANT else nearest(name, ARRAYS)
            raise ValueError(
                f"has an array {name!r} of shape {values.shape}, which is none of {', '.join(ARRAYS)} and no "
                f"parameter, one number, {samples} or {sizes}.{hint and ' '}{hint} Rename it, or leave it out."
            )
        named[name] = values if varies else values.ravel()
    return named


def told(periodic: Any) -> dict[str, Any]:
    """What replaces the note of a file, if anything does."""
    return {} if periodic is None else {"periodic": periodic}


def describe_fields(
    path: Path, view: View, u: Fields, *, params: Any, known: Mapping[str, Any], settled: bool = True, t: Any = None,
    x: Any = None, channels: Any = None, note: Mapping[str, Any] | None = None,
) -> Source:  # fmt: skip
    """Checks and defaults are those of `from_arrays`, tried on the first trajectory; `known` is of the problem.

    Unless the layout is `settled`, one may doubt whether what is last are channels.
    """
    if u.dtype.kind not in "fiu" or len(u.shape) < 4 or not all(u.shape):
        raise ValueError(f"has {u.dtype} of shape {u.shape}; expected numbers [samples, times, space..., channels]")
    # Where nothing is known of the sides, `open` looks at more than one trajectory.
    said = "periodic" in known
    layout = spell_layout(usual_layout(len(u.shape) - 3)) if settled else None
    labels = {"t": t, "x": x, "channels": channels, "name": name_own(path.stem), "layout": layout}
    if u.dtype.itemsize > 4:
        seen = u.u if isinstance(u, HeldFields) else look(u, some_rows(u.shape[0], bytes_each(u)))
        check_digits(seen, usual_names(u.shape[-1]) if channels is None else [str(name) for name in channels])
    sample = np.asarray(look(u, np.array([0])), dtype=np.float32)
    first = from_arrays(sample, **labels, periodic=known.get("periodic", False))
    names, table = make_params(params, *u.shape[:2])
    sides = settle(known.get("periodic", True), first.problem.ndim)
    changing = varying_among(params, u.shape[1])
    problem = replace(first.problem, parameters=names, varying=changing, **{**known, "periodic": sides})
    frames = view.frames(first.t.numpy())
    table = table[:, frames] if changing else table
    points = view.points(first.resolution, periodic=problem.periodic)
    read = partial(read_finite, path, u, (frames, *points))
    noted = {"sides_known": said, **understand(note or {}, u.shape[0])}
    noted["attributes"] = {**first.attributes, **noted["attributes"]}
    return Source(path, first.t[frames], first.grid[points], table, problem, read, **noted)
