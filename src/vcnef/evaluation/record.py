"""What an evaluation found: a record that goes to JSON and reads as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf, isfinite
from typing import Any

import numpy as np

from vcnef.evaluation.break_even import BreakEven
from vcnef.evaluation.cost import Cost
from vcnef.evaluation.tables import Section, lines, sections


@dataclass(frozen=True)
class Result:
    """All metrics at one resolution in space and time.

    `scores` are those of `metrics.Scores.compute`: overall, per channel and over the query times `t`. `change` is
    each overall metric against the training resolution, 0.01 for one per cent more.
    """

    resolution: tuple[int, ...]
    frames: int
    """The initial one included."""
    t: tuple[float, ...]
    trained: bool
    """Whether this is known to be how the model was trained."""
    scores: Mapping[str, Any]
    not_finite: int = 0
    """Trajectories whose prediction is not finite somewhere; they make the metrics so too."""
    band: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """At each time, `low` and `high`: the nRMSE that one in ten trajectories stays below, and one in ten exceeds."""
    change: Mapping[str, float] = field(default_factory=dict)
    cost: Cost | None = None

    def value(self, metric: str) -> float:
        return self.scores["overall"].get(metric, float("nan"))


@dataclass(frozen=True)
class Group:
    """All metrics for one value of the parameters, or for those between two values."""

    values: Mapping[str, tuple[float, float]]
    seen: bool | None
    """Whether training had this value; None where the model does not say."""
    scores: Mapping[str, Any]
    nrmse: np.ndarray
    """Of each trajectory that has one: where all targets are zero there is none."""


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on trajectories that it was not trained on."""

    model: str
    problem: str
    channels: tuple[str, ...]
    split: str
    samples: int
    device: str
    result: Result
    """At the resolution and times of training."""
    space: tuple[Result, ...] = ()
    """Zero-shot super-resolution in space, ascending; the paper's table 3."""
    time: tuple[Result, ...] = ()
    """The same in time; the paper's table 4."""
    beyond: Result | None = None
    """Up to several horizons of training, composed of windows or extrapolated."""
    horizon: float = 0.0
    """The last time that was seen in training."""
    parameters: tuple[Group, ...] = ()
    baselines: Mapping[str, float] = field(default_factory=dict)
    """nRMSE without a model: "persistence", the initial state repeated; "level", its mean over the points; "mean", the
    mean trajectory of the training split; "constant", the mean of each channel there."""
    data_nrmse: float | None = None
    """An estimate of the error of the data themselves, at most; None where it is not known."""
    break_even: BreakEven | None = None
    """The solver at equal error, where that was asked for."""
    nrmse: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Of each trajectory, at the resolution and times of training, over the floor of `vcnef.metrics.floored_nrmse` like
    every nRMSE here; NaN where all targets are zero."""
    params: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Value of each parameter in each trajectory."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and names; null stands for what is not finite or undefined, and a note says so."""
        record = plain(asdict(self))
        if self.break_even is not None:
            record["break_even"] |= {"speed_up": self.break_even.speed_up, "never": self.break_even.solves == inf}
        return record

    def sections(self) -> list[Section]:
        """Titled tables of text."""
        return sections(self)

    def table(self) -> str:
        """All of it as readable text."""
        return "\n".join(lines(self.sections(), self.notes))

    def __str__(self) -> str:
        return self.table()


def plain(value: Any) -> Any:
    """The same in types that JSON has; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value
