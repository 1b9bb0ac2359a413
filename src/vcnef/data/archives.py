""".npz files, read array by array: what is no array, or would not fit into memory, is refused before it is unpacked."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from vcnef.data.machine import free_memory
from vcnef.spelling import spell_bytes


class Archive(Mapping[str, np.ndarray]):
    """The arrays of a file by their names, each unpacked when it is asked for, once."""

    def __init__(self, arrays: np.lib.npyio.NpzFile, sizes: Mapping[str, int]) -> None:
        self._arrays, self._sizes = arrays, sizes
        self._read: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._read:
            self._check_size(name)
            array = self._arrays[name]
            # Of what does not begin like an array NumPy gives the bytes.
            if not isinstance(array, np.ndarray):
                raise ValueError(f"has {name!r}, which is no array. Save it with np.savez(path, {name}=...)")
            self._read[name] = array
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays.files)

    def __len__(self) -> int:
        return len(self._arrays.files)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays.files

    def _check_size(self, name: str) -> None:
        size, free = self._sizes.get(name, 0), free_memory()
        if size > free:
            raise ValueError(
                f"has {name!r}, which unpacks to {spell_bytes(size)}; there are {spell_bytes(int(free))} of memory. "
                "Save it as .hdf5 or .npy, which are read in parts"
            )


@contextmanager
def reading_npz(path: Path) -> Iterator[Archive]:
    """The open file."""
    with zipfile.ZipFile(path) as archive:
        sizes = {each.filename.removesuffix(".npy"): each.file_size for each in archive.infolist()}
    with np.load(path, allow_pickle=False) as arrays:
        yield Archive(arrays, sizes)
