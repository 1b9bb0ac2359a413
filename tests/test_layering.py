"""The house's table of rooms: a room imports only from the rooms below it."""

import ast
from pathlib import Path

import pytest

import vcnef

SOURCE = Path(vcnef.__file__).parent
GROUND = {
    "problem",
    "periodicity",
    "grid",
    "device",
    "suggest",
    "timing",
    "spelling",
    "checks",
    "whole",
    "progress",
    "units",
    "labels",
    "conversion",
    "fading",
}

MAY_USE = {
    "problem": set(),
    "periodicity": set(),
    "grid": set(),
    "device": set(),
    "suggest": set(),
    "timing": set(),
    "spelling": set(),
    "checks": set(),
    "whole": set(),
    "progress": set(),
    "units": set(),
    "labels": set(),
    "conversion": set(),
    "fading": set(),
    "nn": set(),
    "pde": set(),
    "metrics": set(),
    "models": {"nn"},
    "accelerate": {"models", "nn"},
    "data": {"pde"},
    "surrogate": {"models", "accelerate", "data"},
    "training": {"models", "accelerate", "data", "metrics", "pde", "surrogate"},
    "evaluation": {"models", "accelerate", "data", "metrics", "pde", "surrogate", "packaged"},
    "plots": set(),
    "report": {"plots"},
    "explorer": {"surrogate", "pde", "metrics"},
    "presets": set(),
    "packaged": set(),
    "config": {"models", "data", "training", "presets"},
    "own_data": {"data", "surrogate", "config"},
    "workflow": {"models", "data", "surrogate", "training", "config", "packaged", "own_data"},
    "cli": None,
    "__init__": None,
    "__main__": {"cli"},
}
"""Rooms that a room may use beside the ground floor and itself; None is everything."""


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vcnef":
            parts = node.module.split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("vcnef.")}
    return rooms


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_uses_only_what_lies_below(path):
    own = room(path)
    assert own in MAY_USE, f"{own} has no place in the table of rooms"
    allowed = MAY_USE[own]
    if allowed is not None:
        beyond = imported_rooms(path) - allowed - GROUND - {own, "__version__"}
        assert not beyond, f"{path.relative_to(SOURCE)} uses {sorted(beyond)}; {own} may use {sorted(allowed | GROUND)}"


def test_no_relative_imports():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path} has a relative import"
