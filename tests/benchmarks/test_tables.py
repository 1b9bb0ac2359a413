"""`benchmarks/tables.py`: every cell of the paper's tables has a row, and all rows of a table have one budget."""

import json

import pytest
import yaml

import accuracy_run
import accuracy_tables
import tables

TABLES = tables.read_tables()


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Plans are made in a tree that is being worked on."""
    source = {"commit": "1" * 40, "changed": False, "sha256": ""}
    monkeypatch.setattr("accuracy.describe_source", lambda: source)


def test_every_model_of_the_papers_tables_has_a_row_and_one_with_the_recipe():
    paper = yaml.safe_load(accuracy_tables.PAPER.read_text(encoding="utf-8"))["errors"]
    for case, models in paper.items():
        rows = TABLES[case]["rows"]
        presets = {row["preset"] for row in rows.values()}
        assert set(models) <= presets, case
        assert {f"{model}_plus" for model in models if model != "vcnef_r"} <= presets
    for case in ("burgers_params", "advection_params", "cns1d_params"):
        assert {"fno", "oformer", "vcnef_plus"} <= {row["preset"] for row in TABLES[case]["rows"].values()}


@pytest.mark.parametrize("name", TABLES)
def test_every_row_can_be_begun_with_the_same_minutes(name, tmp_path):
    plans, _ = tables.make_plans(name, None, ["--out", str(tmp_path)])
    assert len(plans) == len(TABLES[name]["rows"]) == len({plan.path for plan in plans})
    assert {plan.config.train.minutes for plan in plans} == {TABLES[name]["minutes"]}
    # The budget are minutes, not epochs.
    assert all(plan.config.train.epochs == 100_000 for plan in plans)
    for plan in plans:
        assert "python benchmarks/accuracy.py" in plan.about["command"]
        plan.config.queries()


def test_a_row_is_what_accuracy_alone_would_run(tmp_path):
    (plan,), _ = tables.make_plans("burgers", ["vcnef_r, by ten passes"], ["--out", str(tmp_path), "--seed", "2"])
    assert (plan.config.data.passes, plan.config.data.times, plan.config.train.seed) == (10, 8, 2)
    assert plan.path.name == "burgers_vcnef_r_by_ten_passes_seed2.json"
    assert plan.about["command"].startswith(
        "python benchmarks/accuracy.py burgers --preset vcnef_r --seed 2 --minutes 5 --label 'by ten passes' "
    )
    (tried,), _ = tables.make_plans(
        "burgers", ["fno_plus"],
        ["--out", str(tmp_path), "--minutes", "1", "--set", "learning_rate=5e-4", "--label", "rate 5e-4"],
    )  # fmt: skip
    assert (tried.config.train.minutes, tried.config.train.learning_rate) == (1, 5e-4)
    assert tried.about["label"] == "rate 5e-4"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["burger"], "There is no table 'burger'. Did you mean 'burgers'"),
        (["burgers", "--rows", "fno_pls"], "burgers has no row 'fno_pls'. Did you mean 'fno_plus'"),
    ],
)
def test_what_is_not_there_is_said(arguments, words, capsys):
    with pytest.raises(SystemExit):
        tables.main(arguments)
    assert words in capsys.readouterr().err


def test_rows_run_tiny_on_a_cpu(tmp_path, monkeypatch):
    asked = []
    train = accuracy_run.train
    monkeypatch.setattr(accuracy_run, "train", lambda config, *given, **more: asked.append(config) or train(
        config.override({"model.options.width": 8, "modes": 4, "depth": 1}), *given, **more
    ))  # fmt: skip
    rows = ["fno, push-forward", "fno, push-forward without padding", "fno_plus"]
    tables.main(["burgers", "--rows", *rows, "--smoke", "--device", "cpu", "--out", str(tmp_path)])
    found = [json.loads(path.read_text()) for path in tmp_path.glob("*.json")]
    assert {each["label"] for each in found} == {"push-forward", "push-forward without padding", ""}
    assert [each.model.options["padding"] for each in asked] == [2, 0, 0]
    assert all(each["evaluations"][0]["result"]["overall"]["nrmse"] > 0 for each in found)


def test_a_finished_result_is_not_taken_for_another_one(tmp_path):
    """It would stay, though it is of other settings, or of code that no commit names."""
    options = ["--out", str(tmp_path), "--resume"]
    (plan,), _ = tables.make_plans("burgers", ["fno_plus"], options)
    record = {
        **plan.about,
        "config": plan.config.to_dict(),
        "source": {"changed": False},
        "data": {"params": {"nu": [1]}},
    }
    record["evaluations"] = [{"space": [1, 2]}]
    plan.path.write_text(json.dumps(record))
    assert tables.make_plans("burgers", ["fno_plus"], options)[0] == []
    with pytest.raises(ValueError, match=r"is finished, but of other settings \(learning_rate\)"):
        tables.make_plans("burgers", ["fno_plus"], [*options, "--set", "learning_rate=5e-4"])
    plan.path.write_text(json.dumps(record | {"source": {"changed": True}}))
    with pytest.raises(ValueError, match="is finished, but of code that no commit names"):
        tables.make_plans("burgers", ["fno_plus"], options)
