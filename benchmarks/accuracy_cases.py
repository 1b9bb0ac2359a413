"""The cases of `benchmarks/accuracy.py`: which trajectories are trained on, and which are judged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import yaml

from vcnef.config import Config
from vcnef.data import Trajectories, generate
from vcnef.pde import equation
from vcnef.suggest import suggestion
from vcnef.whole import replacing

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
    fresh: int = 0

    @property
    def tests(self) -> int:
        """Test trajectories of each value."""
        return self.fresh or max(1, self.samples // 10)

    def generate(self, params: Mapping[str, Any], device: torch.device, stride: int = 1) -> Trajectories:
        """What is trained on, and the first tenth beside it."""
        return self._generate(params, self.samples, self.data_seed, device, stride)

    def generate_tests(self, params: Mapping[str, Any], device: torch.device) -> Trajectories:
        """At all points."""
        seed = self.data_seed + 1 if self.fresh else self.data_seed
        return replace(self._generate(params, self.tests, seed, device), subset="test")

    def _generate(
        self, params: Mapping[str, Any], samples: int, seed: int, device: torch.device, stride: int = 1
    ) -> Trajectories:
        given = {"generation": self.generation, "seed": seed, "store_stride": stride, **self.size(), **self.initial}
        return generate(self.equation, samples=samples, params=params, device=device, **given)

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
        few = {"samples": 20, "fresh": min(self.fresh, 2), "resolution": side, "frames": frames}
        return replace(self, **few, params=fewer[0], unseen=fewer[1], space=space, time=time)


def read_case(name: str) -> Case:
    cases = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    if name not in cases:
        raise ValueError(f"There is no case {name!r}. {suggestion(name, cases)}")
    return Case(name=name, **cases[name])


class CaseData:
    """The trajectories of a case, made once for any number of runs.

    `cache` is a folder in which they outlast the process; it must not outlast a change of the solvers.
    """

    def __init__(self, case: Case, device: torch.device, cache: Path | None = None) -> None:
        self.case, self.device, self.cache = case, device, cache
        self._made: dict[int, Trajectories] = {}
        self._tests: list[Trajectories] = []

    def seen(self, config: Config) -> Trajectories:
        """What is trained on, of all splits, at the points and times of the configuration."""
        view = config.view()
        stride = 1 if self.case.bytes() <= ROOM else view["space_stride"]
        if stride not in self._made:
            self._made[stride] = self.generated(stride)
        return self._made[stride].view(**view | {"space_stride": view["space_stride"] // stride})

    def generated(self, stride: int) -> Trajectories:
        """All that is trained on, at every so many points."""
        case = self.case
        return self._kept(["seen", stride], lambda: case.generate(case.params, self.device, stride))

    def generated_tests(self, values: Values) -> Trajectories:
        return self._kept(["test", values], lambda: self.case.generate_tests(values, self.device))

    def _kept(self, what: Sequence[Any], make: Callable[[], Trajectories]) -> Trajectories:
        if not self.cache:
            return make()
        described = json.dumps([self.case.describe(), *what], sort_keys=True)
        path = self.cache / f"{self.case.name}_{what[0]}_{hashlib.sha256(described.encode()).hexdigest()[:12]}.pt"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                torch.save(make(), temporary)
        return torch.load(path, weights_only=False, mmap=True)

    def held_out(self) -> Iterator[tuple[Values, bool, Trajectories]]:
        """The test trajectories of each parameter value at all points, and whether the value is one of training.

        All values have the same initial states, from which nothing was trained: the first tenth, or `fresh` ones.
        Some take minutes to make, so each is made when its turn comes.
        """
        seen, unseen = by_value(self.case.params), by_value(self.case.unseen)
        for number, values in enumerate(seen + unseen):
            if number == len(self._tests):
                self._tests.append(self._test(number, values))
            yield values, number < len(seen), self._tests[number]

    def _test(self, number: int, values: Values) -> Trajectories:
        full, case = self._made.get(1), self.case
        if full is None or case.fresh or number >= len(by_value(case.params)):
            return self.generated_tests(values)
        rows = slice(number * case.samples, number * case.samples + case.tests)
        return replace(full, u=full.u[rows], params=full.params[rows], parts=(case.tests,), subset="test")


def by_value(params: Mapping[str, Sequence[float]]) -> list[Values]:
    """Lists of parameters go through together."""
    return [dict(zip(params, each, strict=True)) for each in zip(*params.values(), strict=True)]
