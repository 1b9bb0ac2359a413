"""The loop: it learns, the same way each time, under every knob."""

import sys
import time
from functools import wraps
from itertools import count
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from lightning_fabric import Fabric

from vcnef.data import Batches, Queries
from vcnef.metrics import nrmse
from vcnef.surrogate import Surrogate
from vcnef.training import Recipe, fit
from vcnef.training.devices import share
from vcnef.training.validation import validate


def weights_of(run):
    return torch.cat([weight.detach().flatten() for weight in run.surrogate.model.parameters()])


def test_the_loss_goes_down_and_the_best_model_is_kept(fit_quickly, data):
    run = fit_quickly(epochs=25, learning_rate=1e-2, options={"dropout": 0.0})
    losses = [record["loss"] for record in run.history]
    assert losses[-1] < 0.3 * losses[0]
    assert run.best == min(record["valid_nrmse"] for record in run.history)
    valid = data.split("valid", valid=0.2)
    since = valid.t[1:] - valid.t[0]
    pred = run.surrogate.answer(valid.u[:, 0], valid.grid, since, valid.params)
    assert nrmse(pred, valid.u[:, 1:], initial_frames=0).item() == pytest.approx(run.best, rel=1e-6)
    assert not run.surrogate.model.training


def test_the_same_seed_gives_the_same_weights(fit_quickly):
    first, again = fit_quickly(), fit_quickly()
    assert torch.equal(weights_of(first), weights_of(again))
    assert not torch.equal(weights_of(first), weights_of(fit_quickly(seed=1)))


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "muon"])
@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_optimisers_and_schedules(fit_quickly, tmp_path, optimiser, schedule):
    knobs = {"optimiser": optimiser, "schedule": schedule, "weight_decay": 0.01, "learning_rate": 3e-3, "save_every": 1}
    whole = fit_quickly(epochs=2, **knobs)
    assert whole.history[-1]["loss"] < whole.history[0]["loss"]
    fit_quickly(epochs=2, out=tmp_path, **knobs)
    assert torch.load(tmp_path / "state.pt", weights_only=True)["step"] == 10


def test_muon_resumes_exactly(fit_quickly, tmp_path):
    def batch_loss(model, batch, progress):
        return (model(batch.u0, batch.grid, batch.t, batch.params) - batch.u).square().mean()

    @wraps(batch_loss)
    def stop(model, batch, progress):
        if progress > 0.5:
            raise KeyboardInterrupt
        return batch_loss(model, batch, progress)

    knobs = {"epochs": 2, "optimiser": "muon", "schedule": "constant"}
    whole = fit_quickly(arguments={"objective": batch_loss}, **knobs)
    with pytest.raises(KeyboardInterrupt):
        fit_quickly(out=tmp_path, arguments={"objective": stop}, **knobs)
    resumed = fit_quickly(out=tmp_path, arguments={"objective": batch_loss, "resume": True}, **knobs)
    assert torch.equal(weights_of(whole), weights_of(resumed))


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_precisions(fit_quickly, precision):
    run = fit_quickly(precision=precision)
    assert run.history[-1]["loss"] == pytest.approx(fit_quickly().history[-1]["loss"], rel=2e-2)
    assert weights_of(run).dtype == torch.float32
    assert torch.get_float32_matmul_precision() == "highest"


def test_half_precision_rounds_nothing_that_goes_in(fit_quickly):
    """Neighbouring points, times and targets would be one otherwise."""
    asked = []

    def objective(model, batch, progress):
        asked.append(batch)
        u = model(batch.u0, batch.grid, batch.t, batch.params)
        assert torch.is_autocast_enabled("cpu")
        assert u.dtype == torch.float32
        return (u - batch.u).square().mean()

    fit_quickly(precision="bf16", arguments={"objective": objective})
    for name in ("u0", "grid", "t", "params", "u"):
        assert getattr(asked[0], name).dtype == torch.float32
    assert not torch.equal(asked[0].u, asked[0].u.bfloat16().float())


def test_half_precision_needs_a_gpu(fit_quickly):
    with pytest.raises(ValueError, match="precision is 'fp16', which needs a GPU; there is none"):
        fit_quickly(precision="fp16")


@pytest.mark.parametrize("devices", ["2", "cuda", 0, -1])
def test_devices_that_are_none_are_refused(fit_quickly, devices):
    with pytest.raises(ValueError, match=f"devices is {devices!r}; expected a number of at least 1, 'auto' or 'cpu'"):
        fit_quickly(arguments={"devices": devices})


