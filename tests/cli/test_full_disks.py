"""Commands that find no room: one sentence that names the file, and no part of it is left."""

import os
import resource
import signal
import sys
from importlib import import_module

import jaxtyping
import numpy as np
import pytest

from vcnef.cli import main
from vcnef.data import from_arrays
from vcnef.surrogate import Surrogate


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    for module in ("cli._figures", "cli.evaluate", "data.generator", "data.writer", "cli._predictions"):
        import_module(f"vcnef.{module}")  # once, and not in each copy of this process
    folder, x, nu = tmp_path_factory.mktemp("full"), (np.arange(16) + 0.5) / 16, np.linspace(0.1, 1, 12)
    u = np.cos(2 * np.pi * (x - nu[:, None]))[:, None, :, None] * np.linspace(1, 0.5, 4)[:, None, None]
    data = from_arrays(u, t=np.linspace(0, 1, 4), x=x, params={"nu": nu}, periodic=True)
    data.save(folder / "data.npz")
    Surrogate.build("vcnef", {"width": 16, "heads": 2, "depth": 1, "modulations": 1}, data, seed=0).save(
        folder / "model"
    )
    return folder


def run_with(room, arguments):
    """Exit code and words of a command in a copy of this process, whose files end at so many bytes."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        # Both into the pipe, for what pytest keeps of them are files, too.
        sys.stdout = sys.stderr = os.fdopen(writing, "w")
        jaxtyping.config.update("jaxtyping_disable", True)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        try:
            main([str(each) for each in arguments])
        except SystemExit as stop:
            sys.stderr.flush()
            os._exit(stop.code if isinstance(stop.code, int) else 1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        words = said.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), words


COMMANDS = {
    "predict to .nc": ("predict MODEL --input DATA --times 0:1:20 --out OUT.nc", "OUT.nc"),
    "predict to .npz": ("predict MODEL --input DATA --times 0:1:20 --out OUT.npz", "OUT.npz"),
    "predict to .npy": ("predict MODEL --input DATA --times 0:1:20 --out OUT.npy", "OUT.npy"),
    "predict to .hdf5": ("predict MODEL --input DATA --times 0:1:20 --out OUT.hdf5", "OUT.hdf5"),
    "generate": ("generate burgers --samples 2 --resolution 64 --frames 5 --out OUT.hdf5", "OUT.hdf5"),
    "figures": ("evaluate MODEL --data DATA --split all --no-solver --figures OUT", "OUT/"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_full_disks(places, name):
    (command, file), room = COMMANDS[name], 900
    named = {"MODEL": "model", "DATA": "data.npz", "OUT": f"{name.replace(' ', '_')}{room}"}
    for word, path in named.items():
        command, file = (text.replace(word, str(places / path)) for text in (command, file))
    before = {path for path in places.rglob("*") if path.is_file()}
    code, said = run_with(room, command.split())
    assert code == 2, said
    assert f"Could not write {file}" in said.replace("\n", " ")
    assert "Traceback" not in said
    left = {path for path in places.rglob("*") if path.is_file()} - before
    assert all(path.name == "metrics.json" or path.suffix == ".png" for path in left), left
