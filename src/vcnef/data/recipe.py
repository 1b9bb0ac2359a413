"""What is to be generated: everything that decides the bytes of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log
from operator import index
from typing import Any, Protocol, SupportsIndex, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from vcnef.checks import check_at_least
from vcnef.data.arrays import by_name
from vcnef.data.names import Value, public_name
from vcnef.data.precision import check_resolved
from vcnef.grid import axes, cell_centres
from vcnef.problem import Problem
from vcnef.spelling import spell_value
from vcnef.suggest import suggestion

KINDS = {bool: "true or false", int: "a whole number", float: "a number"}
MOST = 10**8
"""Samples of a data set, cells along an axis, and output times."""
BATCH_BYTES = {"cpu": 64 * 2**20, "cuda": 4 * 2**30}
"""Bytes of fields that are solved at once where no batch is given."""


@runtime_checkable
class Equation(Protocol):
    """What the generator needs of an equation; `vcnef.pde` has those of the benchmark, and your own.

    One may have `ranges` too, from which samples draw the parameters that nothing is said of."""

    name: str
    problem: Problem
    defaults: Mapping[str, float]
    initial_options: Mapping[str, Any]
    resolution: int
    frames: int
    horizon: float

    def initial_states(self, indices, *, seed, resolution, attempt, device, dtype, **options) -> Tensor: ...

    def solve(self, u0, t, params) -> Tensor: ...


@dataclass(frozen=True)
class Recipe:
    """One data set: two runs of the same recipe give the same bytes, however they were interrupted or shared out.

    Samples are solved in batches of fixed membership, since a solver may choose its steps by batch.
    """

    equation: str
    generation: str
    samples: int
    params: Mapping[str, Value]
    """Per name a value, or the (low, high) range that each sample draws from."""
    initial: Mapping[str, Any]
    resolution: int
    times: tuple[float, ...]
    seed: int
    batch: int
    store_stride: int
    """A point is stored every so many cells."""
    device: str

    @property
    def file_name(self) -> str:
        return public_name(self.equation, self.params, self.initial, self.resolution // self.store_stride)

    def to_dict(self) -> dict[str, Any]:
        record = asdict(self)
        return record | {"params": {name: list(v) if isinstance(v, tuple) else v for name, v in self.params.items()}}

    def t(self) -> Tensor:
        return torch.tensor(self.times, dtype=torch.float64)

    def lines(self, problem: Problem) -> list[np.ndarray]:
        """Stored coordinates along each axis."""
        grid = cell_centres(problem.domain, self.resolution, dtype=torch.float64)
        return [line[:: self.store_stride].numpy() for line in axes(grid)]

    def batches(self) -> Iterator[range]:
        for first in range(0, self.samples, self.batch):
            yield range(first, min(first + self.batch, self.samples))

    def table(self, names: Sequence[str], rows: range | None = None) -> np.ndarray:
        """Parameters of some samples or of all, `[n p]`; a drawn one depends on (seed, its name, the sample) alone."""
        chosen = range(self.samples) if rows is None else rows
        columns = [self._column(name, chosen) for name in names]
        return np.stack(columns, axis=1) if columns else np.zeros((len(chosen), 0))

    def _column(self, name: str, rows: range) -> np.ndarray:
        value = self.params[name]
        if not isinstance(value, tuple):
            return np.full(len(rows), value, dtype=np.float64)
        low, high = value
        letters = list(name.encode())
        share = np.array([np.random.default_rng([self.seed, row, *letters]).random() for row in rows])
        # A positive range is drawn evenly in its logarithm: parameters of equations span decades.
        return np.exp(log(low) + share * log(high / low)).clip(low, high) if low > 0 else low + share * (high - low)


def plan(
    equation: Equation,
    *,
    samples: SupportsIndex,
    params: Mapping[str, Any] | None,
    generation: str,
    device: str,
    initial: Mapping[str, Any],
    resolution: SupportsIndex | None = None,
    t: Sequence[float] | None = None,
    frames: int | None = None,
    horizon: float | None = None,
    seed: SupportsIndex = 0,
    batch: SupportsIndex | None = None,
    store_stride: SupportsIndex = 1,
) -> list[Recipe]:
    """One recipe for each value of the parameters, checked; what is not given is the equation's own default."""
    resolution = equation.resolution if resolution is None else resolution
    # NumPy's numbers would be noted as text, which is not what a resumed run has.
    samples, resolution = _whole("samples", samples), _whole("resolution", resolution)
    store_stride, seed = _whole("store_stride", store_stride), _whole("seed", seed)
    batch = None if batch is None else _whole("batch", batch)
    _check_sizes(samples, resolution, store_stride, batch, seed)
    times = _times(equation, t, frames, horizon)
    values = _values(equation, by_name(params))
    _check_options(initial, equation)
    bytes_each = 4 * len(times) * resolution**equation.problem.ndim * len(equation.problem.channels)
    if batch is None:
        batch = max(1, min(samples, BATCH_BYTES.get(device, BATCH_BYTES["cpu"]) // bytes_each))
    options = {**equation.initial_options, **initial}
    common = {"equation": equation.name, "generation": generation, "initial": options, "seed": seed}
    size = {"samples": samples, "resolution": resolution, "times": times, "store_stride": store_stride}
    return [Recipe(**common, **size, params=each, batch=batch, device=device) for each in values]


def _times(
    equation: Equation, t: Sequence[float] | None, frames: int | None, horizon: float | None
) -> tuple[float, ...]:
    """Output times from 0 on: those given, or equally many apart up to the horizon."""
    if t is not None:
        if frames is not None or horizon is not None:
            raise ValueError("Output times are given twice; give either t, or frames and horizon.")
        times = np.asarray(t, dtype=np.float64)
        if times.ndim != 1 or len(times) < 2 or times[0] != 0 or not (np.diff(times) > 0).all() or np.isinf(times[-1]):
            raise ValueError(
                f"t is {spell_value(t)}; expected two or more ascending, finite times, the first of them 0."
            )
        check_resolved(torch.from_numpy(times), "t")
        return tuple(times.tolist())
    frames = equation.frames if frames is None else _whole("frames", frames)
    horizon = equation.horizon if horizon is None else float(horizon)
    if frames > MOST:
        raise ValueError(f"frames is {frames}; expected at most {MOST}. No disk holds as many.")
    if frames < 2 or not 0 < horizon < np.inf:
        raise ValueError(f"frames is {frames} and horizon {horizon:g}; expected 2 frames or more and a time above 0.")
    return tuple(np.linspace(0.0, horizon, frames).tolist())


def _whole(name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}; expected a whole number.") from None


def _check_sizes(samples: int, resolution: int, store_stride: int, batch: int | None, seed: int) -> None:
    check_at_least(1, samples=samples, **({} if batch is None else {"batch": batch}))
    check_at_least(0, seed=seed)
    for name, size in (("samples", samples), ("resolution", resolution)):
        if size > MOST:
            raise ValueError(f"{name} is {size}; expected at most {MOST}. No disk holds as many.")
    if resolution < 4 or store_stride < 1 or resolution % store_stride:
        raise ValueError(
            f"resolution is {resolution} with store_stride {store_stride}; expected 4 or more cells and a divisor."
        )


def _values(equation: Equation, params: Mapping[str, Any]) -> list[dict[str, Value]]:
    """One mapping per value: lists go through together, numbers and ranges stay."""
    _check_names("parameter", params, equation.defaults, equation)
    given = {**equation.defaults, **getattr(equation, "ranges", {}), **params}
    lengths = {name: len(value) for name, value in given.items() if isinstance(value, list)}
    if len(set(lengths.values())) > 1 or 0 in lengths.values():
        raise ValueError(f"Lists of parameters go through together, but have {lengths} values; give equally many.")
    count = next(iter(lengths.values()), 1)
    return [
        {name: _value(name, value[i] if isinstance(value, list) else value) for name, value in given.items()}
        for i in range(count)
    ]


def _value(name: str, value: Any) -> Value:
    try:
        numbers = tuple(float(each) for each in value) if isinstance(value, tuple) else (float(value),)
    except (TypeError, ValueError):
        numbers = ()
    if (
        not numbers
        or not all(np.isfinite(numbers))
        or len(numbers) > 2
        or (len(numbers) == 2 and numbers[0] >= numbers[1])
    ):
        raise ValueError(
            f"Parameter {name} is {spell_value(value)}; expected a number, a list of them, or a (low, high) range."
        )
    return numbers if len(numbers) == 2 else numbers[0]


def _check_options(given: Mapping[str, Any], equation: Equation) -> None:
    """Whether options of the initial states are known, and of the kind that their own values are."""
    usual = equation.initial_options
    _check_names("initial option", given, usual, equation)
    for name, value in given.items():
        kind = type(usual[name])
        fits = isinstance(value, (int, float) if kind is float else kind) and isinstance(value, bool) == (kind is bool)
        if kind in KINDS and not fits:
            raise ValueError(f"{name} is {value!r}; expected {KINDS[kind]}, as its default {usual[name]} is.")


def _check_names(kind: str, given: Mapping[str, Any], known: Mapping[str, Any], equation: Equation) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{equation.name} has no {kind} {name!r}. {suggestion(name, known)}")