def test_relative_loss_and_queries(fit_quickly):
    run = fit_quickly(loss="relative", arguments={"queries": Queries(times=2, random_starts=0.5)})
    assert 0.1 < run.history[-1]["loss"] < 2
    passes = fit_quickly(arguments={"queries": Queries(passes=1)})
    assert passes.history[-1]["step"] == 10


def test_without_validation_the_last_weights_are_kept(world, data, tmp_path):
    surrogate = world.make_surrogate(data)
    run = fit(surrogate, data.split("train"), None, Recipe(epochs=2, batch=4), out=tmp_path, devices="cpu")
    assert run.best == float("inf")
    assert run.history[-1]["valid_nrmse"] is None
    state = torch.load(tmp_path / "state.pt", weights_only=True)["model"]
    saved = Surrogate.load(tmp_path).model.state_dict()
    assert all(torch.equal(saved[name], value) for name, value in state.items())


def test_a_score_that_is_not_a_number_is_beaten_by_any(fit_quickly, monkeypatch, tmp_path):
    """Also later, when the run is made longer."""
    scores = iter([float("nan"), 0.5])
    monkeypatch.setattr(sys.modules["vcnef.training.fit"], "validate", lambda *_: next(scores))
    assert fit_quickly(out=tmp_path).best == float("inf")
    longer = fit_quickly(epochs=2, out=tmp_path, arguments={"resume": True})
    assert longer.best == 0.5
    assert longer.surrogate.provenance["epoch"] == 2


def test_validation_can_be_rarer(fit_quickly):
    run = fit_quickly(epochs=3, validate_every=2)
    scores = [record["valid_nrmse"] for record in run.history]
    assert scores[0] is None
    assert scores[1] is not None
    assert scores[2] is not None


def test_the_average_is_what_is_judged_and_saved(fit_quickly, data, tmp_path):
    run = fit_quickly(ema=0.99, out=tmp_path / "run", train=data.split("train"), valid=data.split("valid", valid=0.2))
    state = torch.load(tmp_path / "run" / "state.pt", weights_only=True)
    names = [name for name, _ in run.surrogate.model.named_parameters()]
    averages = dict(zip(names, state["average"]["values"], strict=True))
    saved = Surrogate.load(tmp_path / "run")
    for name, value in saved.model.named_parameters():
        assert torch.equal(value, averages[name])
    assert any(not torch.equal(state["model"][name], averages[name]) for name in names)
    valid = Batches(data.split("valid", valid=0.2), 4, seed=None)
    assert validate(saved, valid, Fabric(accelerator="cpu")) == pytest.approx(run.best)


def test_minutes_end_a_run_and_its_schedule(fit_quickly):
    seen = []

    def watch(model, batch, progress):
        seen.append(progress)
        return (model(batch.u0, batch.grid, batch.t, batch.params) - batch.u).square().mean()

    run = fit_quickly(epochs=100_000, minutes=0.02, arguments={"objective": watch})
    # The last validation has its time, too.
    assert 1.0 <= run.history[-1]["seconds"] < 5
    assert seen == sorted(seen)
    assert seen[-1] > 0.8
    assert run.best < float("inf")


def test_a_slow_first_step_is_no_progress(fit_quickly):
    """Compilers work in it; a rate that is meant to rise should not find itself at the top afterwards."""
    seen = []

    def compile_first(model, batch, progress):
        if not seen:
            time.sleep(0.4)
        seen.append(progress)
        return (model(batch.u0, batch.grid, batch.t, batch.params) - batch.u).square().mean()

    run = fit_quickly(epochs=100_000, minutes=0.02, arguments={"objective": compile_first})
    assert seen[1] < 0.1
    assert seen[-1] > 0.8
    assert 1.0 <= run.history[-1]["seconds"] < 5


def test_progress_is_reported(fit_quickly, monkeypatch):
    monkeypatch.setattr("vcnef.training.progress.SECONDS_BETWEEN_REPORTS", 0.0)
    records = []
    fit_quickly(epochs=2, arguments={"on_progress": records.append})
    assert len(records) == 12
    assert [record["step"] for record in records[:6]] == [1, 2, 3, 4, 5, 5]
    assert records[-1]["seconds_left"] == 0.0
    assert records[6]["valid_nrmse"] == records[5]["valid_nrmse"] is not None


