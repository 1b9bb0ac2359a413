"""Every value of a model's description, replaced and left out: the model is the same, or refused in one sentence."""

import json
import shutil
from functools import reduce

import pytest
import torch

import vcnef as library
from vcnef.surrogate.folder import CHECKSUM

WRONG = (None, "x", -1, [], {}, float("inf"), True)
FREE = ("vcnef", "problem.name", "problem.units", "problem.periodic", "problem.ranges", "provenance", "model.options")
"""Words, or what an earlier version did not say; others may be known by it without another answer."""
REFUSED = (
    "format", "problem.units", "problem.domain", "problem.channels", "scaling.fields", "scaling.params",
    "provenance.resolution", "provenance.horizon", "provenance.field_ranges", "provenance.grid", "provenance.train",
)  # fmt: skip
"""Of which no value of another kind is taken."""


def places(record, above=()):
    for name, value in record.items():
        if name != CHECKSUM:
            yield (*above, name)
        if isinstance(value, dict):
            yield from places(value, (*above, name))


@pytest.fixture(scope="module")
def folder(world, tmp_path_factory):
    return shutil.copytree(world.folder, tmp_path_factory.mktemp("described") / "model")


def attempt(folder, record):
    """The model of an edited description, or the sentence that refuses it."""
    (folder / "config.json").write_text(json.dumps(record))
    try:
        return library.load(folder), ""
    except ValueError as error:
        return None, str(error)


def edited(text, place, value=None, *, leave_out=False):
    record = json.loads(text)
    inside = reduce(dict.get, place[:-1], record)
    inside[place[-1]] = value
    if leave_out:
        del inside[place[-1]]
    return record


def test_every_value_of_a_description(world, folder):
    record = json.loads((world.folder / "config.json").read_text())
    record.pop(CHECKSUM)
    text, taken = json.dumps(record), []
    for place in places(record):
        name = ".".join(place)
        cases = [edited(text, place, value) for value in WRONG] + [edited(text, place, leave_out=True)]
        for case in cases:
            found, said = attempt(folder, case)
            if found is None:
                assert "\n" not in said
                assert said.startswith((str(folder), "The weights in", "The model", "There is no model")), said
                assert said.rstrip().endswith("."), said
            else:
                taken.append(name)
                answer = found.predict(world.u0, [0.5], world.given).values
                assert name.startswith(FREE) or (answer == world.right).all(), (name, case)
                assert torch.isfinite(torch.from_numpy(answer)).all(), (name, case)
    few = {name: taken.count(name) for name in taken if name.startswith(REFUSED)}
    assert all(count <= 2 for count in few.values()), few


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("scaling.fields.std", [1.0, 0.0], r"its std of fields is \[1.0, 0.0\]; expected finite numbers above 0"),
        ("scaling.fields.channels", ["q", "h"], "its scales are of the channels q, h, its problem has h, q"),
        ("scaling.params.half_width", [1.0], r"its half_width of parameters is \(1.0,\); expected 2 numbers"),
        ("scaling.horizon", -1.0, r"its horizon is \[-1.0\]; expected finite numbers above 0"),
        ("provenance.resolution", [0], r"its resolution is \[0\]; expected the number of points along each axis"),
        ("provenance.horizon", "long", "its horizon is 'long'; expected a time above 0"),
        (
            "provenance.grid",
            "round",
            "its grid is 'round'; expected a uniform grid, an uneven grid or scattered points",
        ),
        ("provenance.field_ranges", {"p": [0, 1]}, "its field_ranges name 'p', which is no channel of h, q"),
        ("provenance.field_ranges", {"h": [1, 0]}, "its field_ranges is .*; expected the least and the largest value"),
        ("model.options.depth", True, "its option depth is True; expected a whole number"),
        ("model.options.pace", float("inf"), "its option pace is inf; expected a finite number"),
        ("problem.parameters", "ab", "The parameters of a problem are 'ab'; expected a list of names"),
    ],
)
def test_what_is_said_of_it(world, folder, ends, place, value, said):
    record = json.loads((world.folder / "config.json").read_text())
    record.pop(CHECKSUM)
    case = edited(json.dumps(record), tuple(place.split(".")), value)
    (folder / "config.json").write_text(json.dumps(case))
    ends(lambda: library.load(folder), "refused", said)
