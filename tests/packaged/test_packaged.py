"""Models that come with the library: found by name everywhere a run folder is taken, and never written to."""

import json

import numpy as np
import pytest
import torch

from vcnef import packaged
from vcnef.data import generate
from vcnef.models.registry import MODELS
from vcnef.surrogate import Surrogate
from vcnef.workflow import load

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
CARD = "# Burgers' equation in 1D: nRMSE 0.5.\n\nMore.\n"


@pytest.fixture(scope="module")
def data():
    return generate("burgers", samples=12, resolution=16, frames=5, horizon=0.1, params={"nu": 0.01}, device="cpu")


@pytest.fixture(autouse=True)
def shelf(data, tmp_path, monkeypatch):
    """A folder with one packaged model, and an empty one to work in."""
    folder = tmp_path / "packaged"
    surrogate = Surrogate.build("vcnef", TINY, data.split("train"), seed=0)
    surrogate.provenance |= {"resolution": [16], "times": data.t.tolist()}
    surrogate.save(folder / "burgers")
    (folder / "burgers" / "card.md").write_text(CARD)
    monkeypatch.setattr(packaged, "FOLDER", folder)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def contents(folder):
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def test_a_name_is_enough(data, shelf):
    surrogate = load("burgers")
    assert surrogate.predict(data.u[:1, 0], t=[0.05]).shape == (1, 1, 16, 1)
    assert packaged.list_packaged() == {"burgers": "Burgers' equation in 1D: nRMSE 0.5"}
    assert packaged.is_packaged(packaged.locate("burgers"))


def test_a_folder_here_comes_first(data, shelf):
    other = Surrogate.build("vcnef", TINY | {"width": 8}, data.split("train"), seed=0)
    other.save("burgers")
    assert load("burgers").options["width"] == 8
    assert not packaged.is_packaged(packaged.locate("burgers"))


def test_a_folder_of_other_things_does_not(data, shelf):
    (shelf.parent / "here" / "burgers").mkdir()
    (shelf.parent / "here" / "burgers" / "data.hdf5").touch()
    assert packaged.is_packaged(packaged.locate("burgers"))
    assert load("burgers").options["width"] == TINY["width"]


def test_what_is_said_of_an_unknown_name(data):
    with pytest.raises(
        FileNotFoundError, match=r"no run or model folder burger\. Train one with .*\. Packaged models are burgers\."
    ):
        load("burger")
    Surrogate.build("vcnef", TINY, data.split("train"), seed=0).save("mine/model")
    with pytest.raises(FileNotFoundError, match=r"There are mine\. Packaged models are burgers\."):
        load("burger")


def test_without_any_nothing_is_said_of_them(vcnef, monkeypatch, tmp_path):
    monkeypatch.setattr(packaged, "FOLDER", tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match=r"Train one with `vcnef train` or `vcnef\.fit`\.$"):
        load("burgers")
    _, out, _ = vcnef("models")
    assert len(out.splitlines()) == 1 + len(MODELS)


def test_models_lists_them_below_the_architectures(vcnef):
    code, out, _ = vcnef("models")
    assert code == 0
    below = out.splitlines()[len(MODELS) + 1 :]
    assert below == ["", "trained", "burgers  Burgers' equation in 1D: nRMSE 0.5"]


def test_evaluate_needs_no_training_files_and_writes_only_what_is_asked_for(vcnef, data, shelf, tmp_path):
    before = contents(shelf)
    path = data.save(tmp_path / "fresh.hdf5")
    options = ("--data", path, "--no-solver", "--device", "cpu", "--json", "out.json")
    code, out, err = vcnef("evaluate", "burgers", *options)
    assert code == 0, err
    assert "vcnef on burgers, test split: 1 trajectories" in out
    assert "relative L2" in out
    assert json.loads((tmp_path / "here" / "out.json").read_text())["samples"] == 1
    assert contents(shelf) == before
    assert contents(tmp_path / "here") == ["out.json"]


def test_predict(vcnef, data):
    np.save("u0.npy", data.u[:2, 0].numpy())
    code, _, err = vcnef("predict", "burgers", "--input", "u0.npy", "--times", "0.05,0.1", "--out", "u.npy")
    assert code == 0, err
    assert np.load("u.npy").shape == (2, 2, 16, 1)


def test_report_on_fresh_data(vcnef, data, shelf, tmp_path, monkeypatch):
    # Drawing takes long and is tested elsewhere.
    monkeypatch.setattr("vcnef.cli._figures.pictures", lambda *_: [])
    before = contents(shelf)
    code, _, err = vcnef("report", "burgers")
    assert code == 2
    assert "burgers is a packaged model, whose folder holds no evaluation to report on. Give data to judge it on" in err
    path = data.save(tmp_path / "fresh.hdf5")
    code, out, err = vcnef("report", "burgers", "--data", path, "--no-solver", "--device", "cpu")
    assert code == 0, err
    assert "Wrote report.html" in out
    page = (tmp_path / "here" / "report.html").read_text()
    assert "vcnef evaluate burgers --data" in page
    assert contents(shelf) == before
    assert contents(tmp_path / "here") == ["report.html"]


def test_serve(vcnef, monkeypatch):
    monkeypatch.setattr("vcnef.explorer.ExplorerServer.serve_forever", lambda self, poll_interval: None)
    threads = torch.get_num_threads()
    code, out, err = vcnef("serve", "burgers", "--port", "0", "--no-open", "--device", "cpu")
    torch.set_num_threads(threads)
    assert code == 0, err
    assert out.startswith("Explorer of burgers at ")
