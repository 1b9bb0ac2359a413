"""`vcnef serve` as a process of its own: it says where it is, answers there, and stops when told."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from functools import partial
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch

from vcnef.data import from_arrays
from vcnef.surrogate import Surrogate

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    x = (np.arange(16) + 0.5) / 16
    u = np.sin(2 * np.pi * (x + np.linspace(0, 1, 8)[:, None]))[:, None, :, None] * np.ones((1, 5, 1, 1))
    data = from_arrays(u, t=np.linspace(0, 1, 5), x=x, params={"nu": np.linspace(0.01, 0.1, 8)}, name="burgers")
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    Surrogate.build("vcnef", TINY, data, seed=0).save(folder / "model")
    return folder


@pytest.fixture(autouse=True)
def same_threads():
    """The verb leaves a core to the solver; the tests after it have theirs back."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_serve_and_stop(run):
    script = "import sys; from vcnef.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-u", "-c", script, "serve", str(run), "--port", "0", "--no-open", "--device", "cpu"]
    # Tests that run in the background of a shell ignore this signal, and so would what they start.
    listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, preexec_fn=listening) as process:
        try:
            said = process.stdout.readline()
            (url,) = re.findall(r"at (http://127\.0\.0\.1:\d+/) ", said)
            assert said.startswith("Explorer of tiny at ")
            with urllib.request.urlopen(url + "api/models", timeout=30) as reply:
                (model,) = json.load(reply)
            assert model["name"] == "tiny"
            # Stopped in the middle of a computation.
            asked = json.dumps({"params": {"nu": 0.05}, "points": 4096, "times": 512})
            waiting = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
            waiting.request("POST", "/api/predict", asked, {"Content-Type": "application/json"})
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
            assert (process.stdout.read(), process.stderr.read()) == ("Stopped.\n", "")
        finally:
            process.kill()


def test_the_browser_is_opened_unless_told_otherwise(vcnef, run, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("vcnef.explorer.ExplorerServer.serve_forever", lambda self, poll_interval: None)
    code, out, err = vcnef("serve", run, "--port", "0", "--device", "cpu")
    assert (code, err) == (0, "")
    assert opened == re.findall(r"http://\S+/", out)
    assert vcnef("serve", run, "--port", "0", "--no-open", "--device", "cpu")[0] == 0
    assert len(opened) == 1


def test_what_cannot_be_served(vcnef, run, tmp_path):
    code, _, err = vcnef("serve", tmp_path / "nothing", "--no-open")
    assert code == 2
    assert "There is no run or model folder" in err
    code, _, err = vcnef("serve", run, "--port", "99999", "--no-open", "--device", "cpu")
    assert code == 2
    assert err.startswith("Cannot serve at 127.0.0.1:99999: ")
    assert ".." not in err


def test_without_a_name_all_packaged_models_are_served(vcnef, run, monkeypatch):
    monkeypatch.setattr("vcnef.explorer.ExplorerServer.serve_forever", lambda self, poll_interval: None)
    monkeypatch.setattr("vcnef.packaged.list_packaged", lambda: {"one": "The first.", "two": "The second."})
    monkeypatch.setattr("vcnef.packaged.locate", lambda name: run)
    code, out, _ = vcnef("serve", "--port", "0", "--no-open", "--device", "cpu")
    assert code == 0
    assert out.startswith("Explorer of one, two at ")
    monkeypatch.setattr("vcnef.packaged.list_packaged", dict)
    code, _, err = vcnef("serve", "--no-open")
    assert code == 2
    assert err.startswith("There is no model to explore; name run folders")