def test_samples_per_second_are_those_that_there_are(fit_quickly, data, monkeypatch):
    """A batch may be larger than the data, and the last one of an epoch is often smaller."""
    monkeypatch.setattr("vcnef.training.progress.time", SimpleNamespace(monotonic=count().__next__))
    samples = len(data.split("train", valid=0.2))
    speeds = {batch: fit_quickly(batch=batch).history[-1]["samples_per_second"] for batch in (3 * samples, samples - 1)}
    # The clock goes on by a second whenever it is read: after each step, and at the end.
    assert speeds == {3 * samples: round(samples / 2, 1), samples - 1: round(samples / 3, 1)}


@pytest.mark.parametrize(
    ("compile", "passes", "expected"), [(None, 0, []), (True, 0, [False]), (True, 1, [None]), (False, 0, [])]
)
def test_compiling_is_for_the_run_only(fit_quickly, monkeypatch, compile, passes, expected):
    """By default on a GPU; with fixed shapes, unless passes bring many of them. Both ways to call the model, and the
    error."""
    asked = []
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: asked.append(dynamic) or function)
    run = fit_quickly(compile=compile, arguments={"queries": Queries(passes=passes)})
    assert asked == 3 * expected
    assert run.surrogate.model._compiled_call_impl is None


def test_of_a_model_that_steps_one_step_is_compiled(data, monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "compile", lambda error, **_: error)
    monkeypatch.setattr(torch.nn.Module, "compile", lambda module, **_: asked.append(type(module).__name__))
    surrogate = Surrogate.build("fno", {"width": 4, "modes": 2}, data.split("train"), seed=0)
    for unroll in ("full", "curriculum", "push_forward"):
        recipe = Recipe(epochs=1, batch=8, compile=True, unroll=unroll)
        run = fit(surrogate, data.split("train"), data.split("valid"), recipe, devices="cpu")
        assert 0 < run.best < 10
    assert asked == ["FNO"] * 3


def test_a_model_without_weights_to_train_is_refused(world, data):
    """And stays ready to predict."""
    surrogate = world.make_surrogate(data)
    surrogate.model.eval().requires_grad_(False)
    with pytest.raises(ValueError, match=r"VCNeF has no weights to train\. Set requires_grad of those"):
        fit(surrogate, data.split("train"), None, Recipe(epochs=1), devices="cpu")
    assert not surrogate.model.training


def test_a_batch_must_be_shared_equally(world):
    assert share(Recipe(batch=8), Mock(spec=Fabric, world_size=4)) == 2
    with pytest.raises(ValueError, match=r"batch is 6, which 4 devices cannot share equally. Use a multiple of 4."):
        share(Recipe(batch=6), Mock(spec=Fabric, world_size=4))


def test_shares_of_validation_cover_it_once(world, data):
    """Two processes, one after the other: their parts add up to the whole, also where shares are padded."""
    surrogate, valid = world.make_surrogate(data), data.split("test")
    assert len(valid) == 2
    three = data.view().split("valid", valid=0.15)
    alone = validate(surrogate, Batches(three, 2, seed=None), Mock(spec=Fabric))
    parts = []
    for rank in (0, 1):
        fabric = Mock(spec=Fabric, device="cpu", all_reduce=lambda total, reduce_op: parts.append(total) or total)
        validate(surrogate, Batches(three, 2, seed=None, shard=(rank, 2)), fabric)
    total = parts[0] + parts[1]
    frames, channels = three.u.shape[1] - 1, three.u.shape[-1]
    assert len(three) == 3
    assert total[1] == 3 * frames * channels
    assert float(total[0] / total[1]) == pytest.approx(alone, rel=1e-6)


def test_what_has_faded_does_not_choose_the_weights(world, data):
    """Where rounding errors are left of a field, an error of nothing else weighs no more than a thousandth allows."""
    surrogate = world.make_surrogate(data)
    before = validate(surrogate, Batches(data, 4, seed=None), Mock(spec=Fabric))
    data.u[:, -1] *= 1e-9
    after = validate(surrogate, Batches(data, 4, seed=None), Mock(spec=Fabric))
    assert before < 10
    assert after < 1000 * before


def test_a_model_that_steps_does_so_from_frame_to_frame(data):
    surrogate = Surrogate.build("fno", {"width": 4, "modes": 4, "steps": 2 * len(data.t)}, data.split("train"))
    with pytest.raises(
        ValueError, match=f"fno takes {2 * len(data.t)} steps .* the data have {len(data.t) - 1} frames"
    ):
        fit(surrogate, data.split("train"), None, Recipe(epochs=1))
