"""Presets: `<equation>/<model>.yaml` with values only; each header gives the command and the paper's figure."""

from __future__ import annotations

from pathlib import Path

from vcnef.suggest import nearest

FOLDER = Path(__file__).parent


def list_presets() -> dict[str, str]:
    """Every preset by name, with the first line of its header."""
    paths = sorted(FOLDER.glob("*/*.yaml"))
    return {path.relative_to(FOLDER).with_suffix("").as_posix(): _headline(path) for path in paths}


def find_preset(name: str) -> Path:
    """The file of a preset."""
    presets = list_presets()
    if name not in presets:
        hints = (nearest(name, presets), "List them with `vcnef presets`, or give the path of a YAML file.")
        raise ValueError(f"There is no preset {name!r}. {' '.join(filter(None, hints))}")
    return FOLDER / f"{name}.yaml"


def _headline(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip().rstrip(".")
