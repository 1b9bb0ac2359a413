"""The diary of a run: JSON lines always, TensorBoard and Weights & Biases when asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from vcnef.training.checkpoint import LOG, RunFolder
from vcnef.whole import write_whole

Record = dict[str, Any]


@runtime_checkable
class Log(Protocol):
    def write(self, record: Record) -> None: ...

    def close(self) -> None: ...


class Lines:
    """One JSON object per line. Records after `step` are dropped: a resumed run writes them again."""

    def __init__(self, path: Path, *, step: int = 0) -> None:
        self.path = path
        self.history = [record for record in read_lines(path) if record.get("step", 0) <= step] if step else []
        write_whole(path, "".join(map(_line, self.history)).encode())

    def write(self, record: Record) -> None:
        try:
            with self.path.open("a") as file:
                file.write(_line(record))
        except OSError as error:
            raise OSError(
                f"Could not write {self.path}: {error.strerror or error}. The saved state is intact; make room, then "
                "resume the run."
            ) from error

    def close(self) -> None:
        pass


class TensorBoard:
    def __init__(self, folder: Path, *, step: int = 0) -> None:
        _need("tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(folder / "tensorboard", purge_step=step + 1 if step else None)

    def write(self, record: Record) -> None:
        for name, value in record.items():
            if isinstance(value, int | float) and name != "step":
                self._writer.add_scalar(name, value, record["step"])

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    def __init__(self, folder: Path, *, step: int = 0) -> None:
        wandb = _need("wandb")
        # The folder is the run's identity, so that a resumed run continues its own curves, and no other's.
        place = blake2b(str(folder.resolve()).encode(), digest_size=4).hexdigest()
        identity = f"{folder.name}-{place}"
        self._run = wandb.init(project="vcnef", name=folder.name, id=identity, dir=folder, resume="allow")

    def write(self, record: Record) -> None:
        self._run.log(record, step=record["step"])

    def close(self) -> None:
        self._run.finish()


FURTHER = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}


class Diary:
    """Everything that was written so far, and the logs it goes to."""

    def __init__(self, logs: Sequence[Log], history: Sequence[Record] = ()) -> None:
        self.logs, self.history = logs, list(history)

    def write(self, record: Record) -> None:
        self.history.append(record)
        for log in self.logs:
            log.write(record)


@contextmanager
def open_diary(folder: RunFolder, names: Sequence[str], *, step: int) -> Iterator[Diary]:
    """The diary of a run that continues after `step`; without a folder to write to, it is in memory alone."""
    if not folder.writes:
        yield Diary([])
        return
    further = [FURTHER[name](folder.path, step=step) for name in names]
    # Last: where one of the others cannot be opened, the folder stays free for another try.
    lines = Lines(folder.path / LOG, step=step)
    logs = [lines, *further]
    try:
        yield Diary(logs, lines.history)
    finally:
        for log in logs:
            log.close()


def _need(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise ValueError(
            f"logs names {package!r}, which is not installed. Install it with: pip install 'vcnef[{package}]'."
        ) from None


def _line(record: Record) -> str:
    # JSON has no NaN or infinity.
    plain = {k: None if isinstance(v, float) and not isfinite(v) else v for k, v in record.items()}
    return json.dumps(plain) + "\n"


def read_lines(path: Path) -> list[Record]:
    """The records of a log; none where there is no file."""
    if not path.is_file():
        return []
    lines = path.read_bytes().splitlines()
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line.decode())
        except (ValueError, RecursionError):
            if number == len(lines):
                break  # The last line of a run that was killed while it wrote.
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("step", 0), int):
            raise ValueError(f"{path} has no record of training in line {number}: it is damaged. Delete that line.")
        records.append(record)
    return records
