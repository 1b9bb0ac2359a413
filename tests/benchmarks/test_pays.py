"""`benchmarks/pays.py`: the packaged models beside the solver at equal error."""

import json

import pytest

import accuracy_tables
import pays
import vcnef
from vcnef.packaged import list_packaged


def test_a_case_says_how_both_were_fastest(tmp_path, monkeypatch):
    generate = vcnef.generate
    small = {"resolution": 256, "frames": 5, "horizon": 0.2}
    monkeypatch.setattr(pays.vcnef, "generate", lambda *names, **options: generate(*names, **options | small))
    monkeypatch.setattr(pays, "CASES", {"one": {"model": "advection", "params": {"beta": 1.0}, "samples": 2}})
    monkeypatch.setattr(pays, "describe_source", lambda: {"commit": "1", "changed": False})
    monkeypatch.setattr("vcnef.evaluation.fidelity.can_compile", lambda known, device: False)
    pays.main(["--cases", "one", "--device", "cpu", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "one_cpu.json").read_text())
    assert found["command"] == "python benchmarks/pays.py --cases one --device cpu"
    paid = found["break_even"]
    assert paid["speed_up"] == pytest.approx(paid["solver_seconds"] / paid["seconds"])
    assert paid["solver"][0]["resolution"] == [256]
    assert paid["model"]["samples"] in (1, 4, 16, 64)
    # 270 seconds of an H200, and what the data take on this machine.
    assert paid["invested"] == pytest.approx(270.2 + 8500 * paid["solver"][0]["seconds"], rel=0.02)
    titles, (row,) = pays.table(tmp_path)
    assert row[0] == "`advection`, beta = 1"
    assert row[-1] == "never" or float(row[-1].split()[-1].replace(",", "")) > 0
    assert len(row) == len(titles)


def test_every_packaged_model_has_a_case():
    assert {each["model"] for each in pays.CASES.values()} == set(list_packaged())


def test_code_that_no_commit_names_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pays, "describe_source", lambda: {"commit": "1", "changed": True})
    with pytest.raises(SystemExit):
        pays.main(["--out", str(tmp_path)])
    assert "or give --dirty" in capsys.readouterr().err


def test_cards_say_what_has_been_measured():
    """As `python benchmarks/pays.py --cards` writes it."""
    for model in list_packaged():
        section = pays.card_section(model)
        card = (pays.PACKAGED / model / pays.CARD).read_text(encoding="utf-8")
        assert section
        assert f"\n\n{section}\n\n## Limits" in card
        assert card.count(pays.HEADING) == 1


TRAINED = {
    "advection": "advection_params_vcnef_plus_own_time_pace_100_seed0",
    "burgers": "burgers_params_vcnef_plus_seed0",
    "cns1d": "cns1d_params_vcnef_plus_seed0",
    "cns2d": "cns2d_vcnef_plus_small_seed0",
}
"""The results of the runs that models were packaged from."""


@pytest.mark.parametrize("model", TRAINED)
def test_a_packaged_model_says_what_was_invested_in_it(model):
    record = json.loads((accuracy_tables.RESULTS / f"{TRAINED[model]}.json").read_text())
    provenance = vcnef.load(model).provenance
    assert provenance["training_seconds"] == pytest.approx(record["training"]["seconds"], abs=0.1)
    assert f"train: {provenance['trajectories']} × " in record["data"]["trained_on"]
