import pytest
import torch

import vcnef
from vcnef.accelerate import predict
from vcnef.evaluation.speed import measure_memory, measure_speed, speed_table
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


def test_what_is_asked_in_each_way(models, note_parts):
    """All times of a batch at once, or one at a time; a rollout never in parts."""
    asked = []
    for model in models.values():
        note_parts(model, asked)
    list(measure_speed(models, (3,), samples=2, points=16, batch=2, repeats=1))
    # Warm-up, measurement and (without a GPU) nothing more; sequential asks three times as often.
    assert asked == [3, 3] + [3, 3] + [1] * 6 + [3, 3]


@pytest.mark.parametrize(
    ("precision", "products", "autocast"), [("tf32", "high", False), ("fp32", "highest", False), ("bf16", None, True)]
)
def test_models_compute_in_the_precision_that_is_asked(models, monkeypatch, precision, products, autocast):
    model, seen = models["fno"], []
    query = model.query

    def noting(latent, t):
        seen.append((torch.get_float32_matmul_precision(), torch.is_autocast_enabled("cpu")))
        return query(latent, t)

    before = torch.get_float32_matmul_precision()
    monkeypatch.setattr(model, "query", noting)
    list(measure_speed({"fno": model}, (2,), samples=1, points=16, batch=1, repeats=1, precision=precision))
    assert set(seen) == {(products or before, autocast)}
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("ndim", [2, 3])
def test_models_of_more_dimensions_are_asked_on_their_own_clock(ndim):
    models = {"fno": vcnef.build("fno", ndim=ndim, channels=2, steps=7, width=4, modes=2)}
    (found,) = measure_speed(models, (7,), samples=1, points=8, batch=1, repeats=1)
    assert (found.way, found.steps) == ("rollout", 7)


def test_a_model_too_large_for_the_device_does_not_end_the_table(models, monkeypatch):
    def too_much(model, *question, **asked):
        if model is models["vcnef"]:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return predict(model, *question, **asked)

    monkeypatch.setattr("vcnef.evaluation.speed.predict", too_much)
    found = list(measure_speed(models, (2,), samples=1, points=16, batch=1, repeats=1))
    assert [each.fits for each in found] == [False] * 3 + [True]
    assert "out of memory" in "\n".join(lines([speed_table(found, "Speed")]))


def test_memory_needs_a_gpu(models):
    with pytest.raises(ValueError, match="Memory is measured on a CUDA device, got cpu"):
        next(measure_memory(models, (2,), device="cpu"))


@pytest.mark.gpu
def test_memory_grows_with_the_times_that_are_asked_at_once(models):
    found = {
        (each.way, each.steps): each.peak_memory
        for each in measure_memory({"vcnef": models["vcnef"]}, (8, 64), points=256, batch=8, precision="fp32")
    }
    assert found["parallel", 64] > found["parallel", 8]
    assert found["sequential", 64] < found["parallel", 64]


@pytest.mark.parametrize("wrong", [{"precision": "int4"}, {"samples": 0}, {"batch": 0}, {"repeats": 0}])
def test_wrong_cases(models, wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*; expected"):
        next(measure_speed(models, (2,), **wrong))
