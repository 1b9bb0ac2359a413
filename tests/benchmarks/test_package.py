"""`benchmarks/package.py`: a run and its result become a model with a card."""

import json
import shutil

import pytest

import package
import vcnef.packaged
from vcnef.workflow import load


def test_the_folder_loads_by_its_name_and_its_card_has_the_measured_numbers(measured, tmp_path, monkeypatch, capsys):
    run, path, record = measured
    package.main([str(run), "--name", "burgers", "--result", str(path), "--into", str(tmp_path)])
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'burgers'}: 0.0 MB.")
    assert sorted(each.name for each in (tmp_path / "burgers").iterdir()) == [
        "card.md", "config.json", "model.safetensors",
    ]  # fmt: skip
    monkeypatch.setattr(vcnef.packaged, "FOLDER", tmp_path)
    made = {"generation": "documented", "seed": 0, "initial_options": "constant_offsets=True"}
    assert load("burgers").provenance["generated"] == made
    card = (tmp_path / "burgers" / "card.md").read_text()
    for each in record["evaluations"]:
        assert f"| nu = {each['params']['nu']:g} | {'seen' if each['seen'] else 'unseen'} | " in card
        assert f"{each['result']['overall']['nrmse']:.4f}" in card
    assert record["command"] in card
    assert "--set constant_offsets=True`" in card
    assert "u_t + u u_x = " in card
    for words in ("nu from 0.002 to 0.004", "up to 2 since", "trained on 8 points", "sine waves", "(0, 1)"):
        assert words in card
    (line,) = vcnef.packaged.list_packaged().values()
    assert line.startswith("Burgers' equation in 1D: nRMSE ")


def changed(measured, tmp_path, **others):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(measured[2] | others))
    return path


def test_run_and_result_must_belong_together(measured, tmp_path):
    path = changed(measured, tmp_path, weights_sha256="0")
    with pytest.raises(ValueError, match=r"is about other weights than those in .*\. Give the result of this very run"):
        package.package(measured[0], "burgers", path, tmp_path / "packaged")
    assert not (tmp_path / "packaged").exists()


def test_what_cannot_be_packaged(measured, tmp_path, monkeypatch, capsys):
    run, path, _ = measured
    with pytest.raises(SystemExit) as stop:
        package.main([str(run), "--name", "burgers", "--result", "gone.json"])
    assert stop.value.code == 2
    assert "There is no result gone.json. Measure one with" in capsys.readouterr().err
    judged = measured[2]["evaluations"]
    coarse = [*judged[:-1], judged[-1] | {"space": judged[-1]["space"][:1]}]
    for unfinished in ([], judged[:-1], coarse):
        with pytest.raises(ValueError, match=r"is no complete result\. Expected a file that"):
            package.package(run, "burgers", changed(measured, tmp_path, evaluations=unfinished), tmp_path)
    with pytest.raises(ValueError, match=r"The name is 'my model'; expected a word .*\. Choose another\."):
        package.package(run, "my model", path, tmp_path)
    monkeypatch.setattr(package, "LARGEST", 1000)
    with pytest.raises(ValueError, match=r"have 0\.0 MB; expected at most 0\.001\. Package a smaller model\."):
        package.package(run, "burgers", path, tmp_path)


def test_a_model_with_errors_that_are_not_finite_is_refused(measured, tmp_path):
    run, _, record = measured
    broken = json.loads(json.dumps(record["evaluations"]))
    broken[0]["result"]["overall"]["nrmse"] = None
    with pytest.raises(ValueError, match=r"errors that are not finite\. Package a model that answers every test state"):
        package.package(run, "burgers", changed(measured, tmp_path, evaluations=broken), tmp_path / "packaged")


@pytest.mark.parametrize(("errors", "shown"), [([0.1, None, 0.3], " ± 0.1000"), ([0.1], ""), ([None, 0.1], "")])
def test_the_uncertainty_is_that_of_trajectories_with_an_error(measured, tmp_path, errors, shown):
    run, _, record = measured
    judged = [each | {"nrmse": errors} for each in record["evaluations"]]
    folder = package.package(run, "burgers", changed(measured, tmp_path, evaluations=judged), tmp_path)
    nrmse = judged[0]["result"]["overall"]["nrmse"]
    assert f"| seen | {nrmse:.4f}{shown} |" in (folder / "card.md").read_text()


def test_a_run_folder_without_a_model(measured, tmp_path):
    shutil.copy(measured[1], tmp_path / "result.json")
    with pytest.raises(FileNotFoundError, match="holds no model"):
        package.package(tmp_path, "burgers", tmp_path / "result.json", tmp_path)
