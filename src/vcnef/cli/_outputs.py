"""Places where a verb will write, looked at before it computes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from vcnef.whole import draft

FILES_OF_A_MODEL = ("config.json", "model.safetensors")
FILES_OF_A_RUN = ("config.yaml", "log.jsonl", "state.pt", "model/config.json", "model/model.safetensors")


def check_place(path: Path, option: str) -> None:
    """Raise an error unless a file of this name can be written; its folder is made if need be."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; expected a file. Name a file inside it with {option}.")
    if path.is_file() and _is_of_a_run(path.resolve()):
        raise ValueError(f"{path} is a part of that run, which could not be used any more. Choose another {option}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft(path).touch()
        draft(path).unlink()
    except OSError as error:
        raise cannot_write(path, error, option) from None


def _is_of_a_run(path: Path) -> bool:
    """Return whether a run or a model cannot do without this file."""
    if path.name in FILES_OF_A_MODEL and all((path.parent / name).is_file() for name in FILES_OF_A_MODEL):
        return True
    for name in FILES_OF_A_RUN:
        folder = path.parents[len(Path(name).parts) - 1]
        if path == folder / name and (folder / "model").is_dir():
            return True
    return False


def check_apart(path: Path, option: str, what: str, **given: Iterable[Path]) -> None:
    """Refuse to write in the place of what is read, by the option that names this."""
    for source, files in given.items():
        if path.exists() and any(each.exists() and path.samefile(each) for each in files):
            raise ValueError(f"{path} is both --{source} and {option}. Write the {what} to another file.")


def cannot_write(path: Path, error: OSError, option: str) -> OSError:
    return OSError(f"Could not write {path}: {error.strerror or error}. Choose another place with {option}.")
