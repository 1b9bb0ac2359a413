"""Several processes of one run, of which one is lost; and several runs that want the same folder."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

SCRIPT = """
import os, signal, sys
import numpy as np, torch
import vcnef

torch.set_num_threads(1)
out, victim, resume = sys.argv[1], sys.argv[2], sys.argv[3] == "resume"
me, chance = os.environ.get("LOCAL_RANK", "0"), np.random.default_rng(0)


def objective(model, batch, progress):
    if victim == me and progress > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    return (model(batch.u0, batch.grid, batch.t, batch.params) - batch.u).square().mean()


try:
    run = vcnef.fit(
        chance.standard_normal((24, 4, 16, 1)), t=np.arange(4.0), params={"nu": chance.random(24)}, periodic=True,
        out=out, model="vcnef", window="direct", width=16, heads=2, depth=1, modulations=1, epochs=4, batch=4,
        seed=int(os.environ.get("SEED", "0")), devices=int(os.environ.get("DEVICES", "2")), objective=objective,
        quiet=True, resume=resume,
    )
    words = f"trained {len(run.history)} epochs"
except OSError as error:
    words = f"{type(error).__name__}: {error}"
os.write(1, f"[{me}] {words}\\n".encode())
"""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SCRIPT)
    return path


def start(script, folder, victim="nobody", resume="", **variables):
    command = [sys.executable, script, folder, victim, resume]
    return subprocess.Popen(
        command, env=ENVIRONMENT | variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "other"), [("1", "0"), ("0", "1")])
def test_a_lost_process_is_noticed_and_the_run_goes_on(script, tmp_path, victim, other):
    folder = tmp_path / "run"
    lost = start(script, folder, victim)
    said, _ = lost.communicate(timeout=120)  # pipes close when the last process has ended
    expected = r"LostProcessError: Another of the 2 processes of this run has ended or cannot be reached, noticed at"
    assert re.search(rf"\[{other}\] {expected} step \d+\. See why it ended", said), said
    said, _ = start(script, folder, resume="resume").communicate(timeout=120)
    assert "[0] trained 4 epochs" in said
    assert "[1] trained" in said


@pytest.mark.slow
def test_a_plain_script_is_warned_that_it_runs_several_times(script, tmp_path):
    running = start(script, tmp_path / "run")
    said, warned = running.communicate(timeout=120)
    assert said.count("trained 4 epochs") == 2
    assert warned.count("devices is 2: each further process runs this script from its first line") == 1


@pytest.mark.slow
def test_of_two_starts_at_once_one_trains(script, tmp_path):
    """Whichever comes first; the folder is that of one of them."""
    for trial in range(4):
        folder = tmp_path / f"run{trial}"
        runs = [start(script, folder, SEED=seed, DEVICES="1") for seed in ("0", "1")]
        said = [each.communicate(timeout=120)[0] for each in runs]
        trained = [seed for seed, words in enumerate(said) if "trained 4 epochs" in words]
        refused = [words for words in said if "FileExistsError" in words]
        assert (len(trained), len(refused)) == (1, 1), said
        assert re.search("Another process is training in|already holds a run", refused[0])
        config = yaml.safe_load((folder / "config.yaml").read_text())
        state = torch.load(folder / "state.pt", weights_only=True)
        assert config["train"]["seed"] == state["recipe"]["seed"] == trained[0]
        assert len((folder / "log.jsonl").read_text().splitlines()) == 4


@pytest.mark.slow
def test_of_two_that_resume_at_once_one_goes_on(script, tmp_path):
    folder = tmp_path / "run"
    first = start(script, folder, "0", DEVICES="1")
    first.communicate(timeout=120)
    assert first.returncode == -signal.SIGKILL
    again = [start(script, folder, resume="resume", DEVICES="1") for _ in range(2)]
    said = "".join(each.communicate(timeout=120)[0] for each in again)
    assert said.count("trained 4 epochs") + said.count("Another process is training in") == 2
    assert "trained 4 epochs" in said
    assert len((folder / "log.jsonl").read_text().splitlines()) == 4


def test_a_folder_that_was_taken_meanwhile_is_left_alone(tmp_path, monkeypatch):
    """It was empty when it was looked at, and holds a run when the lock is free."""
    from vcnef.training import checkpoint

    folder = checkpoint.RunFolder(tmp_path / "run")
    hold = checkpoint.hold

    def hold_late(path: Path):
        (path.parent / "state.pt").write_bytes(b"another's")
        return hold(path)

    monkeypatch.setattr(checkpoint, "hold", hold_late)
    with pytest.raises(FileExistsError, match=r"already holds a run \(state.pt\)"):
        folder.open(resume=False)
    os.close(hold(tmp_path / "run" / ".lock"))  # which is free again
