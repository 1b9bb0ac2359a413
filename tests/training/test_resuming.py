"""Runs that are killed, asked to stop, or started by several processes."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from math import inf

import pytest
import torch
from safetensors.torch import load_file

from vcnef.surrogate import Surrogate
from vcnef.training import Stopped

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def log_of(folder):
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{name: record[name] for name in ("epoch", "step", "loss", "valid_nrmse")} for record in records]


def same_bytes(first, second):
    return (first / "model" / "model.safetensors").read_bytes() == (second / "model" / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def uninterrupted(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    threads = torch.get_num_threads()
    run = world.run(folder)
    torch.set_num_threads(threads)
    return run


def test_a_killed_run_continues_bit_by_bit(world, uninterrupted, tmp_path):
    folder, steps = tmp_path / "run", tmp_path / "steps"
    process = subprocess.Popen([sys.executable, world.script, folder, steps], env=ENVIRONMENT)
    last = random.Random(time.time()).randrange(1, 19)
    while not steps.exists() or steps.stat().st_size < last:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    resumed = world.run(folder, resume=True)
    assert same_bytes(folder, uninterrupted.folder), f"killed in step {last}"
    assert log_of(folder) == log_of(uninterrupted.folder)
    ends = [torch.load(each / "state.pt", weights_only=True) for each in (folder, uninterrupted.folder)]
    for name, value in ends[0]["model"].items():
        assert torch.equal(value, ends[1]["model"][name])
    assert resumed.best == uninterrupted.best
    assert len(resumed.history) == 4


@pytest.mark.parametrize("step", [7, 10])
def test_a_signal_saves_the_state_and_stops(world, uninterrupted, tmp_path, step):
    """Within an epoch, and at its very end."""
    folder = tmp_path / "run"
    with pytest.raises(Stopped, match=rf"Stopped by SIGTERM after step {step} of 20: its state is saved in .*resume"):
        world.run(folder, steps_file=world.StopAfter(step))
    assert torch.load(folder / "state.pt", weights_only=True)["step"] == step
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    world.run(folder, resume=True)
    assert same_bytes(folder, uninterrupted.folder)
    assert log_of(folder) == log_of(uninterrupted.folder)


def test_a_run_with_muon_continues_bit_by_bit(world, tmp_path):
    muon = {"optimiser": "muon", "epochs": 2}
    whole = world.run(tmp_path / "whole", **muon)
    with pytest.raises(Stopped):
        world.run(tmp_path / "run", steps_file=world.StopAfter(7), **muon)
    world.run(tmp_path / "run", resume=True, **muon)
    assert same_bytes(tmp_path / "run", whole.folder)
    assert log_of(tmp_path / "run") == log_of(whole.folder)


def test_resuming_a_complete_run_gives_its_best_model(world, uninterrupted):
    before = load_file(uninterrupted.folder / "model" / "model.safetensors")
    again = world.run(uninterrupted.folder, resume=True)
    assert all(torch.equal(value, before[name]) for name, value in again.surrogate.model.state_dict().items())
    assert again.best == uninterrupted.best


def test_a_run_can_be_made_longer(world, tmp_path):
    world.run(tmp_path / "run", epochs=1)
    longer = world.run(tmp_path / "run", epochs=2, resume=True)
    assert [record["epoch"] for record in longer.history] == [1, 2]


@pytest.mark.parametrize("step", [7, 10])
def test_a_run_that_is_made_shorter_than_it_came_has_a_model(world, tmp_path, step):
    """Its last weights, or their average: it was stopped before any were judged."""
    with pytest.raises(Stopped):
        world.run(tmp_path, steps_file=world.StopAfter(step), validate_every=3)
    shorter = world.run(tmp_path, resume=True, epochs=1, validate_every=3)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state["best"] == shorter.best < inf
    averages = zip(shorter.surrogate.model.parameters(), state["average"]["values"], strict=True)
    assert all(torch.equal(weight, average) for weight, average in averages)
    assert Surrogate.load(tmp_path / "model").provenance["step"] == step


@pytest.fixture(scope="module")
def together(world, tmp_path_factory):
    """The runs of two processes."""
    folder = tmp_path_factory.mktemp("together")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    process = subprocess.run([*launch, world.script, folder, "together"], env=ENVIRONMENT, capture_output=True)
    assert process.returncode == 0, process.stderr.decode()
    return folder


def test_two_processes_are_one_with_the_joint_batch(world, together, tmp_path):
    world.run(tmp_path, random=False)
    for mine, other in zip(log_of(together / "plain"), log_of(tmp_path), strict=True):
        assert mine == pytest.approx(other, rel=1e-5)
    other = load_file(tmp_path / "model" / "model.safetensors")
    for name, value in load_file(together / "plain" / "model" / "model.safetensors").items():
        torch.testing.assert_close(value, other[name], rtol=1e-3, atol=1e-5)


def test_two_processes_have_parted_before_they_end(together):
    assert (together / "connected").read_text() == "False"


def test_two_processes_continue_bit_by_bit(together):
    assert same_bytes(together / "stopped", together / "whole")
    # Losses of an epoch in two parts are added in another order.
    for mine, other in zip(log_of(together / "stopped"), log_of(together / "whole"), strict=True):
        assert mine == pytest.approx(other, rel=1e-6)
