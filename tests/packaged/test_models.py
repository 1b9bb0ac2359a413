"""The models in the package are as good as their cards say."""

import pytest

from vcnef.data import generate
from vcnef.evaluation import evaluate
from vcnef.packaged import CARD, FOLDER, list_packaged
from vcnef.workflow import load

UNSEEN = {"advection": {"beta": 1.0}, "burgers": {"nu": 0.01}}


def stated(name):
    """The error at that value, from the table of the card."""
    ((parameter, value),) = UNSEEN[name].items()
    card = (FOLDER / name / CARD).read_text(encoding="utf-8")
    (row,) = (line for line in card.splitlines() if line.startswith(f"| {parameter} = {value:g} | unseen |"))
    return float(row.split("|")[3].split("±")[0])


def test_all_are_judged_here():
    assert list(list_packaged()) == sorted(UNSEEN)


@pytest.mark.parametrize("name", UNSEEN)
def test_errors_at_an_unseen_parameter(name):
    size = {"frames": 11, "generation": "2022"}
    data = generate(name, samples=8, params=UNSEEN[name], seed=5, device="cpu", **size)
    found = evaluate(load(name), data.view(space_stride=4), split="all", device="cpu", solver=False)
    # The mean over so few differs by some ten percent from that over all.
    assert found.nrmse.mean() == pytest.approx(stated(name), rel=0.4)
