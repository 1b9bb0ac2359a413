"""`benchmarks/accuracy.py`: a result has all that a repetition needs, and survives what fails after training."""

import dataclasses
import json

import pytest
import torch
import yaml

import accuracy
import accuracy_cases
import accuracy_run
from vcnef.training import Stopped
from vcnef.workflow import load

CPU = torch.device("cpu")
CASES = yaml.safe_load(accuracy_cases.CASES.read_text())


def run(tmp_path, *arguments):
    accuracy.main(["burgers", "--smoke", "--device", "cpu", "--out", str(tmp_path), *arguments])
    (path,) = tmp_path.glob("*.json")
    return json.loads(path.read_text())


def config_of(case, *options, preset="vcnef", seed=0, changes=()):
    return accuracy.make_config(case, accuracy._parse([case.name, *options]), preset, seed, changes)


def test_a_result_says_what_was_done(measured):
    folder, _, found = measured
    assert (found["case"], found["preset"], found["label"], found["seed"]) == (
        "burgers_params", "vcnef", "larger batch", 3,
    )  # fmt: skip
    assert found["smoke"] is True
    assert found["command"] == (
        "python benchmarks/accuracy.py burgers_params --preset vcnef --seed 3 --label 'larger batch' "
        "--set train.batch=8 --smoke"
    )
    assert found["config"]["train"]["batch"] == 8
    assert found["config"]["train"]["seed"] == 3
    assert found["data"]["generation"] == "documented"
    assert found["data"]["params"] == {"nu": [0.002, 0.004]}
    assert (found["data"]["resolution"], found["data"]["frames"], found["data"]["horizon"]) == (32, 41, 2.0)
    assert "train: 34 × 9 times" in found["data"]["trained_on"]
    assert found["training"]["epochs"] == 1
    assert found["training"]["steps"] == 5
    assert found["weights"] == sum(weight.numel() for weight in load(folder).model.parameters())
    assert len(found["source"]["sha256"]) == 64


def test_every_value_is_judged_at_every_resolution(measured):
    _, _, found = measured
    assert [(each["params"]["nu"], each["seen"]) for each in found["evaluations"]] == [
        (0.002, True), (0.004, True), (0.001, False), (0.01, False),
    ]  # fmt: skip
    for each in found["evaluations"]:
        assert each["samples"] == len(each["nrmse"]) == 2
        assert {"nrmse", "brmse", "relative_l2", "max_error"} <= each["result"]["overall"].keys()
        assert each["result"]["trained"] is True
        assert [result["resolution"] for result in each["space"]] == [[8], [16], [32]]
        assert [result["frames"] for result in each["time"]] == [9, 21, 41]


def test_plain_errors_are_kept_when_something_fails_and_the_same_command_gives_them_again(tmp_path, monkeypatch):
    whole = accuracy_run.evaluate

    def out_of_memory(*arguments, **options):
        if options.get("space"):
            raise RuntimeError("out of memory")
        return whole(*arguments, **options)

    monkeypatch.setattr(accuracy_run, "evaluate", out_of_memory)
    with pytest.raises(RuntimeError, match="out of memory"):
        run(tmp_path / "a")
    monkeypatch.undo()
    (path,) = (tmp_path / "a").glob("*.json")
    (kept,), (again,) = json.loads(path.read_text())["evaluations"], run(tmp_path / "b")["evaluations"]
    assert kept["result"] == again["result"]
    assert kept["nrmse"] == again["nrmse"]
    assert not kept["space"][1:]


@pytest.mark.parametrize(("fresh", "tests"), [(0, 2), (3, 3)])
def test_without_room_the_trajectories_are_the_same(monkeypatch, fresh, tests):
    case = accuracy.read_case("burgers_params").shrunk()
    case = dataclasses.replace(case, params={"nu": [0.002]}, unseen={"nu": [0.01]}, fresh=fresh)
    config, full, thin = config_of(case, "--smoke"), *(accuracy_cases.CaseData(case, CPU) for _ in range(2))
    data = full.seen(config)
    monkeypatch.setattr(accuracy_cases, "ROOM", 0)
    torch.testing.assert_close(thin.seen(config).u, data.u)
    torch.testing.assert_close(thin.seen(config).grid, data.grid)
    assert list(full._made) == [1] != list(thin._made)
    kept, made = list(full.held_out()), list(thin.held_out())
    assert [each[:2] for each in kept] == [each[:2] for each in made] == [({"nu": 0.002}, True), ({"nu": 0.01}, False)]
    torch.testing.assert_close(kept[0][2].u, made[0][2].u)
    torch.testing.assert_close(kept[0][2].u[:, 0], kept[1][2].u[:, 0])
    trained = full._made[1].split("train").u[:, 0]
    for _, _, judged in kept:
        assert judged.subset == "test"
        assert len(judged) == tests
        assert not any((trained == u0).flatten(1).all(dim=1).any() for u0 in judged.u[:, 0])


