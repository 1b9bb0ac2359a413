"""Plain arrays in: NumPy, torch or xarray, with sensible names and coordinates where none are given."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.checks import check_plain
from vcnef.data.layout import EXAMPLES, arrange, choose_layout, lengths_of
from vcnef.data.precision import LostDigitsError, check_digits, check_not_lost, check_points_resolved, check_resolved
from vcnef.data.seams import warn_of_seams
from vcnef.data.trajectories import Trajectories
from vcnef.grid import cell_centres
from vcnef.pde import equation, is_known
from vcnef.periodicity import SPACE, Periodic, settle
from vcnef.problem import Problem

Domain = tuple[tuple[float, float], ...]
MOST_UNNAMED = 15
"""Channels that need no names. A last axis that is longer is rather one of space, and that of channels missing."""
TIMES, ASSUMED = "times", "assumed"
"""What is noted of data whose times nobody gave."""
MANY_UNNAMED = 5
"""A gas in three dimensions has as many; of more that have no names one may doubt whether they are channels."""


def from_arrays(
    u: Any,
    *,
    t: Any = None,
    x: Any = None,
    params: Any = None,
    channels: Sequence[str] | None = None,
    name: str | None = None,
    periodic: Any = None,
    layout: str | None = None,
) -> Trajectories:
    """Trajectories from an array `u [samples, times, *space, channels]` (NumPy, torch or xarray).

    `layout` names the axes of an array that has them in another order, a letter for each: "n t c x" is samples,
    times, channels and x; one sample, or one channel, needs no axis. `t`: times, by default equally spaced from 0
    to 1. `x`: the coordinates along the axis, a sequence of them for several axes, or a whole grid `[*x D]` (with
    one space axis and D > 1: scattered points); by default the cell centres of the unit box. `params`: per name one
    value, one per sample, or the values of one that changes with time at all frames, [samples, times]. A labelled array
    or dataset brings its own coordinates and parameters. An equation's `name` ("burgers", ...; by default "custom")
    says which symmetries hold. `periodic` is True by default; where some axes close and others end, one value for each,
    as (True, False), or some by name, as {"y": False}.
    """
    if hasattr(u, "dims"):
        from vcnef.data.labelled import from_labelled

        if layout is not None:
            raise ValueError(f"layout is {layout!r}, but a labelled array names its axes itself. Leave layout out.")
        return from_labelled(u, t=t, x=x, params=params, channels=channels, name=name, periodic=periodic)
    if isinstance(u, Mapping):
        raise ValueError(advise_on_arrays(u))
    fields = as_tensor(u, "u")
    letters = choose_layout(layout, fields.shape, lengths_of(t, x, channels))
    if letters is None:
        raise ValueError(
            f"u has shape {tuple(fields.shape)}; expected [samples, times, 1 to 3 space axes, channels]. Name its "
            f"axes, e.g. layout={EXAMPLES.get(fields.ndim, EXAMPLES[4])!r}, or add a missing one with u[None] (one "
            "sample) or u[..., None] (one channel)."
        )
    fields, u = arrange(fields, letters), arrange(u, letters)
    if not fields.numel():
        raise ValueError(f"u has shape {tuple(fields.shape)} and nothing in it. Give at least one trajectory.")
    check_finite(fields, "u")
    fields_named = make_channels(channels, fields.shape[-1], fields.ndim)
    if channels is None and layout is None and x is None and (doubt := doubt_channels(fields)) is not None:
        warnings.warn(doubt, UserWarning, stacklevel=2)
    check_digits(u, fields_named)
    grid, domain = make_grid(x, tuple(fields.shape[2:-1]))
    names, columns = make_params(by_name(params), len(fields), fields.shape[1])
    sides = settle(True if periodic is None else periodic, len(domain))
    problem = Problem(
        name or "custom", fields_named, names, domain, sides, varying=varying_among(by_name(params), fields.shape[1])
    )
    attributes = {TIMES: ASSUMED} if t is None else {}
    data = Trajectories(fields, make_times(t, fields.shape[1]), grid.float(), columns, problem, attributes)
    warn_of_seams(data, said=periodic is not None)
    if (doubt := _doubt_equation(problem)) is not None:
        warnings.warn(doubt, UserWarning, stacklevel=2)
    return data


def _doubt_equation(problem: Problem) -> str | None:
    """Whether data bear the name of an equation that has other fields, in words."""
    if not is_known(problem.name):
        return None
    known = equation(problem.name).problem
    if (known.ndim, known.channels) == (problem.ndim, problem.channels):
        return None
    return (
        f"The data are called {problem.name!r}, which is an equation in {known.ndim}D with the channels "
        f"{', '.join(known.channels)}; they are {problem.ndim}D with {', '.join(problem.channels)}. Give another name, "
        "or name the channels so."
    )


def advise_on_arrays(arrays: Mapping[Any, Any]) -> str:
    """Which one of several arrays to give, in words."""
    shapes = {name: tuple(getattr(each, "shape", ())) for name, each in arrays.items()}
    listed = ", ".join(f"{name!r} {shape}" for name, shape in shapes.items() if not str(name).startswith("__"))
    largest = max(shapes, key=lambda name: len(shapes[name]), default=None)
    many = len(shapes.get(largest, ()))
    example = f", as ...[{largest!r}] with layout={EXAMPLES[many]!r} if its axes are so" if many in EXAMPLES else ""
    return (
        f"u is a {type(arrays).__name__} of {listed}; expected an array [samples, times, 1 to 3 space axes, channels]. "
        f"Give that one of them{example}; an initial and a final state, [samples, x] each, are two frames: "
        "np.stack([a, u], axis=1)[..., None]."
    )


def as_tensor(array: Any, name: str, dtype: torch.dtype = torch.float32) -> Tensor:
    """A tensor on the CPU, of any array of real numbers on any device."""
    if isinstance(array, Tensor):
        check_plain(array, name)
    try:
        if isinstance(array, Tensor):
            if array.is_complex():
                raise TypeError(f"its type is {array.dtype}")
            _check_kept(array.detach(), name, dtype)
            return array.detach().cpu().to(dtype)
        if np.ma.is_masked(array):
            # What lies under a mask is no measurement, and often a number like -9999.
            raise TypeError(f"{np.ma.count_masked(array)} of its values are masked; fill or remove them")
        values = np.asarray(array)
        if values.dtype.kind not in "fiub":
            raise TypeError(f"its type is {values.dtype}")
        _check_kept(values, name, dtype)
        # A copy of our own: torch would otherwise share (or refuse) the caller's read-only memory.
        return torch.from_numpy(np.array(values, dtype={torch.float32: "f4", torch.float64: "f8"}[dtype]))
    except LostDigitsError:
        raise
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of real numbers ({error}).") from None


def _check_kept(values: Any, name: str, dtype: torch.dtype) -> None:
    """Refuse numbers of double precision that single precision would make zero."""
    if dtype == torch.float32 and str(values.dtype).endswith(("float64", "float128")) and 0 not in values.shape:
        # In their own precision: what is longer may be zero in double precision already.
        check_not_lost(max(abs(values.min()), abs(values.max())), name)


def check_finite(u: Tensor, what: str) -> None:
    bad = ~torch.isfinite(u.flatten(1)).all(dim=1)
    if bad.any():
        first = int(bad.nonzero()[0])
        raise ValueError(f"{what} has NaN or infinity in {int(bad.sum())} trajectories, first in {first}; remove them.")


def make_times(t: Any, frames: int) -> Tensor:
    if t is None:
        return torch.linspace(0.0, 1.0, frames, dtype=torch.float64).float()
    times = as_tensor(t, "t", torch.float64)
    if times.shape != (frames,):
        raise ValueError(f"t has shape {tuple(times.shape)}; expected ({frames},), one time for each frame of u.")
    if not torch.isfinite(times).all() or (times.diff() <= 0).any():
        raise ValueError("t is not increasing and finite; sort the frames by time.")
    check_resolved(times, "t")
    return times.float()


def make_channels(channels: Sequence[str] | None, count: int, axes: int) -> tuple[str, ...]:
    """Names of so many channels of an array of so many axes."""
    if channels is None:
        if count > MOST_UNNAMED:
            ways = [EXAMPLES[axes], *(["n t " + " ".join(SPACE[: axes - 2])] if axes < 6 else [])]
            raise ValueError(
                f"u has a last axis of {count}, that of channels; expected up to {MOST_UNNAMED} without names. If it "
                f"is one of space, say so with {' or '.join(f'layout={way!r}' for way in ways)}; otherwise name them."
            )
        return usual_names(count)
    if isinstance(channels, str) or len(channels) != count or None in [*channels]:
        raise ValueError(f"channels are {channels!r}; expected {count} names, one for each channel of u.")
    return tuple(str(channel) for channel in channels)


def usual_names(count: int) -> tuple[str, ...]:
    """Of channels that have none."""
    return ("u",) if count == 1 else tuple(f"u{i + 1}" for i in range(count))


def doubt_channels(u: Tensor) -> str | None:
    """Whether channels without names seem to be points along another axis, in words."""
    *_, last, channels = u.shape
    if channels <= MANY_UNNAMED and (channels == 1 or channels != last):
        return None
    axes = " ".join(SPACE[: u.ndim - 3])
    also = f", or layout='n t {axes} {SPACE[u.ndim - 3]}' if it is one of space" if u.ndim < 6 else ""
    return (
        f"u has trajectories of shape {tuple(u.shape[1:])}, whose last axis is taken for {channels} channels. Name "
        f"them, or give layout='n t {axes} c' if that is right{also}, or layout='n t c {axes}' if channels come "
        "before space."
    )


def noted_periodic(noted: Any, ndim: int) -> Periodic:
    """Return what a file notes, as one number or one for each axis; a text such as "False" would be true."""
    value = np.asarray(noted)
    if value.dtype.kind not in "biu" or value.size not in (1, ndim) or not np.isin(value, (0, 1)).all():
        axes = f" or one of them for each of {', '.join(SPACE[:ndim])}" if ndim > 1 else ""
        raise ValueError(
            f"The note 'periodic' is {value.tolist()!r}; expected 1 or 0{axes}. Say it with periodic=... instead."
        )
    return settle(bool(value.item()) if value.size == 1 else value.astype(bool), ndim)


def note_periodic(periodic: Periodic) -> int | list[int]:
    """Return the note that `noted_periodic` reads."""
    return int(periodic) if isinstance(periodic, bool) else [int(each) for each in periodic]


def by_name(params: Any) -> Mapping[str, Any]:
    """Parameters as they are given, or none."""
    if params is not None and not isinstance(params, Mapping):
        raise ValueError(f"params is {type(params).__name__}; expected values by name, e.g. params={{'nu': nu}}.")
    return params or {}


def make_params(
    params: Mapping[str, Any], samples: int, frames: int | None = None, dtype: torch.dtype = torch.float32
) -> tuple[tuple[str, ...], Float[Tensor, "n p"] | Float[Tensor, "n t p"]]:
    """Names and table of parameters given by name: [samples, p], or where values of one are given at all of so many
    frames, [samples, frames, p]."""
    columns = []
    for name, value in params.items():
        column = as_tensor(value, f"params[{name!r}]", dtype)
        varies = is_over_time(column, frames) and len(column) in (1, samples)
        if not varies and not one_or_each(column, samples):
            over_time = "" if frames is None else f", or [{samples}, {frames}], those at all times of a changing one"
            raise ValueError(
                f"params[{name!r}] has shape {tuple(column.shape)}; expected one value or {samples}, one per "
                f"sample{over_time}."
            )
        if not torch.isfinite(column).all():
            raise ValueError(f"params[{name!r}] has NaN or infinity; expected finite numbers.")
        columns.append(column.expand(samples, -1) if varies else column.reshape(-1).expand(samples))
    if any(column.ndim == 2 for column in columns):
        columns = [column if column.ndim == 2 else column[:, None].expand(-1, frames) for column in columns]
    return tuple(map(str, params)), torch.stack(columns, dim=-1) if columns else torch.zeros(samples, 0, dtype=dtype)


def varying_among(params: Mapping[str, Any], frames: int) -> tuple[str, ...]:
    """The names of those whose values are given at all of so many frames."""
    return tuple(str(name) for name, value in params.items() if is_over_time(value, frames))


def is_over_time(value: Any, frames: int | None) -> bool:
    """Whether values are [samples, frames]; at a single one there is nothing that changes."""
    return frames != 1 and np.ndim(value) == 2 and np.shape(value)[1] == frames


def columns_of(table: Any, problem: Problem) -> dict[str, Any]:
    """The columns of a table of parameters by name, [n] or, of those that change with time, [n, t]."""
    named = {}
    for i, name in enumerate(problem.parameters):
        column = table[..., i]
        named[name] = column[:, 0] if column.ndim == 2 and name not in problem.varying else column
    return named


def one_or_each(array: Any, samples: int) -> bool:
    """Whether it holds one number or one per sample. Axes of length one do not count: MATLAB writes them."""
    return [n for n in array.shape if n != 1] in ([], [samples])


def make_grid(x: Any, shape: tuple[int, ...]) -> tuple[Tensor, Domain]:
    """The grid `[*x D]` and its box, from axes, from a whole grid, or of the unit box when nothing is given.

    In double precision; data keep a single one.
    """
    if x is None:
        domain = ((0.0, 1.0),) * len(shape)
        return cell_centres(domain, shape, dtype=torch.float64), domain
    if are_axes(x, len(shape)):
        lines = [as_tensor(axis, "x", torch.float64) for axis in x]
    elif are_axes(x, len(shape) + 1) and len(x) != shape[0]:  # as many points have as many coordinates each
        raise ValueError(
            f"x has {len(x)} axes, but u those of {shape} points and one for channels. "
            "If u is a single field, add its channel with u[..., None]."
        )
    else:
        points = as_tensor(x, "x", torch.float64)
        if points.ndim == len(shape) + 1 and tuple(points.shape[:-1]) == shape:
            return _whole_grid(points)
        lines = [points]
    if any(line.ndim != 1 for line in lines) or tuple(len(line) for line in lines) != shape:
        got = tuple(tuple(line.shape) for line in lines)
        raise ValueError(f"x has axes of shape {got}; expected lengths {shape}, the space axes of u.")
    return torch.stack(torch.meshgrid(*lines, indexing="ij"), dim=-1), _boxes(lines)


def are_axes(x: Any, ndim: int) -> bool:
    """Whether coordinates are those along each axis of a grid."""
    return isinstance(x, list | tuple) and len(x) == ndim and all(np.ndim(line) == 1 for line in x)


def _whole_grid(points: Tensor) -> tuple[Tensor, Domain]:
    ndim = points.shape[-1]
    if ndim > 3 or not torch.isfinite(points).all():
        raise ValueError(f"x has {ndim} coordinates per point; expected 1 to 3, all finite.")
    if points.ndim == ndim + 1:
        lines = [points.movedim(axis, 0).reshape(points.shape[axis], -1, ndim)[:, 0, axis] for axis in range(ndim)]
        _check_product(points, lines)
        return points, _boxes(lines)
    check_points_resolved(points.flatten(0, -2))
    low, high = points.flatten(0, -2).amin(dim=0), points.flatten(0, -2).amax(dim=0)
    return points, tuple(zip(low.tolist(), high.tolist(), strict=True))


def _check_product(points: Tensor, lines: Sequence[Tensor]) -> None:
    """Refuse a grid that its axes do not tell: files, labels, pictures and stencils know no other."""
    steps = torch.stack([(line[-1] - line[0]).abs() / max(1, len(line) - 1) for line in lines])
    mesh = torch.stack(torch.meshgrid(*lines, indexing="ij"), dim=-1)
    if ((points - mesh).abs() > 1e-3 * steps).any():
        raise ValueError(
            f"x of shape {tuple(points.shape)} is no product of axes in the order of u; expected np.meshgrid(..., "
            f"indexing='ij'). If it is bent, give scattered points: x.reshape(-1, {len(lines)}), and u likewise."
        )


def _boxes(lines: Sequence[Tensor]) -> Domain:
    domain = tuple(box(line.numpy()) for line in lines)
    for line in lines:
        check_resolved(line, "x")
    return domain


def box(line: np.ndarray) -> tuple[float, float]:
    """The interval whose cells have these centres; 0.99999994 is 1, for coordinates are often of single precision."""
    if len(line) < 2 or not np.isfinite(line).all() or (np.diff(line) <= 0).any():
        raise ValueError(f"x has an axis of {len(line)} points that is not increasing; expected two or more, sorted.")
    first, last = float(line[0]), float(line[-1])
    half, noise = (last - first) / (len(line) - 1) / 2, 1e-6 * max(abs(first), abs(last))
    return round_digits(first - half, noise), round_digits(last + half, noise)


def round_digits(value: float, noise: float) -> float:
    """To four digits, if noise is all that separates it from such a number."""
    short = float(f"{value:.4g}") if abs(value) > noise else 0.0
    return short if abs(short - value) <= noise else value
