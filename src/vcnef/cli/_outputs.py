"""Places where a verb will write, looked at before it computes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from vcnef.whole import draft


def check_place(path: Path, option: str) -> None:
    """Whether a file of this name can be written; its folder is made if need be."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; expected a file. Name a file inside it with {option}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft(path).touch()
        draft(path).unlink()
    except OSError as error:
        raise cannot_write(path, error, option) from None


def check_apart(path: Path, option: str, what: str, **given: Iterable[Path]) -> None:
    """What is written must not take the place of what it is made from, by the option that names this."""
    for source, files in given.items():
        if path.exists() and any(each.exists() and path.samefile(each) for each in files):
            raise ValueError(f"{path} is both --{source} and {option}. Write the {what} to another file.")


def cannot_write(path: Path, error: OSError, option: str) -> OSError:
    return OSError(f"Could not write {path}: {error.strerror or error}. Choose another place with {option}.")
