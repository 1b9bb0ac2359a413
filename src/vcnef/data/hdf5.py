"""HDF5 at the border: whatever is wrong with a file becomes one sentence that names it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from vcnef.data.inside import LeadsElsewhereError, open_hdf5
from vcnef.data.precision import check_resolved
from vcnef.units import noted_unit, units_of_channels

ADVICE = "Write such data with vcnef.from_arrays(u, t=t, x=x, params=...).save(path)."


class FileError(ValueError):
    """What is wrong with a file, as the end of a sentence that begins with its name."""


@contextmanager
def reading(path: Path) -> Iterator[h5py.File]:
    """The open file."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with open_hdf5(path) as file:
            yield file
    except FileError as error:
        raise ValueError(f"{path} {error}") from None
    except LeadsElsewhereError as error:
        raise ValueError(f"{path} {error}.") from None
    except ValueError as error:
        text = str(error).rstrip(".")
        raise ValueError(f"{path}{' ' if text.startswith('has ') else ': '}{text}.") from None
    except (OSError, RuntimeError, KeyError, TypeError, OverflowError, MemoryError) as error:
        reason = (str(error).strip("'\"").splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ValueError(f"{path} is no HDF5 file, or it is damaged or cut short ({reason}).") from None


def numbers(file: h5py.File, key: str) -> h5py.Dataset:
    """A dataset of real numbers, not read."""
    if key not in file:
        raise FileError(f"has no dataset {key!r}; it holds {sorted(file)[:8]}. {ADVICE}")
    if not isinstance(file[key], h5py.Dataset) or file[key].dtype.kind not in "fiu":
        raise FileError(f"has {key!r}, but not as an array of real numbers.")
    return file[key]


def increasing(file: h5py.File, key: str) -> np.ndarray:
    """A coordinate: two or more increasing numbers."""
    dataset = numbers(file, key)
    if dataset.ndim != 1:
        raise FileError(f"has {key!r} of shape {dataset.shape}; expected one list of numbers.")
    line = dataset[()].astype(np.float64)
    if len(line) < 2 or not np.isfinite(line).all() or (np.diff(line) <= 0).any():
        raise FileError(f"has {key!r} with values that are too few, not finite or not increasing.")
    check_resolved(torch.from_numpy(line), repr(key))
    return line


def number(file: h5py.File, key: str) -> float:
    """An attribute that is one number."""
    value = np.asarray(file.attrs[key])
    if value.size != 1 or value.dtype.kind not in "fiu" or not np.isfinite(value).all():
        raise FileError(f"has an attribute {key!r} that is not one number.")
    return float(value.reshape(-1)[0])


def units_in(file: h5py.File, named: Mapping[str, str], whole: str, channels: Sequence[str]) -> dict[str, str]:
    """The units that datasets have as attributes: those of coordinates, parameters and fields by their datasets, and
    of channels that lie together in `whole`."""
    found = {}
    for name, key in named.items():
        if key in file and (unit := noted_unit(file[key].attrs)):
            found[name] = unit
    return found | (units_of_channels(file[whole].attrs, channels) if whole in file else {})


def record(file: h5py.File, key: str) -> dict[str, Any]:
    """An attribute that holds a JSON object; empty where there is none."""
    value = file.attrs.get(key, b"{}")
    try:
        found = json.loads(value.decode() if isinstance(value, bytes) else str(value))
    except (ValueError, RecursionError) as error:
        raise FileError(f"has an attribute {key!r} that is not JSON ({error}).") from None
    if not isinstance(found, dict):
        raise FileError(f"has an attribute {key!r} that is not a JSON object.")
    return found
