"""What training costs is measured with the loop's own step."""

import pytest
import torch

import vcnef
from vcnef.models.release_code import load_release
from vcnef.training import cost as room
from vcnef.training.cost import measure_training

CASE = {"points": 16, "frames": 4, "batch": 2, "repeats": 2}


@pytest.fixture
def models():
    sizes = {"channels": 1, "params": 1}
    return {
        "vcnef": vcnef.build("vcnef", ndim=1, **sizes, width=8, heads=2, depth=1, modulations=1),
        "fno": vcnef.build("fno", ndim=1, **sizes, width=4, modes=2, steps=4),
        "coral": vcnef.build("coral", ndim=1, **sizes, width=8, latent=4, dynamics_width=8, steps=4),
        "fno 2d": vcnef.build("fno", ndim=2, channels=2, width=4, modes=2, steps=3),
    }


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr(room, "MOST_STEPS", 2)


@pytest.mark.usefixtures("few_steps")
def test_every_kind_of_model_is_measured(models):
    before = {name: [each.clone() for each in model.parameters()] for name, model in models.items()}
    said = []
    found = list(measure_training(models, **CASE, times=3, epoch_samples=5, report=said.append))
    assert [each.model for each in found] == list(models)
    # A rollout passes all frames of its own clock.
    assert [each.times for each in found] == [3, 4, 4, 3]
    for each in found:
        assert each.seconds > 0
        assert each.spread >= 0
        assert each.epoch_seconds == pytest.approx(3 * each.seconds)
        assert each.peak_memory is None
        assert not each.recorded
        # The steps were real ones.
        assert not torch.equal(before[each.model][0], next(models[each.model].parameters()))
    assert len(said) == len(models)


@pytest.mark.usefixtures("few_steps")
def test_the_batches_are_what_was_asked(models, monkeypatch):
    asked = []
    forward = models["vcnef"].forward

    def noting(u0, grid, t, params=None):
        asked.append((len(u0), u0.shape[1], len(t), params.shape[1], torch.is_autocast_enabled("cpu")))
        return forward(u0, grid, t, params)

    monkeypatch.setattr(models["vcnef"], "forward", noting)
    list(measure_training({"vcnef": models["vcnef"]}, **CASE, times=2, precision="bf16"))
    # A warm-up, one step to see how long it takes, and two measurements of two.
    assert asked == [(2, 16, 2, 1, True)] * 6


@pytest.mark.usefixtures("few_steps")
def test_the_release_is_neither_compiled_nor_recorded(release, monkeypatch):
    seen = []
    prepare = room.prepare
    monkeypatch.setattr(room, "prepare", lambda *parts, **more: (seen.append(parts[4]), prepare(*parts, **more))[1])
    (found,) = measure_training({"release": load_release(release, ndim=1, channels=1, params=1)}, **CASE)
    assert [recipe.compile for recipe in seen] == [False]
    assert found.times == 4


@pytest.mark.usefixtures("few_steps")
def test_a_model_too_large_for_the_device_does_not_end_the_table(models, monkeypatch):
    def too_much(*question):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(models["vcnef"], "forward", too_much)
    found = list(measure_training({name: models[name] for name in ("vcnef", "fno")}, **CASE))
    assert [each.fits for each in found] == [False, True]
    assert found[0].seconds is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"precision": "fp8"}, "precision is 'fp8'; expected one of fp32, tf32, bf16"),
        ({"times": 5}, "times is 5; expected 1 to 4, of which they are drawn"),
        ({"batch": 0}, "batch is 0; expected at least 1"),
        ({"epoch_samples": 0}, "epoch_samples is 0; expected at least 1"),
    ],
)
def test_wrong_cases(models, wrong, message):
    with pytest.raises(ValueError, match=message):
        next(measure_training(models, **CASE | wrong))


def test_models_that_are_not_trained_on_trajectories_are_refused_before_others_are_measured(models):
    models["pinn"] = vcnef.build("pinn", ndim=1, channels=1)
    with pytest.raises(ValueError, match="pinn is trained on an equation, not on trajectories"):
        next(measure_training(models, **CASE))


@pytest.mark.gpu
@pytest.mark.usefixtures("few_steps")
def test_memory_on_a_gpu(release):
    model = load_release(release, ndim=1, channels=1, params=1)
    (found,) = measure_training({"release": model}, **CASE, device="cuda")
    assert found.peak_memory > 0
    assert not found.recorded
