"""A run's clock: processes that train together go by one, and what is judged takes time too."""

import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from lightning_fabric import Fabric

from vcnef.training.stopping import Clock, Signals


@pytest.fixture
def now(monkeypatch):
    """Seconds, which pass when they are told to."""
    seconds = [0.0]
    monkeypatch.setattr("vcnef.training.stopping.time", SimpleNamespace(monotonic=lambda: seconds[0]))
    return seconds


def test_a_resumed_run_has_one_rate_for_all_processes(now):
    """However long each of them took to compile."""
    said = []
    # The first process speaks before the others listen.
    fabric = Mock(spec=Fabric, world_size=2, broadcast=lambda mine: said[0] if said else (said.append(mine), mine)[1])
    clocks = [Clock(fabric, Signals(), 10**6, 1.0, 30.0, 5.0) for _ in range(2)]
    for clock, compiling in zip(clocks, (3.0, 7.0), strict=True):
        now[0] = compiling
        clock.agree(21)
    assert [clock.prepared for clock in clocks] == [8.0, 8.0]
    assert clocks[0].progress(21) == clocks[1].progress(21) == 25.0 / 52.0


def run_by(now, fit_quickly, monkeypatch, validations, **options):
    """Seven seconds of steps of 20 ms each, with validations of some seconds; the progress of each step."""
    seen, left = [], list(validations)

    def objective(model, batch, progress):
        now[0] += 0.02
        seen.append(progress)
        return next(model.parameters()).square().mean()

    objective.name = None  # like the recipe's own loss, with which a run may go on

    def validate(*_):
        now[0] += left.pop(0) if len(left) > 1 else left[0]
        return 0.5

    monkeypatch.setattr(sys.modules["vcnef.training.fit"], "validate", validate)
    run = fit_quickly(epochs=10**6, minutes=7 / 60, arguments={"objective": objective}, **options)
    assert seen == sorted(seen)
    assert run.history[-1]["valid_nrmse"] == 0.5
    return seen


@pytest.mark.parametrize("seconds", [0.003, 0.3, 2.0])
def test_a_run_ends_with_its_schedule_however_long_validation_takes(now, fit_quickly, monkeypatch, seconds):
    seen = run_by(now, fit_quickly, monkeypatch, [seconds])
    assert seen[-1] > 0.99
    assert now[0] == pytest.approx(7.0, abs=0.05)


@pytest.mark.parametrize("seconds", [(1.0, 0.01), (0.01, 0.5, 0.02)])
def test_a_validation_may_take_longer_than_others(now, fit_quickly, monkeypatch, seconds):
    """The first one, which may have to compile, above all."""
    assert run_by(now, fit_quickly, monkeypatch, seconds)[-1] > 0.98
    assert 6.9 < now[0] < 7.1


def test_a_validation_that_outlasts_the_run_is_its_last(now, fit_quickly, monkeypatch, tmp_path):
    assert len(run_by(now, fit_quickly, monkeypatch, [10.0], out=tmp_path)) == 5
    assert now[0] == pytest.approx(10.1)
    assert {"model", "state.pt", "log.jsonl"} <= {path.name for path in tmp_path.iterdir()}


def test_a_complete_run_stays_complete_though_its_last_validation_was_quick(now, fit_quickly, monkeypatch, tmp_path):
    # Two seconds were reserved for it: steps end at 5.
    run_by(now, fit_quickly, monkeypatch, [2.0, 0.5], out=tmp_path)
    assert now[0] < 6
    steps = torch.load(tmp_path / "state.pt", weights_only=True)["step"]
    again = fit_quickly(epochs=10**6, minutes=7 / 60, out=tmp_path, arguments={"resume": True})
    assert again.history[-1]["step"] == steps
    assert torch.load(tmp_path / "state.pt", weights_only=True)["step"] == steps


def test_processes_reserve_the_same_time_for_the_last_validation(now):
    said = []
    first = Mock(spec=Fabric, world_size=2, broadcast=lambda mine: (said.append(mine), mine)[1])
    second = Mock(spec=Fabric, world_size=2, broadcast=lambda mine: said[-1])
    clocks = [Clock(fabric, Signals(), 10**6, 1.0, 0.0, 0.0) for fabric in (first, second)]
    for clock, until in zip(clocks, (8.0, 9.0), strict=True):
        now[0] = 5.0
        with clock.judging(5):
            now[0] = until
    assert [clock.reserved for clock in clocks] == [3.0, 3.0]
    assert clocks[0].progress(5) == clocks[1].progress(5) == 8.0 / 57.0
