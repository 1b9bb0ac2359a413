"""Logs beside the JSON lines."""

import sys
from types import SimpleNamespace

import pytest

from vcnef.training.log import Lines, TensorBoard, WeightsAndBiases


@pytest.mark.parametrize("package", ["tensorboard", "wandb"])
def test_a_missing_package_is_named_with_its_extra(fit_quickly, tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=rf"logs names '{package}', which is not installed\. .*vcnef\[{package}\]"):
        fit_quickly(out=tmp_path, logs=(package,))
    fit_quickly(out=tmp_path)  # the folder is still free


def test_wandb_is_given_every_record(tmp_path, monkeypatch):
    seen, settings = [], {}

    def init(**given):
        settings.update(given)
        log = lambda record, step: seen.append((record["loss"], step))  # noqa: E731
        return SimpleNamespace(log=log, finish=lambda: seen.append("finished"))

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    log = WeightsAndBiases(tmp_path / "run")
    log.write({"step": 5, "loss": 0.5})
    log.close()
    assert seen == [(0.5, 5), "finished"]
    assert settings["name"] == "run"
    WeightsAndBiases(other := tmp_path / "elsewhere" / "run")
    identity = settings["id"]
    WeightsAndBiases(tmp_path / "run")
    assert settings["id"] != identity
    WeightsAndBiases(other)
    assert settings["id"] == identity


def test_tensorboard_itself(fit_quickly, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = fit_quickly(out=tmp_path / "run", logs=("tensorboard",), epochs=3)
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    losses = [event.value for event in events.Scalars("loss")]
    assert losses == pytest.approx([record["loss"] for record in run.history])


def test_wandb_itself_without_a_network(fit_quickly, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    fit_quickly(out=tmp_path / "run", logs=("wandb",))
    assert list((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))


def test_tensorboard_is_given_every_number(tmp_path, monkeypatch):
    seen = []
    writer = SimpleNamespace(add_scalar=lambda *given: seen.append(given), close=lambda: seen.append("closed"))
    monkeypatch.setitem(sys.modules, "tensorboard", SimpleNamespace())
    module = SimpleNamespace(SummaryWriter=lambda folder, purge_step: writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    log = TensorBoard(tmp_path)
    log.write({"step": 5, "loss": 0.5, "valid_nrmse": None})
    log.close()
    assert seen == [("loss", 0.5, 5), "closed"]


def test_numbers_that_json_lacks_are_null(tmp_path):
    lines = Lines(tmp_path / "log.jsonl")
    lines.write({"step": 1, "loss": float("nan"), "valid_nrmse": float("inf")})
    assert (tmp_path / "log.jsonl").read_text() == '{"step": 1, "loss": null, "valid_nrmse": null}\n'
