"""Files that are there whole or not at all."""

from __future__ import annotations

import os
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


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file at once: a reader, or a machine that stops here, finds the old content or the new, never half."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as new, new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(
            f"Could not write {path}: {error.strerror or error}. What was saved before is intact; make room or choose "
            "another folder, then continue from there."
        ) from error
