"""Checks of what is given that every room shares."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any


def check_at_least(least: int, **sizes: int) -> None:
    """Raise a `ValueError` that names the first size below `least`."""
    for name, size in sizes.items():
        if size < least:
            raise ValueError(f"{name} is {size}; expected at least {least}.")


def check_lengths(ndim: int, lengths: Collection[float] | None) -> None:
    """Raise a `ValueError` if there are lengths of the domain, but not one above 0 for each axis."""
    if lengths is not None and (len(lengths) != ndim or min(lengths) <= 0):
        raise ValueError(f"lengths is {lengths}; expected {ndim} of them, all above 0. Give one for each axis.")


def check_choice(name: str, value: object, choices: Collection[object]) -> None:
    """Raise a `ValueError` that names a value which is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}.")


def check_path(given: Any, what: str) -> Path:
    """Return the path, or raise a `ValueError` where something else is given."""
    if not isinstance(given, str | Path):
        raise ValueError(f"{what} is {given!r:.60}; expected a path, as text or pathlib.Path.")
    if "\0" in str(given):
        raise ValueError(f"{what} is {str(given)!r:.60}; no path has a null character. Give another.")
    return Path(given)


def check_file(path: Path, advice: str = "") -> None:
    """Raise an error, which ends with the advice, unless the path is that of a file."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file. Name those in it, e.g. {path / '*.hdf5'}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}. {advice}".rstrip())


def check_plain(tensor: Any, what: str) -> None:
    """Raise a `ValueError` for a tensor that does not hold one number for each of its places."""
    kinds = {
        "on the meta device, so it has no values. Give one with values": tensor.is_meta,
        "sparse. Give it as tensor.to_dense()": not tensor.is_nested and str(tensor.layout) != "torch.strided",
        "nested. Give one tensor, in which all are equally long": tensor.is_nested,
        "quantized. Give it as tensor.dequantize()": tensor.is_quantized,
    }
    for kind, applies in kinds.items():
        if applies:
            raise ValueError(f"{what} is {kind}.")
