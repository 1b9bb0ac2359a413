"""The benchmark's HDF5 layout, written: a file of its final size from the start, then filled row by row."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from torch import Tensor

from vcnef.data.inside import open_hdf5
from vcnef.data.notes import NOTE
from vcnef.data.pdebench import AXIS_KEYS, FIELD_KEYS, PARAMETER_KEYS, TIME_KEY
from vcnef.data.precision import short
from vcnef.data.save import HEAD
from vcnef.problem import Problem
from vcnef.whole import check_room, replacing
from vcnef.whole import draft as draft_of

TAKEN = (*AXIS_KEYS, TIME_KEY, "params", "attempts")
"""Datasets of a file beside its fields."""


class TrajectoryWriter:
    """Fills a file made by `create`, in any order and from any number of processes.

    The fields are contiguous and allocated at once, so a row is a fixed range of bytes. Each process writes its own
    rows there and notes them in `attempts`; HDF5 itself is not involved, so nothing is locked, a killed process
    leaves a readable file that says how far it got, and the bytes do not depend on who wrote what when.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_hdf5(path) as file:
            channels = json.loads(file.attrs["problem"])["channels"]
            fields = [file[key] for key in field_keys(channels)]
            self._offsets = [dataset.id.get_offset() for dataset in fields]
            self._row_bytes = 4 * int(np.prod(fields[0].shape[1:]))
            self._attempts_offset = file["attempts"].id.get_offset()
            self._rows = len(file["attempts"])

    def write(self, first: int, u: Tensor, attempts: Sequence[int] | None = None) -> None:
        """Write `u [rows t *x c]` from row `first` on; `attempts` says how often each row had to be drawn again."""
        with self.path.open("r+b") as file:
            for channel, offset in enumerate(self._offsets):
                file.seek(offset + first * self._row_bytes)
                file.write(np.ascontiguousarray(u[..., channel].cpu().numpy(), dtype="<f4").data)
            file.flush()
            # The rows must be on the disk before they are noted as made.
            os.fsync(file.fileno())
            file.seek(self._attempts_offset + first)
            file.write(np.asarray(attempts if attempts is not None else [0] * len(u), dtype=np.int8).tobytes())

    def attempts(self) -> np.ndarray:
        """Per row: -1 not made yet, otherwise how often it was drawn again because it was not finite."""
        # As bytes, since another process may be in `finish`, which locks the file.
        return np.fromfile(self.path, dtype=np.int8, count=self._rows, offset=self._attempts_offset)

    def finish(self) -> None:
        """Sum up a complete file in its attributes; harmless when done twice."""
        attempts = self.attempts()
        try:
            with open_hdf5(self.path, "r+") as file:
                file.attrs.modify("completed", np.int64((attempts >= 0).sum()))
                file.attrs.modify("redrawn", np.int64(attempts.clip(min=0).sum()))
        except BlockingIOError:
            pass  # Another process is doing just this.


def create(
    path: Path,
    problem: Problem,
    t: np.ndarray,
    lines: Sequence[np.ndarray],
    params: np.ndarray,
    attributes: Mapping[str, Any],
    recipe: Mapping[str, Any] | None = None,
    note: Mapping[str, Any] | None = None,
) -> TrajectoryWriter:
    """A file with everything but the fields, for `len(params)` trajectories; it appears under its name at once."""
    if taken := [name for name in field_keys(problem.channels) if name in TAKEN or "/" in name]:
        raise ValueError(f"An HDF5 file cannot hold a channel of the name {taken[0]!r}. Rename it, or save as .npz.")
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (len(params), len(t), *(len(line) for line in lines))
    check_room(draft_of(path), HEAD)
    # Before 1.8 (of 2008), HDF5 had no attributes above 64 kB, and the times of a recipe may be thousands.
    with replacing(path) as draft, h5py.File(draft, "w", libver="v108") as file:
        for key in field_keys(problem.channels):
            file.create_dataset(key, shape, dtype="<f4", dcpl=_contiguous())
        for key, line in zip(AXIS_KEYS, lines, strict=False):
            file.create_dataset(key, data=line.astype("<f4"))
        # One time more than frames, as the benchmark's own files have it.
        file.create_dataset(TIME_KEY, data=np.append(t, 2 * t[-1] - t[-2]).astype("<f4"))
        file.create_dataset("attempts", data=np.full(len(params), -1, dtype=np.int8))
        if problem.parameters:
            file.create_dataset("params", data=params.astype("<f4"))
        # For the benchmark's loaders, which know these alone: one of another name might be taken for a note of ours.
        for number, name in enumerate(problem.parameters):
            column = params[..., number].ravel()
            if name in PARAMETER_KEYS and (column == column[0]).all():
                file.attrs[PARAMETER_KEYS[name]] = short(float(column[0]))
        if isinstance(attributes.get("mach"), int | float):
            file.attrs["M"] = float(attributes["mach"])
        texts = {"problem": problem.to_dict(), "attributes": attributes, "recipe": recipe, NOTE: note}
        for key, value in texts.items():
            if value:
                # Of fixed length: HDF5 keeps other text in a heap, where its bytes are not reproducible.
                file.attrs[key] = np.bytes_(json.dumps(value, default=str))
        file.attrs["completed"] = np.int64(0)
        file.attrs["redrawn"] = np.int64(0)
    return TrajectoryWriter(path)


def field_keys(channels: Sequence[str]) -> list[str]:
    return ["tensor"] if len(channels) == 1 else [FIELD_KEYS.get(name, name) for name in channels]


def _contiguous() -> h5py.h5p.PropDCID:
    """Allocated at once, never pre-filled, without time stamps: a file's bytes depend on its content alone."""
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.CONTIGUOUS)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    plan.set_obj_track_times(False)
    return plan
