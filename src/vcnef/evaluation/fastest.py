"""The settings with which a model, or a solver, is fastest on a device: how many at once, on how many threads."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from vcnef.accelerate.numbers import cpu_multiplies_bf16
from vcnef.data.rows import spread
from vcnef.evaluation.selections import Selection, known_of_time
from vcnef.pde.equation import OWN
from vcnef.surrogate import Surrogate
from vcnef.timing import time_model

BATCHES = {"cpu": (16, 1, 4, 64), "cuda": (256, 64, 1024)}
"""Trajectories at once that are tried; threads and numbers are chosen with the first."""
MOST_POINTS = {"cpu": 2**18, "cuda": 2**24}
"""Of all states that are asked at once."""
REPEATS = 3
HARMLESS = 0.3
"""Of a model's error, that half precision may change its answers by: together that is an error larger by 4 %."""


@dataclass(frozen=True)
class Way:
    """Seconds per trajectory, with the settings that give them."""

    seconds: float
    samples: int
    """At once."""
    threads: int | None = None
    """Of a CPU."""
    precision: str | None = None
    compiled: bool = False


def fastest_model(
    surrogate: Any, data: Any, params: Tensor, selection: Selection, device: torch.device, nrmse: float
) -> Way:
    """How a model with this error answers fastest; rows are repeated where the data have too few to fill a batch."""
    first, *others = _batches(prod(selection.grid(data).shape[:-1]), device)
    precisions = [None]
    if _half_on_cpu(surrogate, device) and _distance(surrogate, data, params, selection, device) <= HARMLESS * nrmse:
        precisions.append("bf16")
    best = None
    for threads in thread_counts(device):
        for precision in precisions:
            way = _time(surrogate, data, params, selection, device, Way(0.0, first, threads, precision))
            best = way if best is None or way.seconds < best.seconds else best
    for samples in others:
        asked = Way(0.0, samples, best.threads, best.precision)
        way = _time(surrogate, data, params, selection, device, asked)
        best = way if way.seconds < best.seconds else best
    return best


def thread_counts(device: torch.device) -> tuple[int | None, ...]:
    """Numbers of threads to try: one, since small tensors are not worth sharing, and all."""
    if device.type != "cpu":
        return (None,)
    return tuple(dict.fromkeys((1, torch.get_num_threads())))


@contextmanager
def on_threads(count: int | None) -> Iterator[None]:
    """Within this context torch computes on so many threads; None leaves it as it is."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def can_compile(known: Any, device: torch.device) -> bool:
    """Whether a solver's steps can be fused: those of the package's equations, on a machine with a C++ compiler."""
    if known.generation == OWN or known.solver is None:
        return False
    return device.type != "cpu" or any(shutil.which(name) for name in ("g++", "clang++", "c++"))


def _batches(points: int, device: torch.device) -> Sequence[int]:
    kind = device.type if device.type in BATCHES else "cpu"
    fitting = [each for each in BATCHES[kind] if each * points <= MOST_POINTS[kind]]
    return fitting or (1,)


def _half_on_cpu(surrogate: Any, device: torch.device) -> bool:
    """Whether there is a half precision to choose: on a GPU it is the usual one."""
    return device.type == "cpu" and isinstance(surrogate, Surrogate) and cpu_multiplies_bf16()


def _distance(surrogate: Any, data: Any, params: Tensor, selection: Selection, device: torch.device) -> float:
    """What half precision changes the answers by, relative to their size."""
    call = _question(surrogate, data, params, selection, device, 4)
    usual = call()
    return float((call(precision="bf16") - usual).norm() / usual.norm())


def _time(surrogate: Any, data: Any, params: Tensor, selection: Selection, device: torch.device, way: Way) -> Way:
    call = _question(surrogate, data, params, selection, device, way.samples)
    if way.precision is not None:
        call = partial(call, precision=way.precision)
    with on_threads(way.threads):
        seconds = time_model(call, device, repeats=REPEATS) / way.samples
    return replace(way, seconds=seconds)


def _question(
    surrogate: Any, data: Any, params: Tensor, selection: Selection, device: torch.device, samples: int
) -> Callable[..., Tensor]:
    """The model asked for so many trajectories at once."""
    distinct = spread(len(data), min(len(data), samples))
    places = torch.arange(samples) % len(distinct)
    begin = selection.begin(data.read(distinct))[places].to(device)
    own = params[distinct[places].to(params.device)].to(device)
    grid, t = selection.grid(data).to(device), selection.times(data).to(device)
    return partial(surrogate.answer, begin, grid, t, own, **known_of_time(surrogate, data, selection, own))
