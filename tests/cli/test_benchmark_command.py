import json

import pytest


def test_the_speed_table(vcnef, tmp_path):
    path = tmp_path / "speed.json"
    case = ("--samples", "2", "--points", "16", "--batch", "2", "--steps", "2,3", "--repeats", "1")
    status, printed, _ = vcnef("benchmark", "speed", "--models", "vcnef,fno", *case, "--device", "cpu", "--json", path)
    assert status == 0
    for word in ("sequential", "rollout", "3 steps", "793,825", "549,633"):
        assert word in printed
    record = json.loads(path.read_text())
    assert len(record["results"]) == 2 * 4
    assert record["points"] == 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("speed", "--models", "fnoo"), "There is no model 'fnoo'"),
        (("speed", "--models", "fno", "--steps", "0"), "--steps 0 is not understood"),
        (("speed", "--models", "fno", "--precision", "fp8"), "precision is 'fp8'; expected one of default"),
        (("accuracy",), "accuracy"),
    ],
)
def test_wrong_questions(vcnef, arguments, message):
    status, _, complaint = vcnef("benchmark", *arguments)
    assert status == 2
    assert message in complaint
