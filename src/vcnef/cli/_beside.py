"""What lies beside initial states in a file: compared with the model, and what is not used is said."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vcnef.data import StoredTrajectories
from vcnef.data.arrays import make_times, noted_periodic
from vcnef.data.notes import NOTE
from vcnef.data.opening import are_sides_known
from vcnef.problem import Problem
from vcnef.surrogate.foreign import about_problem, about_unknown
from vcnef.units import Conversion, check_units

WHOSE = "these states"


def check_noted_units(path: Path, units: Mapping[str, str], problem: Problem, told: Iterable[str]) -> None:
    """Refuse units that are not those of the model; what is told replaces what a file says, and its unit."""
    noted = {name: unit for name, unit in units.items() if name not in told}
    check_units(noted, problem.units, f"the file {path}", f"the model of {problem.name}")


def warn_of_conversions(path: Path, found: Mapping[str, Conversion], problem: Problem) -> None:
    """Warn of all that was multiplied to be in the units of the model."""
    _warn([each.describe(f"{name} of {path}", f"the model of {problem.name}") for name, each in found.items()])


def doubt_arrays(path: Path, arrays: Mapping[str, Any], used: Iterable[str], problem: Problem) -> None:
    """Warn of sides that are not those of training, and of arrays that nobody asks for."""
    if "periodic" in arrays:
        noted = {"periodic": noted_periodic(np.asarray(arrays["periodic"]), problem.ndim)}
        _warn(about_problem(noted, problem, WHOSE))
    if idle := [name for name in arrays if name not in (*used, "periodic", NOTE)]:
        _warn([f"{path} has {', '.join(idle)} beside the states, which the model does not know: not used. Rename "
               "what it was meant for."])  # fmt: skip


def doubt_trajectories(stored: StoredTrajectories, problem: Problem) -> None:
    """Warn of what a file of trajectories says of itself and the model was not trained on."""
    own = stored.problem
    noted = {"name": own.name, "domain": own.domain}
    if are_sides_known(stored):
        noted["periodic"] = own.periodic
    if own.ndim == problem.ndim:
        _warn(about_problem(noted, problem, WHOSE))
    _warn(about_unknown(own.parameters, problem, WHOSE))


def check_frames(times: Any, frames: int) -> None:
    """Refuse frames that are not in the order of time: the first one would be none."""
    make_times(np.asarray(times), frames)


def _warn(doubts: Iterable[str]) -> None:
    for doubt in doubts:
        warnings.warn(doubt, UserWarning, stacklevel=4)
