"""Dense and scattered code stays below `ceilings.json`, whose numbers are to come down."""

import importlib.util
import json
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("counts", Path(__file__).with_name("counts.py"))
counts = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(counts)

CEILINGS = json.loads(counts.CEILINGS.read_text(encoding="utf-8"))
ADVICE = (
    "Write some as loops or as ifs, or give the new file or class a name of its own. If there are fewer now, write "
    "them down with `python tests/style/counts.py --write`."
)


@pytest.fixture(scope="module")
def today():
    return counts.todays_ceilings()


def test_every_room_has_ceilings(today):
    assert today.keys() == CEILINGS.keys(), ADVICE


@pytest.mark.parametrize("place", CEILINGS)
def test_code_does_not_become_denser_nor_more_scattered(today, place):
    for kind, ceiling in CEILINGS[place].items():
        assert today[place][kind] <= ceiling, f"{place}: {today[place][kind]} {kind}. {ADVICE}"


def test_kinds_are_told_apart():
    text = '"""Said."""\n\n\n# why\ny = [[a for a in x] for x in (z if z else ())]\nwhile w := read():\n    pass\n'
    assert counts.code_lines(text) == 3
    assert counts.count_kinds(text) == dict(zip(counts.KINDS, (1, 2, 1, 1), strict=True))
