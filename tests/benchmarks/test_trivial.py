"""`benchmarks/trivial.py`: answers without a model, on the test states of a case."""

import json

import pytest

import accuracy_tables
import trivial
from vcnef.data import generate
from vcnef.metrics import nrmse


def test_the_mean_of_the_initial_state_is_judged_like_a_model(tmp_path, monkeypatch):
    monkeypatch.setattr(trivial, "read_case", lambda name: trivial_case(name).shrunk())
    monkeypatch.setattr(trivial, "describe_source", lambda: {"commit": "1", "changed": False, "sha256": ""})
    trivial.main(["burgers", "--samples", "2", "--device", "cpu", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "burgers.json").read_text())
    assert found["command"] == "python benchmarks/trivial.py burgers --samples 2"
    (each,) = found["values"]
    whole = generate(
        "burgers", samples=2, params={"nu": [0.001]}, generation="2022", resolution=32, frames=41, seed=0
    ).view(space_stride=4, time_stride=5)  # fmt: skip
    level = whole.u[:, :1].mean(dim=2, keepdim=True).expand_as(whole.u)
    assert each["samples"] == 2
    assert each["nrmse"]["level"] == pytest.approx(float(nrmse(level, whole.u)), rel=1e-5)
    assert each["nrmse"]["persistence"] == pytest.approx(float(nrmse(whole.u[:, :1].expand_as(whole.u), whole.u)))
    monkeypatch.setattr(accuracy_tables, "TRIVIAL", tmp_path)
    titles, (row,) = accuracy_tables.trivial([])
    assert titles == (
        "data", "value", "initial state, repeated", "mean of the initial state", "trajectories", "hardware"
    )  # fmt: skip
    assert row[:2] == ("burgers (2022)", "nu = 0.001")
    assert row[3] == f"{each['nrmse']['level']:.4f}"


def trivial_case(name):
    from accuracy_cases import read_case

    return read_case(name)


def test_code_that_no_commit_names_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(trivial, "describe_source", lambda: {"commit": "1", "changed": True})
    with pytest.raises(SystemExit):
        trivial.main(["burgers", "--out", str(tmp_path)])
    assert "or give --dirty" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
