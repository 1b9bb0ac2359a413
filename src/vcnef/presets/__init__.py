"""Presets: `<equation>/<model>.yaml` with values only; each header gives the command and the paper's figure.

Nothing here imports torch: `vcnef presets` and a mistyped name are answered at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import yaml

from vcnef.suggest import nearest

FOLDER = Path(__file__).parent
YAML_FILES = (".yaml", ".yml")


class PresetSummary(NamedTuple):
    """A line about a preset: its name, its model and epochs, and the first line of its header."""

    name: str
    model: str
    epochs: int
    headline: str


def preset_names() -> list[str]:
    """Return the names of all presets, e.g. "burgers/vcnef"."""
    paths = sorted(FOLDER.glob("*/*.yaml"))
    return [path.relative_to(FOLDER).with_suffix("").as_posix() for path in paths]


def list_presets() -> dict[str, str]:
    """Return every preset by name, with the first line of its header."""
    return {name: _headline(_path_of(name)) for name in preset_names()}


def summarise_presets() -> list[PresetSummary]:
    """Return a line about every preset. Each says its model and epochs itself, so no configuration is made."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    summaries = []
    for name in preset_names():
        text = _path_of(name).read_text(encoding="utf-8")
        values = yaml.load(text, Loader=loader)
        headline = _headline(_path_of(name))
        summaries.append(PresetSummary(name, values["model"]["name"], values["train"]["epochs"], headline))
    return summaries


def find_preset(name: str) -> Path:
    """Return the file of a preset."""
    presets = preset_names()
    if name not in presets:
        hints = (nearest(name, presets), "List them with `vcnef presets`, or give the path of a YAML file.")
        raise ValueError(f"There is no preset {name!r}. {' '.join(filter(None, hints))}")
    return _path_of(name)


def find_config(source: str | Path) -> Path:
    """Return the YAML file that is meant by a preset's name or by a path."""
    path = Path(source)
    if path.suffix not in YAML_FILES:
        return find_preset(str(source))
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}. Give the path of a YAML file or a preset's name.")
    return path


def _path_of(name: str) -> Path:
    return FOLDER / f"{name}.yaml"


def _headline(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip().rstrip(".")
