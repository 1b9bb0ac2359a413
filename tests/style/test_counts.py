"""Ceilings of what makes code dense and scattered. They only come down: write today's number where it is lower."""

import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("counts", Path(__file__).with_name("counts.py"))
counts = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(counts)

CEILINGS = {
    "all": (28.2, 41.4, 1.0, 1.7),
    "accelerate": (17.8, 29.7, 1.0, 0.0),
    "cli": (29.9, 51.5, 1.2, 0.0),
    "config": (17.6, 55.7, 0.0, 0.0),
    "data": (52.2, 56.9, 1.5, 3.0),
    "evaluation": (40.3, 59.8, 3.6, 2.9),
    "explorer": (15.1, 42.5, 0.0, 0.0),
    "ground": (52.4, 60.3, 1.2, 7.1),
    "metrics": (23.2, 48.9, 0.0, 5.2),
    "models": (9.5, 36.5, 0.6, 0.0),
    "pde": (0.7, 28.7, 0.0, 0.0),
    "plots": (1.2, 21.5, 0.0, 0.0),
    "report": (4.2, 60.7, 0.0, 0.0),
    "surrogate": (41.3, 33.7, 1.5, 3.3),
    "training": (37.5, 25.7, 0.6, 4.1),
}
"""By room, per 1000 lines of code: conditional expressions, comprehensions, nested comprehensions, walruses."""
MOST_IMPORTED_ONCE = 52
MOST_REPEATED_FILE_NAMES = 20
MOST_REPEATED_CLASS_NAMES = 11


@pytest.fixture(scope="module")
def rooms():
    return counts.count_rooms()


@pytest.mark.parametrize("room", CEILINGS)
def test_rooms_do_not_become_denser(rooms, room):
    for kind, ceiling in zip(counts.KINDS, CEILINGS[room], strict=True):
        found = counts.per_thousand(rooms[room], kind)
        assert found <= ceiling, f"{room}: {found:.1f} {kind} per 1000 lines; write some as loops or as ifs."


def test_modules_are_not_split_further():
    assert len(counts.imported_once()) <= MOST_IMPORTED_ONCE, counts.imported_once()


def test_new_files_have_names_of_their_own():
    assert len(counts.repeated_names()) <= MOST_REPEATED_FILE_NAMES, counts.repeated_names()


def test_new_classes_have_names_of_their_own():
    assert len(counts.repeated_classes()) <= MOST_REPEATED_CLASS_NAMES, counts.repeated_classes()


def test_subjects_of_commits_are_short():
    assert not counts.long_subjects(), f"at most {counts.SUBJECT_LENGTH} characters each"


def test_kinds_are_told_apart():
    text = '"""Said."""\n\n\n# why\ny = [[a for a in x] for x in (z if z else ())]\nwhile w := read():\n    pass\n'
    assert counts.code_lines(text) == 3
    assert counts.count_kinds(text) == dict(zip(counts.KINDS, (1, 2, 1, 1), strict=True))
