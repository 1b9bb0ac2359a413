"""Trained models that come with the library: `<name>/` is a model folder with a `card.md` that says what it is."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
CARD = "card.md"
OF_RUNS = ("config.json", "model", "config.yaml", "log.jsonl")
"""Of which the folder of a run or model has some."""


def list_packaged() -> dict[str, str]:
    """Every packaged model by name, with the first line of its card."""
    return {path.parent.name: _headline(path) for path in sorted(FOLDER.glob(f"*/{CARD}"))}


def is_packaged(folder: Path) -> bool:
    """Whether this is the folder of a packaged model, in which nothing is to be written."""
    return folder.resolve().is_relative_to(FOLDER.resolve())


def locate(name: str | Path) -> Path:
    """The folder of a run or model by its path, or of a packaged model by its name; a run or model here comes first."""
    folder, packaged = Path(name), list_packaged()
    ours = any((folder / each).exists() for each in OF_RUNS)
    # A folder of that name may hold data.
    if str(name) in packaged and not ours:
        return FOLDER / str(name)
    if folder.is_dir():
        return folder
    raise FileNotFoundError(f"There is no run or model folder {folder}. {_known(folder, packaged)}")


def _known(folder: Path, packaged: dict[str, str]) -> str:
    """What there is instead."""
    runs = sorted(str(each.parent.parent) for each in folder.parent.glob("*/model/config.json"))
    hints = (
        f"There are {', '.join(runs)}." if runs else "Train one with `vcnef train` or `vcnef.fit`.",
        f"Packaged models are {', '.join(packaged)}." if packaged else "",
    )
    return " ".join(filter(None, hints))


def _headline(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip().rstrip(".")
