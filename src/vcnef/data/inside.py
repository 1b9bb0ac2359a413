"""HDF5 files that lead elsewhere: links, storage and virtual datasets by which a file reads other files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py

MOST_OBJECTS = 100_000
"""Groups and datasets of one file; data of ours have a dozen."""


class LeadsElsewhereError(ValueError):
    """A file would have others read in its name."""


def open_hdf5(path: Path, mode: str = "r") -> h5py.File:
    """Open a file whose content is its own; one that would have others read, or written, is refused before that.

    Soft links stay, and so do virtual datasets of files beside it: they are looked at in the same way.
    """
    # Looked at without being written to: what is refused is left as it was.
    file = h5py.File(path, "r")
    try:
        check_own_content(file, path)
    except BaseException:
        file.close()
        raise
    if mode == "r":
        return file
    file.close()
    return h5py.File(path, mode)


def check_own_content(file: h5py.File, path: Path, seen: frozenset[Path] = frozenset()) -> None:
    """Refuse links and datasets that lead out of a file, without following any of them."""
    for name, dataset in _datasets(file, path):
        if dataset.external:
            _refuse(path, f"the dataset {name!r} whose numbers lie in another file, {dataset.external[0][0]!r}")
        for source in dataset.virtual_sources() if dataset.is_virtual else ():
            if source.file_name != ".":
                _check_source(path, name, source.file_name, seen | {path.resolve()})


def _datasets(file: h5py.File, path: Path) -> Iterator[tuple[str, h5py.Dataset]]:
    """Everything that a file holds, by its links; each object once, for links may form a ring."""
    waiting, met = [("", file["/"])], {_place(file["/"])}
    while waiting:
        above, group = waiting.pop()
        for key in group:
            name = f"{above}/{key}"
            link = group.get(key, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                _refuse(path, f"the link {name!r} to another file, {link.filename!r}")
            if isinstance(link, h5py.SoftLink):
                continue  # What it names is reached by its own link, or is not there.
            found = group[key]
            if _place(found) in met:
                continue
            met.add(_place(found))
            if len(met) > MOST_OBJECTS:
                raise ValueError(f"has more than {MOST_OBJECTS} groups and datasets. Copy what is needed to another.")
            if isinstance(found, h5py.Group):
                waiting.append((name, found))
            elif isinstance(found, h5py.Dataset):
                yield name, found


def _place(found: h5py.HLObject) -> int:
    return h5py.h5o.get_info(found.id).addr


def _check_source(path: Path, name: str, source: str, seen: frozenset[Path]) -> None:
    """Refuse a virtual dataset of a file that is elsewhere, or leads elsewhere itself."""
    folder = path.resolve().parent
    try:
        place = (folder / source).resolve()
        # HDF5 itself puts numbers in place of a percent sign, and looks elsewhere for what is not here.
        own = not Path(source).is_absolute() and "%" not in source and place.is_relative_to(folder) and place.is_file()
    except (OSError, ValueError, RuntimeError):
        own = False
    if not own:
        _refuse(path, f"the virtual dataset {name!r} of the file {source!r}, which is not beside it")
    if place not in seen:
        with h5py.File(place, "r") as file:
            check_own_content(file, place, seen)


def _refuse(path: Path, what: str) -> None:
    raise LeadsElsewhereError(
        f"has {what}, so that opening it would read other files. Copy the data into one file, as h5repack does"
    )