def test_data_outlast_a_process_in_a_cache(tmp_path, monkeypatch):
    case = accuracy.read_case("burgers").shrunk()
    config = config_of(case, "--smoke")
    case = dataclasses.replace(case, fresh=2)
    first = accuracy_cases.CaseData(case, CPU, tmp_path / "data")
    made, judged = first.seen(config), [each for *_, each in first.held_out()]
    monkeypatch.setattr(accuracy_cases, "generate", None)
    second = accuracy_cases.CaseData(case, CPU, tmp_path / "data")
    again, judged_again = second.seen(config), [each for *_, each in second.held_out()]
    for old, new in zip([made, *judged], [again, *judged_again], strict=True):
        torch.testing.assert_close(new.u, old.u)
        assert (new.problem, new.parts, new.attributes, new.subset) == (
            old.problem,
            old.parts,
            old.attributes,
            old.subset,
        )


@pytest.mark.parametrize(
    "change", [{"resolution": 16}, {"frames": 21}, {"params": {"nu": [0.1]}}, {"initial": {"modes": 3}}]
)
def test_a_cache_does_not_mix_up_data(tmp_path, monkeypatch, change):
    case = accuracy.read_case("burgers").shrunk()
    made = []
    monkeypatch.setattr(accuracy_cases, "generate", lambda *names, **options: made.append(options) or "data")
    for _ in range(2):
        for each in (case, dataclasses.replace(case, **change)):
            accuracy_cases.CaseData(each, CPU, tmp_path).generated(1)
    assert len(made) == len(list(tmp_path.iterdir())) == 2
    assert all(path.name.startswith("burgers_") for path in tmp_path.iterdir())


def test_a_machine_without_git(monkeypatch):
    def nothing(*arguments, **options):
        raise FileNotFoundError("git")

    known = accuracy_run.describe_source()
    monkeypatch.setattr(accuracy_run.subprocess, "run", nothing)
    assert accuracy_run.describe_source() == {"commit": None, "changed": None, "sha256": known["sha256"]}


def test_code_that_no_commit_names_is_refused_unless_the_label_says_so(monkeypatch, tmp_path, capsys):
    found = []
    monkeypatch.setattr(accuracy, "run", lambda plan, *others, **options: found.append(plan) or {"evaluations": []})
    case = ["burgers", "--out", str(tmp_path)]
    for source, words in (
        (
            {"commit": "123456789abcdef", "changed": True},
            "The code in src or benchmarks differs from commit 123456789abc.",
        ),
        ({"commit": None, "changed": None}, "The code is not in a git repository, so no commit names it."),
    ):
        monkeypatch.setattr(accuracy, "describe_source", lambda source=source: source)
        with pytest.raises(SystemExit):
            accuracy.main(case)
        assert f"{words} Commit it first, or give --dirty" in capsys.readouterr().err
        accuracy.main([*case, "--dirty", "--label", "wide"])
        plan = found.pop()
        assert plan.about["label"] == "wide, dirty tree"
        assert plan.path.name == "burgers_vcnef_wide_dirty_tree_seed0.json"
        assert plan.about["command"].endswith("--label wide --dirty")
    monkeypatch.setattr(accuracy, "describe_source", lambda: {"commit": "1", "changed": False})
    accuracy.main([*case, "--dirty"])
    assert found.pop().about["label"] == ""


def test_a_result_that_was_written_does_not_make_the_tree_dirty(monkeypatch):
    asked = []
    monkeypatch.setattr(accuracy_run, "_git", lambda *words: asked.append(words) or "")
    accuracy_run.describe_source()
    assert asked[-1][-1] == ":(exclude)benchmarks/results"


@pytest.mark.parametrize("name", CASES)
def test_every_case_can_be_begun(name):
    case = accuracy.read_case(name)
    config = config_of(case, "--set", "train.batch=16")
    assert (config.train.minutes, config.train.batch) == (case.minutes, 16)
    known = accuracy_cases.equation(case.equation)
    assert min(case.space) == known.resolution // config.data.space_stride
    assert max(case.space) <= known.resolution
    seen, unseen = accuracy_cases.by_value(case.params), accuracy_cases.by_value(case.unseen)
    assert all(each.keys() == known.defaults.keys() for each in (*seen, *unseen))
    assert not [each for each in unseen if each in seen]
    small = case.shrunk()
    assert max(small.space) == small.resolution
    assert config_of(small, "--smoke", preset="vcnef_plus").train.epochs == 1


