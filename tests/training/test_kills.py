"""Runs that end at any moment of their writing, or find no room: they go on bit for bit, or are begun anew."""

import json
import os
import resource
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import vcnef as library
from vcnef.data import from_arrays

SETTINGS = {
    "model": "vcnef", "window": "direct", "width": 16, "heads": 2, "depth": 1, "modulations": 1, "dropout": 0.1,
    "epochs": 3, "batch": 4, "save_every": 2, "quiet": True,
}  # fmt: skip
WRITING = ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate")
"""What Python tells its audit hooks before it asks the system for it."""
ABRUPT = 99


@pytest.fixture(scope="module", autouse=True)
def small_and_unchecked(as_users_call):
    """The tests' own checks of types take most of the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def data():
    x, t, nu = (np.arange(8) + 0.5) / 8, np.linspace(0, 1, 4), np.linspace(0.1, 1, 16)
    u = np.exp(-nu[:, None, None] * t[:, None]) * np.cos(2 * np.pi * (x - nu[:, None, None]))
    return from_arrays(u[..., None], t=t, x=x, params={"nu": nu}, periodic=True)


@pytest.fixture(scope="module")
def uninterrupted(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    library.fit(data, out=folder, **SETTINGS)
    return folder


def in_a_process(task):
    """The exit code of a copy of this process that does it; what it wrote and did not flush is lost where it dies."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        task()
        os._exit(0)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)


def die_at(number, folder):
    """End this process before its nth writing in a folder; count them in a file if it never comes to that."""
    count = 0

    def hook(event, arguments):
        nonlocal count
        if event not in WRITING or not isinstance(arguments[0], str) or str(folder) not in arguments[0]:
            return
        reading = event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if not reading:
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return lambda: count


def count_writings(data, folder, note):
    def task():
        counted = die_at(0, folder)
        library.fit(data, out=folder, **SETTINGS)
        note.write_text(str(counted()))

    assert in_a_process(task) == 0
    return int(note.read_text())


def log_of(folder):
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{name: record[name] for name in ("epoch", "step", "loss", "valid_nrmse")} for record in records]


def go_on(data, folder):
    """Resume a run; one that had not begun is begun."""
    try:
        return library.fit(data, out=folder, resume=True, **SETTINGS)
    except FileNotFoundError as error:
        assert "There is no run in" in str(error)  # noqa: PT017
        return library.fit(data, out=folder, **SETTINGS)


def check_same(folder, other):
    for name in ("model/model.safetensors", "config.yaml"):
        assert (folder / name).read_bytes() == (other / name).read_bytes(), name
    assert log_of(folder) == log_of(other)
    states = [torch.load(each / "state.pt", weights_only=True) for each in (folder, other)]
    for name, value in states[0]["model"].items():
        assert torch.equal(value, states[1]["model"][name]), name
    assert states[0]["step"] == states[1]["step"]


def kill_and_go_on(data, folder, number, other):
    def task():
        die_at(number, folder)
        library.fit(data, out=folder, **SETTINGS)

    assert in_a_process(task) == -signal.SIGKILL, number
    go_on(data, folder)
    check_same(folder, other)


def test_a_run_is_the_same_twice(data, uninterrupted, tmp_path):
    """Without this the tests below would say nothing."""
    library.fit(data, out=tmp_path / "run", **SETTINGS)
    check_same(tmp_path / "run", uninterrupted)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 1.0])
def test_kills_at_some_writings(data, uninterrupted, tmp_path, part):
    last = count_writings(data, tmp_path / "counted", tmp_path / "note")
    assert last > 15
    kill_and_go_on(data, tmp_path / "run", 1 + round(part * (last - 1)), uninterrupted)


@pytest.mark.slow
def test_kills_at_every_writing(data, uninterrupted, tmp_path):
    last = count_writings(data, tmp_path / "counted", tmp_path / "note")
    for number in range(1, last + 1):
        kill_and_go_on(data, tmp_path / f"run{number}", number, uninterrupted)


@pytest.mark.slow
def test_kills_at_every_writing_of_a_resumed_run(data, uninterrupted, tmp_path):
    """Killed in its middle, and again at each writing after that."""
    middle = count_writings(data, tmp_path / "counted", tmp_path / "note") // 2
    for number in range(1, middle):

        def begin(folder=tmp_path / f"run{number}"):
            die_at(middle, folder)
            library.fit(data, out=folder, **SETTINGS)

        def again(folder=tmp_path / f"run{number}", number=number):
            die_at(number, folder)
            go_on(data, folder)

        assert in_a_process(begin) == -signal.SIGKILL
        assert in_a_process(again) in (0, -signal.SIGKILL)
        go_on(data, tmp_path / f"run{number}")
        check_same(tmp_path / f"run{number}", uninterrupted)


@pytest.mark.parametrize("room", [0, 300, 4000, 12_000])
def test_runs_that_find_no_room(data, uninterrupted, tmp_path, room):
    """Files end at so many bytes; with room again the run goes on."""
    folder, note = tmp_path / "run", tmp_path / "note"

    def task():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        try:
            library.fit(data, out=folder, **SETTINGS)
        except OSError as error:
            said = str(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        Path(note).write_text(said)

    assert in_a_process(task) == 0
    said = note.read_text()
    assert said.startswith(f"Could not write {folder}")
    assert "\n" not in said
    go_on(data, folder)
    check_same(folder, uninterrupted)
    assert not [each for each in folder.rglob(".*") if each.name != ".lock"]  # no drafts are left
