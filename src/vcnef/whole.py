"""Files that are there whole or not at all."""

from __future__ import annotations

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
