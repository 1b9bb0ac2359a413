"""`benchmarks/trivial.py`: answers without a model, on the test states of a case."""

import json
import re

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


def test_what_the_page_says_of_the_gas_is_what_was_measured():
    page = " ".join((trivial.RESULTS.parents[2] / "docs" / "results.md").read_text(encoding="utf-8").split())
    said = re.search(r"off by (\S+), FNO by (\S+), UNet by (\S+) and VCNeF-R by (\S+); VCNeF, with (\S+), hardly", page)
    (level,) = [each["nrmse"]["level"] for each in json.loads((trivial.RESULTS / "cns1d.json").read_text())["values"]]
    files = (
        "fno_push_forward",
        "unet_push_forward",
        "vcnef_r_constant_cost_8_times_per_step",
        "vcnef_8_times_per_step",
    )
    paths = [accuracy_tables.RESULTS / f"cns1d_{file}_seed0.json" for file in files]
    models = [accuracy_tables.read_json(path)["evaluations"][0]["result"]["overall"]["nrmse"] for path in paths]
    assert [float(number) for number in said.groups()] == pytest.approx([level, *models], abs=6e-4)
