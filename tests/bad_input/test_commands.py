"""Commands that are asked for what is none: exit code 2, one sentence, and no file is touched."""

import numpy as np
import pytest

import vcnef as library
from vcnef.surrogate.folder import CONFIG, WEIGHTS

QUICK = {"model": "vcnef", "window": "direct", "epochs": 1, "quiet": True, "width": 16, "heads": 2, "depth": 1}


@pytest.fixture(scope="module")
def places(world, tmp_path_factory):
    """A run, its model alone, a file of data and one of states."""
    folder = tmp_path_factory.mktemp("commands")
    library.fit(world.data, out=folder / "run", modulations=1, **QUICK)
    world.model.save(folder / "alone")
    world.data.save(folder / "data.npz")
    np.savez(folder / "states.npz", u0=world.u0, **world.given)
    return folder


PREDICT = "predict RUN --input STATES --times 0,1 --out OUT.nc"
COMMANDS = {
    PREDICT.replace("STATES", "NONE.nc"): "There is no file",
    PREDICT.replace("0,1", "soon"): "--times soon is not understood; write first:last:count",
    PREDICT.replace("0,1", "nan"): "expected one or more finite times since u0",
    PREDICT.replace("0,1", "0:1"): "--times 0:1 is not understood",
    PREDICT.replace("0,1", "0:1:0"): "t is []; expected one or more finite times",
    PREDICT.replace("0,1", "0:1:2.5"): "--times 0:1:2.5 is not understood",
    PREDICT.replace("0,1", "0,1e30"): "1e+30 windows of 1; expected at most 100000. Check the unit of t",
    f"{PREDICT} --param a=x": "params['a'] is not an array of real numbers",
    f"{PREDICT} --param c=1": "There is no parameter 'c' of custom",
    f"{PREDICT} --param a=1 --param a=2": "--param names a twice",
    f"{PREDICT} --param a": "--param a is not understood; write --param name=value",
    f"{PREDICT} --param a=nan": "params['a'] has NaN or infinity",
    f"{PREDICT} --param a=1,2 --param-times 0,1": "no parameter of custom changed with time in training",
    f"{PREDICT} --start 3": "this surrogate knows no absolute time",
    f"{PREDICT} --precision fp7": "precision is 'fp7'; expected one of",
    f"{PREDICT} --memory -3": "memory_limit is '-3'; expected a size",
    f"{PREDICT} --tolerance nan": "tolerance is nan; expected a number above 0",
    f"{PREDICT} --layout t": "layout is 't'; expected a letter for each axis",
    f"{PREDICT} --device quantum": "The device is 'quantum', which this machine does not have",
    PREDICT.replace("STATES", "DATA") + " --layout ntxc": "names its axes itself, but layout is 'ntxc'",
    PREDICT.replace("OUT.nc", "STATES"): "is both --input and --out",
    PREDICT.replace("OUT.nc", "OUT.txt"): "has the suffix '.txt'; expected one of",
    PREDICT.replace("OUT.nc", "RUN"): "has the suffix ''; expected one of",
    PREDICT.replace("RUN", "NONE"): "There is no run or model folder",
    "evaluate RUN --data DATA --json RUN/config.yaml": "is a part of that run",
    "evaluate RUN --data DATA --json RUN/state.pt": "is a part of that run",
    "evaluate RUN --data DATA --json RUN/log.jsonl": "is a part of that run",
    "evaluate RUN --data DATA --json RUN/model/config.json": "is a part of that run",
    "evaluate ALONE --data DATA --json ALONE/config.json": "is a part of that run",
    "evaluate ALONE --data DATA --json ALONE/model.safetensors": "is a part of that run",
    "evaluate RUN --data DATA --json DATA": "is both --data and --json",
    "evaluate RUN --data DATA --json RUN": "is a folder; expected a file",
    "evaluate RUN --data DATA --split half": "There is no split 'half'",
    "evaluate RUN --data DATA --space 7": "space has 7, which no stride leaves of the 32 points",
    "evaluate RUN --data DATA --batch 0": "batch is 0; expected at least 1",
    "evaluate RUN --data DATA --equation burgers": "The equation 'burgers' is 1D with the channels u",
    "evaluate RUN --data STATES": "has no array 'u'; it holds",
    "evaluate RUN": "There are no data to judge the model on",
    "report RUN --out RUN/log.jsonl": "is a part of that run",
    "report NONE --out OUT.html": "NONE",
    "train own/small1d --data NONE.npz --out OUT": "There is no file",
    "train own/small1d --data DATA --out RUN": "already holds a run (state.pt, log.jsonl, model)",
    "train own/small1d --data DATA --out OUT --set train.epoch=3": "train has no key 'epoch'. Did you mean 'epochs'",
    "train own/small1d --data DATA --out OUT --set epochs": "'epochs' is not understood; write name=value",
    "train own/small1d --data DATA --out OUT --param h=3": "names a channel or parameter twice",
    "train own/small1d --data DATA --out OUT --equation burgers": "The equation 'burgers' is 1D with the channels u",
    "train own/small1d --data DATA --out RUN --resume": "Resume it as it was begun, or start a new run",
    "train own/small1d --data DATA --out NONE --resume": "There is no run in",
    "generate water --out OUT.hdf5": "There is no equation 'water'",
    "generate burgers --samples 0 --out OUT.hdf5": "samples is 0; expected at least 1",
    "generate burgers --samples 1 --set nu=nan --out OUT.hdf5": "Parameter nu is nan; expected a number",
    "generate burgers --samples 1 --set nu=-1 --out OUT.hdf5": "Parameter 'nu' is negative: -1",
    "generate burgers --samples 1 --set mu=1 --out OUT.hdf5": "burgers has nothing called 'mu' to set",
    "generate burgers --samples 1 --resolution 3 --out OUT.hdf5": "expected 4 or more cells and a divisor",
    "generate burgers --samples 1 --out OUT.npz": "has the suffix '.npz'; generated data are written as .hdf5",
    "export RUN --out OUT.exe": "ends in '.exe'; a model is exported to .pt2",
    "export RUN --out OUT.pt2 --points 0": "--points 0 is not understood; write positive whole numbers",
    "serve NONE --no-open": "There is no run or model folder",
    "serve RUN --no-open --port 99999": "Cannot serve at 127.0.0.1:99999",
    "--with NONE.py presets": "There is no script",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(vcnef, places, command):
    named = {"RUN": "run", "ALONE": "alone", "DATA": "data.npz", "STATES": "states.npz", "NONE": "none", "OUT": "out"}
    words = []
    for word in command.split():
        for name, file in named.items():
            if word.startswith(name):
                word = str(places / word.replace(name, file, 1))
                break
        words.append(word)
    before = {path: path.read_bytes() for path in places.rglob("*") if path.is_file() and path.name != ".lock"}
    code, _, said = vcnef(*words)
    assert code == 2, said
    expected = COMMANDS[command].replace("NONE", "none")
    assert expected in " ".join(said.split())
    assert "Traceback" not in said
    after = {path: path.read_bytes() for path in places.rglob("*") if path.is_file() and path.name != ".lock"}
    assert after == before


def test_a_model_may_still_be_judged_into_its_run(vcnef, places):
    code, _, said = vcnef(
        "evaluate", places / "run", "--data", places / "data.npz", "--json", places / "run" / "more.json", "--no-solver"
    )
    assert code == 0, said
    assert {path.name for path in (places / "run" / "model").iterdir()} == {CONFIG, WEIGHTS}
