"""The fields of one file in the layout of this library: held in memory, mapped, or in HDF5; read by rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from vcnef.data.hdf5 import reading
from vcnef.data.layout import Letters, arrange, usual_layout
from vcnef.data.rows import cut_within
from vcnef.data.source import runs

Selection = Sequence[slice]
"""Frames, and points along each axis."""


@dataclass(frozen=True, eq=False)
class HeldFields:
    """Those of an array in memory."""

    u: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.u.shape

    @property
    def dtype(self) -> np.dtype:
        return self.u.dtype

    def read(self, rows: np.ndarray, selection: Selection) -> np.ndarray:
        return self.u[(slice(int(rows[0]), int(rows[-1]) + 1), *selection)][rows - rows[0]]


@dataclass(frozen=True, eq=False)
class MappedFields:
    """Those of an .npy file, which is mapped anew for each reading."""

    path: Path
    letters: Letters
    shape: tuple[int, ...]
    dtype: np.dtype

    def read(self, rows: np.ndarray, selection: Selection) -> np.ndarray:
        mapped = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return np.array(HeldFields(arrange(mapped, self.letters)).read(rows, selection))


@dataclass(frozen=True, eq=False)
class DatasetFields:
    """Those of a dataset of an HDF5 file, whose axes may have any order."""

    path: Path
    key: str
    letters: Letters
    shape: tuple[int, ...]
    dtype: np.dtype

    def read(self, rows: np.ndarray, selection: Selection) -> np.ndarray:
        usual = usual_layout(len(self.shape) - 3)
        wanted = dict(zip(usual[1:], (*selection, slice(None)), strict=True))
        # The last axis is thinned afterwards: a disk reads whole lines anyway, and HDF5 skips points slowly.
        last = self.letters[-1]
        later = [wanted[letter] if letter == last else slice(None) for letter in usual[1:]]
        blocks = []
        with reading(self.path) as file:
            dataset = file[self.key]
            # What one piece of a file holds is read at once.
            piece = dataset.chunks[self.letters.index("n")] if dataset.chunks and "n" in self.letters else 1
            for start, stop in runs(rows, piece):
                here = rows[start:stop]
                chosen = wanted | {last: slice(None)} | {"n": slice(int(here[0]), int(here[-1]) + 1)}
                stored = dataset[tuple(chosen[letter] for letter in self.letters)]
                block = arrange(stored, self.letters)[(slice(None), *later)]
                blocks.append(block[here - here[0]])
        return np.concatenate(blocks)


Fields = HeldFields | MappedFields | DatasetFields
"""Each has a `shape` and `dtype`, reads rows, which are sorted, and can be pickled for other processes."""


def look(fields: Fields, rows: np.ndarray) -> np.ndarray:
    """Return whole trajectories."""
    return fields.read(rows, [slice(None)] * (len(fields.shape) - 2))


def bytes_each(fields: Fields) -> int:
    """Return the bytes of one trajectory as it is stored."""
    return fields.dtype.itemsize * prod(fields.shape[1:])


def read_finite(
    path: Path, fields: Fields, selection: tuple[slice, ...], rows: np.ndarray, cut: tuple[slice, ...]
) -> np.ndarray:
    """Return some rows in single precision, `cut` of what is selected; NaN and infinity are refused by their number."""
    taken = cut_within(selection, cut, fields.shape[1:])
    block = np.asarray(fields.read(rows, taken), dtype=np.float32)
    bad = ~np.isfinite(block.reshape(len(block), -1)).all(axis=1)
    if bad.any():
        raise ValueError(f"{path} has NaN or infinity in trajectory {rows[bad.argmax()]}; remove it from the file.")
    return block
