"""Files that are there whole or not at all, and what is said where they cannot be written."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def draft(path: Path) -> Path:
    """A name beside the file, of the same suffix, for what is not complete yet."""
    return path.with_name(f".{path.stem}.part{path.suffix}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The file to write, which takes its place when it is complete: until then, what was there before stays."""
    try:
        yield draft(path)
        draft(path).replace(path)
    finally:
        draft(path).unlink(missing_ok=True)


def check_room(path: Path, size: int) -> None:
    """Raise an `OSError` unless a file of so many bytes can be written: HDF5 ends the process where it cannot."""
    try:
        if not hasattr(os, "posix_fallocate"):
            if shutil.disk_usage(path.parent).free < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(size, 1))
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """What the system refuses is said of this file and in its words: libraries speak of drafts, and at length."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(
            f"Could not write {path}: {os.strerror(error.errno)}. What was saved before is intact; make room, or "
            "choose another place."
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file at once: a reader, or a machine that stops here, finds the old content or the new, never half."""
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as new, new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
