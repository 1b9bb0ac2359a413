"""Places where a verb will write, looked at before it computes."""

from __future__ import annotations

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


def cannot_write(path: Path, error: OSError, option: str) -> OSError:
    return OSError(f"Could not write {path}: {error.strerror or error}. Choose another place with {option}.")
