import json

import pytest

from vcnef.problem import Problem


def test_a_problem_survives_json():
    problem = Problem(
        "cns2d",
        channels=("density", "vx"),
        parameters=("eta",),
        domain=((0.0, 1.0), (-1.0, 1.0)),
        periodic=False,
        ranges={"eta": (0.01, 0.1)},
        units={"vx": "m/s"},
    )
    assert problem.ndim == 2
    assert Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"channels": ()}, "has no channels"),
        ({"channels": ("u", "u")}, "names a channel or parameter twice"),
        ({"channels": ("u", "x")}, "channel 'x', which is the name of a coordinate"),
        ({"channels": ("u",), "parameters": ("nu", "sample")}, "parameter 'sample', which is the name of a coordinate"),
        ({"channels": ("u",), "domain": ()}, "has 0 axes"),
        ({"channels": ("u",), "domain": ((1.0, 0.0),)}, r"axis \(1.0, 0.0\); expected finite low < high"),
        ({"channels": ("u",), "domain": ((0.0, float("nan")),)}, "expected finite low < high"),
        ({"channels": ("u",), "ranges": {"nu": (0.0, 1.0)}}, r"ranges for \['nu'\]"),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Problem("test", **arguments)


def test_an_unknown_field_of_a_description_is_named():
    with pytest.raises(ValueError, match="no field \\['colour'\\]"):
        Problem.from_dict({"name": "test", "channels": ["u"], "domain": [[0, 1]], "colour": "red"})