def test_a_budget_and_a_preset_by_its_whole_name():
    case = accuracy.read_case("burgers")
    config = config_of(case, "--minutes", "1.5", preset="burgers/fno", seed=2)
    assert (config.model.name, config.train.minutes, config.train.seed) == ("fno", 1.5, 2)
    config = config_of(case, "--epochs", "7", "--set", "ema=0.5", changes=["optimiser=adamw", "ema=null"])
    assert (config.train.minutes, config.train.epochs) == (None, 7)
    assert (config.train.optimiser, config.train.ema) == ("adamw", 0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["burger"], "There is no case 'burger'. Did you mean 'burgers'"),
        (["burgers", "--preset", "vcnf"], "There is no preset 'burgers/vcnf'."),
        (["burgers", "--set", "epoch=3"], "There is no setting 'epoch'; did you mean train.epochs"),
        (["burgers", "--ablate", "Adam"], "burgers has no ablation 'Adam'. Did you mean 'AdamW'"),
        (["cns3d", "--ablate"], "There are no ablations of 'cns3d'."),
        (["burgers"], "exists already. Give another --seed, --label or --out, or remove it."),
    ],
)
def test_bad_input_is_said_before_anything_is_made(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(accuracy, "CaseData", None)
    (tmp_path / "burgers_vcnef_seed0.json").touch()
    with pytest.raises(SystemExit) as stop:
        accuracy.main([*arguments, "--smoke", "--out", str(tmp_path)])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_samples_and_generation_can_be_chosen(monkeypatch, tmp_path):
    asked = {}
    monkeypatch.setattr(accuracy, "describe_source", lambda: {"commit": "1", "changed": False})

    def stop(plan, data, folder, **others):
        asked.update(dataclasses.asdict(data.case))
        raise ValueError("enough")

    monkeypatch.setattr(accuracy, "run", stop)
    with pytest.raises(SystemExit):
        accuracy.main(["cns1d", "--samples", "30", "--generation", "2022", "--out", str(tmp_path)])
    assert (asked["samples"], asked["generation"]) == (30, "2022")


def test_ablations_are_runs_of_one_script(monkeypatch, tmp_path):
    found = []
    monkeypatch.setattr(accuracy, "describe_source", lambda: {"commit": "1", "changed": False})
    monkeypatch.setattr(accuracy, "run", lambda plan, *others, **options: found.append(plan) or {"evaluations": []})
    accuracy.main(
        [
            "burgers",
            "--ablate",
            "AdamW",
            "ReLU",
            "--seed",
            "1",
            "2",
            "--epochs",
            "3",
            "--set",
            "batch=8",
            "--out",
            str(tmp_path),
        ]
    )
    assert {(plan.about["label"], plan.about["seed"]) for plan in found} == {
        ("AdamW", 1), ("AdamW", 2), ("ReLU", 1), ("ReLU", 2),
    }  # fmt: skip
    (plan,) = (plan for plan in found if (plan.about["label"], plan.config.train.seed) == ("AdamW", 2))
    assert plan.path.name == "burgers_vcnef_AdamW_seed2.json"
    assert (plan.config.train.optimiser, plan.config.train.epochs, plan.config.train.batch) == ("adamw", 3, 8)
    assert plan.about["command"] == (
        "python benchmarks/accuracy.py burgers --preset vcnef --seed 2 --epochs 3 --ablate AdamW --set batch=8"
    )


def test_an_interrupted_run_goes_on_and_a_finished_one_stays(tmp_path, monkeypatch, capsys):
    """Stopped in its first of two epochs, it ends as if nothing had happened."""
    options = ["--keep", str(tmp_path / "runs"), "--set", "epochs=2", "--preset", "vcnef"]
    whole = run(tmp_path / "whole", *options[2:])
    train = accuracy_run.workflow.train

    def interrupted(config, *given, **others):
        train(config.override({"train.epochs": 1}), *given, **others)
        raise Stopped("Stopped by SIGTERM")

    monkeypatch.setattr(accuracy_run.workflow, "train", interrupted)
    with pytest.raises(SystemExit):
        run(tmp_path, *options)
    assert "Stopped by SIGTERM" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.json"))
    monkeypatch.undo()
    found = run(tmp_path, *options, "--resume")
    assert (found["training"]["epochs"], found["training"]["steps"]) == (2, whole["training"]["steps"])

    monkeypatch.setattr(accuracy, "run", None)
    accuracy.main(["burgers", "--smoke", "--resume", "--out", str(tmp_path), *options])


def test_a_run_that_was_interrupted_while_judged_is_not_trained_again(tmp_path, monkeypatch, capsys):
    options = ["--keep", str(tmp_path / "runs"), "--preset", "vcnef"]
    monkeypatch.setattr(accuracy_run, "evaluate", lambda *_, **__: (_ for _ in ()).throw(Stopped("Stopped by SIGTERM")))
    with pytest.raises(SystemExit):
        run(tmp_path, *options)
    monkeypatch.undo()
    (path,) = tmp_path.glob("*.json")
    trained = json.loads(path.read_text())
    assert trained["evaluations"] == []

    monkeypatch.setattr(accuracy_run.workflow, "train", None)
    found = run(tmp_path, *options, "--resume")
    assert found["evaluations"][0]["space"][1:]
    assert {key: found[key] for key in trained} | {"evaluations": []} == trained

    path.write_text(json.dumps(trained | {"weights_sha256": "of another run"}))
    with pytest.raises(SystemExit):
        run(tmp_path, *options, "--resume")
    assert "not those of" in capsys.readouterr().err
