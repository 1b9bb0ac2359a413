import pytest
import torch

import vcnef
from vcnef.evaluation.speed import computing_in, measure_speed, speed_table
from vcnef.evaluation.tables import lines

TINY = {"vcnef": {"width": 8, "heads": 2, "depth": 1, "modulations": 1}, "fno": {"width": 4, "modes": 2}}


@pytest.fixture
def models():
    return {name: vcnef.build(name, ndim=1, channels=1, params=1, **options) for name, options in TINY.items()}


def test_every_way_of_asking_is_timed(models):
    said = []
    found = list(measure_speed(models, (2, 4), samples=5, points=16, batch=2, repeats=2, report=said.append))
    ways = {("vcnef", way) for way in ("parallel", "chunks", "sequential")} | {("fno", "rollout")}
    assert {(each.model, each.way) for each in found} == ways
    assert len(found) == len(said) == 2 * len(ways)
    assert all(each.seconds > 0 and each.spread >= 0 and each.peak_memory is None for each in found)
    assert {each.weights for each in found if each.model == "fno"} == {
        sum(weight.numel() for weight in models["fno"].parameters())
    }
    table = "\n".join(lines([speed_table(found, "Speed")]))
    assert "4 steps" in table
    assert "sequential" in table


def test_what_is_asked_in_each_way(models, monkeypatch):
    """All times of a batch at once, or one at a time; a rollout never in parts."""
    asked = []
    for model in models.values():
        query = model.query
        monkeypatch.setattr(model, "query", lambda latent, t, query=query: (asked.append(len(t)), query(latent, t))[1])
    list(measure_speed(models, (3,), samples=2, points=16, batch=2, repeats=1))
    # Warm-up, measurement and (without a GPU) nothing more; sequential asks three times as often.
    assert asked == [3, 3] + [3, 3] + [1] * 6 + [3, 3]


def test_precision_is_as_before_afterwards():
    before = torch.get_float32_matmul_precision()
    with computing_in("tf32", "cpu"):
        assert torch.get_float32_matmul_precision() == "high"
    with computing_in("bf16", "cpu"):
        assert torch.is_autocast_enabled("cpu")
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("wrong", [{"precision": "int4"}, {"samples": 0}, {"batch": 0}, {"repeats": 0}])
def test_wrong_cases(models, wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*; expected"):
        next(measure_speed(models, (2,), **wrong))
