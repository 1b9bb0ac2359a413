"""A run's folder: the best model, and the state from which an interrupted run continues as if nothing had happened."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from vcnef.data.fingerprints import Fingerprints
from vcnef.models.interface import TrajectoryModel
from vcnef.surrogate import Surrogate
from vcnef.surrogate.folder import CONFIG, WEIGHTS, read_record, read_weights
from vcnef.training.optimisers import Average, load_moments
from vcnef.training.recipe import Recipe
from vcnef.training.stopping import NonFiniteError
from vcnef.whole import write_whole

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

STATE, LOG, MODEL, LOCK = "state.pt", "log.jsonl", "model", ".lock"
FORMAT = 1
"""Of states; another one is refused."""
NUMBERS = ("step", "best", "elapsed", "prepared", "reserved", "counted")
"""What `State` counts, as it is saved."""
FREE_TO_CHANGE = {"epochs", "minutes", "validate_every", "save_every", "logs", "compile"}
"""What a resumed run may do otherwise; a longer one then follows the longer schedule from where it is."""
TOLD = ("train", "field_ranges", "times", "split_in_order")
"""What a surrogate's provenance tells of its training data, beside their problem."""


@dataclass(eq=False)
class State:
    """Everything that changes while a run goes on."""

    model: TrajectoryModel
    optimiser: Optimizer
    precision: Any
    average: Average | None = None
    step: int = 0
    best: float = inf
    elapsed: float = 0.0
    prepared: float = 0.0
    reserved: float = 0.0
    losses: Tensor = field(default_factory=lambda: torch.zeros(()))
    """Sum of the losses of this epoch, on the device, so that no step waits for it."""
    counted: int = 0
    """How many they are."""
    best_weights: dict[str, Tensor] | None = None
    saved: bool = False
    """Whether a folder holds it, as it was some steps ago."""

    def note(self, loss: Tensor) -> None:
        """A step has been made."""
        self.losses += loss.detach()
        self.counted += 1
        self.step += 1
        if self.average:
            self.average.update()

    def check_finite(self, steps: int) -> None:
        """Waits for the device. Gradients may have spoilt the weights after a loss that was still good."""
        weights = torch.stack([weight.detach().isfinite().all() for weight in self.model.parameters()]).all()
        if not bool(weights & self.losses.isfinite()):
            what = "weights are" if bool(self.losses.isfinite()) else "loss is"
            kept = "The best weights are kept" if self.best_weights else "There was nothing to keep yet"
            kept = "The last good state is kept" if self.saved else kept
            raise NonFiniteError(
                f"The {what} no longer finite, noticed at step {self.step} of {steps}. {kept}; try a smaller learning "
                "rate or a smaller clip, fp32 precision, or look for outliers in the data."
            )

    def begin_epoch(self) -> None:
        self.losses.zero_()
        self.counted = 0

    def keep_best(self, score: float) -> None:
        self.best = score
        self.best_weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}


