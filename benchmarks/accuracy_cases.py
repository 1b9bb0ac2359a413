"""The cases of `benchmarks/accuracy.py`: which trajectories are trained on, and which are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import yaml

from vcnef.config import Config
from vcnef.data import Trajectories, generate
from vcnef.pde import equation
from vcnef.suggest import suggestion

CASES = Path(__file__).parent / "accuracy.yaml"
ROOM = 20e9
"""Bytes; larger sets are kept at the points of training, and their test trajectories are made once more at all."""
SMOKE_SIDES = {1: 32, 2: 32, 3: 8}
Values = dict[str, float]


@dataclass(frozen=True)
class Case:
    """What is generated, trained on and judged; `benchmarks/accuracy.yaml` explains the fields."""

    name: str
    equation: str
    generation: str
    samples: int
    params: Mapping[str, Sequence[float]]
    minutes: float
    space: Sequence[int]
    time: Sequence[int]
    unseen: Mapping[str, Sequence[float]] = field(default_factory=dict)
    initial: Mapping[str, Any] = field(default_factory=dict)
    resolution: int | None = None
    frames: int | None = None
    data_seed: int = 0

    @property
    def tests(self) -> int:
        """Test trajectories of each value."""
        return max(1, self.samples // 10)

    def generate(self, params: Mapping[str, Any], samples: int, device: torch.device, stride: int = 1) -> Trajectories:
        given = {"generation": self.generation, "seed": self.data_seed, "store_stride": stride, **self.size()}
        return generate(self.equation, samples=samples, params=params, device=device, **given, **self.initial)

    def size(self) -> dict[str, int]:
        known = equation(self.equation)
        return {"resolution": self.resolution or known.resolution, "frames": self.frames or known.frames}

    def bytes(self) -> int:
        """Of all training values at full resolution."""
        problem, size = equation(self.equation).problem, self.size()
        numbers = size["frames"] * size["resolution"] ** problem.ndim * len(problem.channels)
        return 4 * numbers * self.samples * len(by_value(self.params))

    def describe(self) -> dict[str, Any]:
        """What decides the bytes of the data."""
        others = ("name", "minutes", "space", "time")
        horizon = equation(self.equation).horizon
        kept = {name: value for name, value in asdict(self).items() if name not in others}
        return kept | self.size() | {"horizon": horizon}

    def shrunk(self) -> Case:
        """The same in seconds: few trajectories of at most two values, on fewer points and at a fifth of the times."""
        known = equation(self.equation)
        side = SMOKE_SIDES[known.problem.ndim]
        fewer = [{name: list(each)[:2] for name, each in values.items()} for values in (self.params, self.unseen)]
        space = sorted({max(2, points * side // known.resolution) for points in self.space})
        frames, *time = (frames // 5 + 1 for frames in (known.frames, *self.time))
        return replace(
            self, samples=20, resolution=side, frames=frames, params=fewer[0], unseen=fewer[1], space=space, time=time
        )


def read_case(name: str) -> Case:
    cases = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    if name not in cases:
        raise ValueError(f"There is no case {name!r}. {suggestion(name, cases)}")
    return Case(name=name, **cases[name])


def make_data(case: Case, config: Config, device: torch.device) -> tuple[Trajectories, Trajectories | None]:
    """What is trained on, and the same at full resolution where there is room for it."""
    view = config.view()
    stride = 1 if case.bytes() <= ROOM else view["space_stride"]
    data = case.generate(case.params, case.samples, device, stride)
    seen = data.view(**view | {"space_stride": view["space_stride"] // stride})
    return seen, data if stride == 1 else None


def held_out(
    case: Case, full: Trajectories | None, device: torch.device
) -> Iterator[tuple[Values, bool, Trajectories]]:
    """The test trajectories of each parameter value, and whether the value is one of training.

    All values have the same initial states, the first tenth, from which nothing was trained.
    """
    for number, values in enumerate(by_value(case.params)):
        if full is None:
            yield values, True, replace(case.generate(values, case.tests, device), subset="test")
        else:
            rows = slice(number * case.samples, number * case.samples + case.tests)
            own = {"u": full.u[rows], "params": full.params[rows], "parts": (case.tests,)}
            yield values, True, replace(full, **own, subset="test")
    for values in by_value(case.unseen):
        yield values, False, replace(case.generate(values, case.tests, device), subset="test")


def by_value(params: Mapping[str, Sequence[float]]) -> list[Values]:
    """Lists of parameters go through together."""
    return [dict(zip(params, each, strict=True)) for each in zip(*params.values(), strict=True)]
