"""Settings of a run that are none: refused before a step is made, and before a folder is taken."""

import pytest
import torch

import vcnef as library
from vcnef.config import Config

QUICK = {"model": "vcnef", "window": "direct", "epochs": 1, "quiet": True, "width": 16, "heads": 2, "depth": 1}
NAN = float("nan")

SETTINGS = {
    "no epochs": ({"epochs": 0}, "epochs is 0; expected a whole number of at least 1"),
    "epochs below zero": ({"epochs": -1}, "epochs is -1; expected a whole number of at least 1"),
    "half epochs": ({"epochs": 1.5}, "train.epochs is 1.5; expected a whole number"),
    "epochs in words": ({"epochs": "many"}, "train.epochs is 'many'; expected a whole number"),
    "no rate": ({"learning_rate": -1.0}, "learning_rate is -1"),
    "a rate of NaN": ({"learning_rate": NAN}, "learning_rate is nan"),
    "no batch": ({"batch": 0}, "batch is 0; expected a whole number of at least 1"),
    "no width": ({"width": 0}, "width is 0; expected at least 1"),
    "a width for no heads": ({"width": 17}, "Width 17 cannot be divided among 2 heads"),
    "no heads": ({"heads": 0}, "heads is 0; expected at least 1"),
    "a precision of none": ({"precision": "fp3"}, "train.precision is 'fp3'; expected"),
    "a seed beyond": ({"seed": 2**70}, "seed is 1180591620717411303424; expected"),
    "no window": ({"window": 0.0}, "window is 0; expected a time above 0"),
    "a window of NaN": ({"window": NAN}, "window is nan; expected a time above 0"),
    "a window between frames": ({"window": 0.3}, "window is 0.3; expected a multiple of 0.2"),
    "a window beyond": ({"window": 5.0}, "window is 5; expected a multiple of 0.2"),
    "a window in words": ({"window": "long"}, "is 'long'; expected 'auto' or 'direct'"),
    "no history": ({"window": 0.2, "history": 0}, "history is 0; expected at least 1"),
    "a history beyond": ({"window": 0.2, "history": 100}, "The data have 6 frames; a window of 1 frames needs"),
    "a history without windows": ({"history": 2}, "history is 2, which needs windows"),
    "no minutes": ({"minutes": 0.0}, "minutes is 0.0; expected a number above 0"),
    "minutes of NaN": ({"minutes": NAN}, "minutes is nan; expected a number above 0"),
    "no devices": ({"devices": 0}, "devices is 0; expected a number of at least 1"),
    "devices by kind": ({"devices": "gpu"}, "devices is 'gpu'; expected a number of at least 1"),
    "no nodes": ({"nodes": 0}, "nodes is 0; expected a number of at least 1"),
    "half a node": ({"nodes": 1.5}, "nodes is 1.5; expected a number of at least 1"),
    "a folder by number": ({"out": 3}, "The folder of the run is 3; expected a path"),
    "a file for a folder": ({"out": __file__}, "is a file. Choose another folder"),
    "no run to resume": ({"resume": True}, "There is no run in"),
    "an unknown setting": ({"widht": 3}, "There is no setting 'widht'; did you mean model.options.width"),
    "an unknown model": ({"model": "vcnf"}, "There is no model 'vcnf'. Did you mean 'vcnef'"),
    "an unknown preset": ({"preset": "water"}, "There is no preset 'water'"),
    "a preset for two dimensions": ({"preset": "cns2d/vcnef"}, "The configuration is for 2D data, but custom is 1D"),
    "an unknown channel in logarithm": ({"log": ["z"]}, r"log names \['z'\]; the channels are h, q"),
    "a channel without a logarithm": ({"log": ["q"]}, r"log names \['q'\], but not all their values are positive"),
    "an unknown channel to conserve": ({"conserve": ["z"]}, "data.conserve names 'z', which is no channel"),
    "a clock without windows": ({"explicit_time": True}, "explicit_time is true, but window is direct"),
    "an unknown symmetry": ({"symmetries": ["rotate"]}, "data.symmetries has 'rotate'"),
    "a share too large": ({"valid": 0.9}, "The validation share is 0.9; expected 0 to 0.5"),
    "a share below zero": ({"valid": -0.1}, "The validation share is -0.1; expected 0 to 0.5"),
    "a path for a set": ({"test": "a.npz"}, "test is str; expected trajectories"),
    "times beside trajectories": ({"t": [0, 1]}, "t is given beside trajectories, which have their own"),
    "units of a set": ({"periodic": False}, "periodic is given beside trajectories"),
    "a loss by name": ({"objective": "mse"}, "The objective is 'mse'; expected a function of"),
    "a loss of one": ({"objective": lambda x: 0}, "takes .x.; expected a function of"),
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.filterwarnings("ignore:The preset:UserWarning", "ignore:devices is:UserWarning")
def test_settings(world, ends, tmp_path, name):
    given, said = SETTINGS[name]
    ends(lambda: library.fit(world.data, **{"out": tmp_path / "run", **QUICK, **given}), "refused", said)
    assert not [each for each in (tmp_path / "run").glob("*") if each.name != ".lock"]


DATA = {
    "a path": (lambda w: "x.npz", "got the path 'x.npz'. Open it with vcnef.open"),
    "a dictionary": (lambda w: {"u": w.data.u}, "u is a dict of 'u'"),
    "one trajectory": (lambda w: w.data.select(torch.arange(1)), "1 trajectory cannot be split; at least 3 are needed"),
    "two trajectories": (lambda w: w.data.select(torch.arange(2)), "2 trajectories cannot be split"),
    "one frame": (lambda w: w.data.view(time_stride=2**31), "The data have 1 frames; training needs at least 2"),
    "the test split": (lambda w: w.data.split("test"), "already the test split"),
}


@pytest.mark.parametrize("name", DATA)
def test_data_of_a_run(world, ends, tmp_path, name):
    make, said = DATA[name]
    ends(lambda: library.fit(make(world), out=tmp_path / "run", **QUICK), "refused", said)
    assert not [each for each in (tmp_path / "run").glob("*") if each.name != ".lock"]


FILES = {
    "a list": ("- 1\n", "expected"),
    "an unknown section": ("modle: {name: vcnef}\n", "modle"),
    "an unknown key": ("model: {name: vcnef, colour: blue}\n", "colour"),
    "a section twice": ("train: {epochs: 1}\ntrain: {epochs: 2}\n", "train stands there twice"),
    "an alias": ("a: &a [1]\nb: *a\n", "is an alias; write the value out"),
    "a tag": ("model: !!python/object/apply:os.system [ls]\n", "could not determine a constructor"),
    "a text for a number": ("train: {epochs: many}\n", "many"),
    "NaN for a rate": ("train: {learning_rate: .nan}\n", "learning_rate"),
    "no YAML": ("model: [", "expected"),
    "bytes": (b"\xff\xfe\x00", ""),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_settings(ends, tmp_path, name):
    content, said = FILES[name]
    path = tmp_path / "c.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    ends(lambda: Config.load(path), "refused", said)