class RunFolder:
    """`model/`, `state.pt` and `log.jsonl`, each of them whole at any moment; without a path, nothing is kept."""

    def __init__(self, path: Path | None, *, writes: bool = True) -> None:
        """`writes` is false for all but one of the processes that train together."""
        self.path, self.writes = path, writes and path is not None
        self._lock: int | None = None

    def open(self, *, resume: bool) -> None:
        """Refuse to overwrite another run, or to resume one that is not there."""
        if self.path is None:
            if resume:
                raise ValueError("resume=True, but out is None: expected the folder of the run to resume.")
            return
        if resume and not self.path.is_dir():
            raise FileNotFoundError(
                f"There is no run in {self.path} to resume. Check the path, or start without resume."
            )
        if not resume:
            check_unused(self.path)
        if self.writes:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = hold(self.path / LOCK)
            if not resume:
                self._check_still_unused()

    def _check_still_unused(self) -> None:
        """Another process may have trained here since the folder was looked at, and have ended."""
        try:
            check_unused(self.path)
        except FileExistsError:
            self.__exit__()
            raise

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *raised: object) -> None:
        """Let another process train here."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def save_model(self, surrogate: Surrogate) -> None:
        if self.writes:
            surrogate.save(self.path / MODEL)

    def save(self, state: State, terms: Mapping[str, Any]) -> None:
        """`terms` are those that `terms_of` gives."""
        if not self.writes:
            return
        record = {
            "format": FORMAT,
            "model": state.model.state_dict(),
            "optimiser": state.optimiser.state_dict(),
            "precision": state.precision.state_dict(),
            "average": state.average.state_dict() if state.average else None,
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
            **terms,
            **{name: getattr(state, name) for name in (*NUMBERS, "losses")},
        }
        buffer = io.BytesIO()
        torch.save(record, buffer)
        write_whole(self.path / STATE, buffer.getvalue())
        state.saved = True

    def restore(self, state: State, surrogate: Surrogate, terms: Mapping[str, Any]) -> None:
        """Bring a state to where the run was, if there was one; runs no code from the file."""
        path = self.path / STATE
        if not path.is_file():
            return
        device = state.losses.device
        try:
            _check_intact(path)
            record = torch.load(path, map_location="cpu", weights_only=True)
            _check_counts(record)
            _check_same(record, terms, self.path)
            state.model.load_state_dict(record["model"])
            load_moments(state.optimiser, record["optimiser"])
            state.precision.load_state_dict(record["precision"])
            if state.average:
                state.average.load_state_dict(record["average"])
            for name in NUMBERS:
                # States of earlier versions have reserved nothing.
                setattr(state, name, record.get(name, 0.0) if name == "reserved" else record[name])
            state.losses, state.saved = record["losses"].to(device), True
            # It is that of the process that wrote it; the others would draw what it draws.
            if self.writes:
                _restore_random(record)
        except ChangedRunError:
            raise
        except Exception as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"{path} is damaged or of another model ({first}). Start the run again.") from None
        # A run that ended while it wrote its first model has the folder for it, and nothing inside.
        if (self.path / MODEL / WEIGHTS).is_file():
            weights = read_weights(self.path / MODEL)
            state.best_weights = {name: value.to(device) for name, value in weights.items()}
        if (self.path / MODEL / CONFIG).is_file():
            surrogate.provenance |= read_record(self.path / MODEL).get("provenance", {})


def _restore_random(record: Mapping[str, Any]) -> None:
    torch.set_rng_state(record["random"])
    if record["random_cuda"] and len(record["random_cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(record["random_cuda"])


class ChangedRunError(ValueError):
    """A run is resumed under other conditions than it was begun with."""


def _check_intact(path: Path) -> None:
    """Raise where a part of the file does not fit its checksum; torch writes them and does not look at them."""
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"its part {Path(damaged).name} does not fit its checksum")


def _check_counts(record: Mapping[str, Any]) -> None:
    """Raise where a state is of a later version, or counts with anything but numbers."""
    if record.get("format", FORMAT) != FORMAT:
        raise ValueError(f"its format is {record['format']!r}, this vcnef reads {FORMAT}")
    for name in NUMBERS:
        value = record.get(name, 0.0)
        wanted = int if name in ("step", "counted") else int | float
        # The best score is infinite before there is one.
        if not isinstance(value, wanted) or isinstance(value, bool) or not value >= 0:
            raise ValueError(f"its {name} is {value!r:.40}")


def hold(path: Path) -> int | None:
    """Return the open file that no other process can hold until it is closed, or this process ends in any way.

    Return None where the system or the file system has no such locks.
    """
    if fcntl is None:
        return None
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise FileExistsError(
            f"Another process is training in {path.parent} at this moment. Wait until it ends, or choose another "
            "folder."
        ) from None
    except OSError:
        os.close(file)
        return None
    return file


def check_unused(folder: Path) -> None:
    """Refuse a folder in which a run has left its files.

    Others, such as a configuration, do not matter, nor does the empty log of a run that ended as it began.
    """
    found = [name for name in (STATE, LOG, MODEL) if (folder / name).exists()]
    if found == [LOG] and not (folder / LOG).stat().st_size:
        return
    if found:
        raise FileExistsError(
            f"{folder} already holds a run ({', '.join(found)}). Resume it, choose another folder, or delete it first."
        )


def begun_in_order(folder: Path, otherwise: bool) -> bool:
    """Return whether the run in a folder was begun with the first rows of the data as its test split.

    Those of earlier versions were, whatever their data. `otherwise` is the answer where no state tells.
    """
    path = folder / STATE
    if not path.is_file():
        return otherwise
    try:
        record = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return bool(record.get("data", {}).get("split_in_order", True))
    except Exception:  # What is wrong with it is said where it is restored.
        return otherwise


def terms_of(
    recipe: Recipe,
    steps_per_epoch: int,
    surrogate: Surrogate,
    objective: str | None = None,
    content: Sequence[str] = (),
) -> dict[str, Any]:
    """What a run is begun with: its recipe, the name of an objective in place of the recipe's, what the surrogate says
    of the data that it was built for, and digests of what they hold."""
    told = {name: surrogate.provenance[name] for name in TOLD if name in surrogate.provenance}
    if "seen" in surrogate.provenance:
        told["trajectories"] = Fingerprints.from_dict(surrogate.provenance["seen"]).digest()
    if content:
        told["content"] = list(content)
    return {
        "recipe": asdict(recipe),
        "steps_per_epoch": steps_per_epoch,
        "objective": objective,
        "data": surrogate.problem.to_dict() | told,
        "points": points.to_dict() if (points := surrogate.scaling.points) else None,
    }


def _check_same(then: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    # Recipes of earlier versions have fewer keys; what these say was the default then, too.
    begun = asdict(Recipe()) | then["recipe"]
    for name in sorted(now["recipe"].keys() - FREE_TO_CHANGE):
        if now["recipe"][name] != begun[name]:
            raise ChangedRunError(
                f"The run in {folder} was begun with {name}={begun[name]!r}; the recipe now has "
                f"{now['recipe'][name]!r}. Resume it as it was begun, or start a new run."
            )
    # States of earlier versions do not name their objective.
    if "objective" in then and then["objective"] != now["objective"]:
        raise ChangedRunError(
            f"The run in {folder} was begun with {_named(then['objective'])}; it is now to go on with "
            f"{_named(now['objective'])}. Resume it as it was begun, or start a new run."
        )
    if then["steps_per_epoch"] != now["steps_per_epoch"]:
        raise ChangedRunError(
            f"The run in {folder} had {then['steps_per_epoch']} steps per epoch; with these data it has "
            f"{now['steps_per_epoch']}. Resume it with the data it was begun with."
        )
    if then.get("data", {}).get("split_in_order", True) and not now["data"].get("split_in_order", True):
        raise ChangedRunError(
            f"The run in {folder} was begun with the first rows of the data as its test split; now it would be trained "
            "on them, for these data are shuffled. Split dataclasses.replace(data, split_in_order=True), or start a "
            "new run."
        )
    # States of earlier versions do not tell of their data.
    for name, before in then.get("data", {}).items():
        if name == "content" and before != now["data"].get(name, before):
            raise ChangedRunError(
                f"The run in {folder} was begun with other data of the same description: their values, or the order of "
                "the trajectories, have changed. Resume it with the data it was begun with, or start a new run."
            )
        if name != "content" and before != now["data"].get(name):
            raise ChangedRunError(
                f"The run in {folder} was begun with other data: {name}={before!r}, not {now['data'].get(name)!r}. "
                "Resume it with the data it was begun with, or start a new run."
            )
    # Runs of earlier versions saw all points as they are; their weights know no others.
    if then.get("points") != now["points"]:
        raise ChangedRunError(
            f"The run in {folder} was begun with points {_told(then.get('points'))}; they would now be "
            f"{_told(now['points'])}. Resume it with the version of vcnef that it was begun with, or start a new run."
        )


def _named(objective: str | None) -> str:
    return f"the objective {objective!r}" if objective else "the loss of the recipe"


def _told(points: Mapping[str, Any] | None) -> str:
    return f"scaled by {dict(points)}" if points else "as they are"
