"""HDF5 files with arrays under the names that `from_arrays` has for them: u, t, x, channels, parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from vcnef.data.arrays import one_or_each
from vcnef.data.fields import DatasetFields
from vcnef.data.files import ARRAYS, describe_named, layout_of, name_channels, speaking_of
from vcnef.data.hdf5 import reading, units_in
from vcnef.data.inside import open_hdf5
from vcnef.data.layout import usual_layout
from vcnef.data.notes import NOTE
from vcnef.data.pdebench import LAYOUT
from vcnef.data.source import Source
from vcnef.data.views import View
from vcnef.problem import SPACE

COORDINATES = ("t", *SPACE, "channels", "periodic")
"""What is read as a whole, beside parameters."""
OF_THE_BENCHMARK = LAYOUT - {"params", "attempts"}


def is_named(path: Path) -> bool:
    """Whether a file has its fields as `u`, and nothing of the benchmark's layout."""
    with reading(path) as file:
        return "u" in file and "problem" not in file.attrs and not OF_THE_BENCHMARK & {*file}


def describe(path: Path, view: View, params: Mapping[str, float], periodic: bool | None, layout: str | None) -> Source:
    """Look at everything in a file but its fields, which are read row by row."""
    with speaking_of(path), open_hdf5(path) as file:
        u = _numbers(file, "u")
        arrays = {"u": u} | _coordinates(file)
        letters = layout_of(u, layout, arrays)
        sizes = dict(zip(letters, u.shape, strict=True))
        shape = tuple(sizes.get(letter, 1) for letter in usual_layout(sum(axis in sizes for axis in SPACE)))
        arrays |= _parameters(file, shape[:2])
        fields = DatasetFields(path, "u", letters, shape, u.dtype)
        channels = name_channels(arrays, shape[-1])
        # What is told replaces what the file says, and its unit.
        named = {name: name for name in ("t", *SPACE, *arrays) if name not in ("u", *params)}
        units = units_in(file, named, "u", channels)
        return describe_named(path, view, fields, arrays, params, periodic, settled=layout is not None, units=units)


def _numbers(file: h5py.File, key: str) -> h5py.Dataset:
    """A dataset that has a shape, not read."""
    if not isinstance(file[key], h5py.Dataset) or file[key].shape is None:
        kind = "an empty dataset" if isinstance(file[key], h5py.Dataset) else "a group"
        raise ValueError(f"has {kind} {key!r}; expected arrays, none of them in groups. Move or remove it")
    return file[key]


def _coordinates(file: h5py.File) -> dict[str, Any]:
    """Times, points, names and periodicity, each a dataset or an attribute."""
    found: dict[str, Any] = {}
    for name in COORDINATES:
        if name in file and name in file.attrs:
            raise ValueError(f"has {name!r} as a dataset and as an attribute. Keep one of them")
        if name in file:
            found[name] = _plain(_numbers(file, name)[()])
        elif name in file.attrs:
            found[name] = _plain(file.attrs[name])
    if NOTE in file.attrs:
        found[NOTE] = _plain(file.attrs[NOTE])
    return found


def _parameters(file: h5py.File, sizes: tuple[int, int]) -> dict[str, Any]:
    """Every other dataset, and the numbers among the attributes; a text is a remark."""
    named: dict[str, Any] = {}
    for key in file:
        if key not in ARRAYS or key == "params":  # which is refused for its lack of names
            dataset = _numbers(file, key)
            # One that is no parameter is refused by its shape, without being read.
            is_one = one_or_each(dataset, sizes[0]) or dataset.shape == sizes
            named[key] = dataset[()] if is_one else dataset
    for key, value in file.attrs.items():
        number = np.asarray(value) if not isinstance(value, h5py.Empty) else np.empty(0, "O")
        if key in ARRAYS or number.dtype.kind not in "fiub":
            continue
        if key in named:
            raise ValueError(f"has {key!r} as a dataset and as an attribute. Keep one of them")
        named[key] = number.astype(np.float64)
    return named


def _plain(value: Any) -> np.ndarray:
    """An array; of texts, whose bytes are read as such."""
    array = np.asarray(value)
    if array.dtype.kind not in "SO":
        return array
    texts = [each.decode() if isinstance(each, bytes) else str(each) for each in array.ravel()]
    return np.array(texts).reshape(array.shape)
