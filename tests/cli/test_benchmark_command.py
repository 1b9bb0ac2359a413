import json

import pytest
import torch

TINY = "width=8,heads=2,depth=1,modulations=1"


def test_the_speed_table(vcnef, tmp_path):
    path = tmp_path / "speed.json"
    case = ("--samples", "2", "--points", "16", "--batch", "2", "--steps", "2,3", "--repeats", "1")
    status, printed, _ = vcnef("benchmark", "speed", "--models", "vcnef,fno", *case, "--device", "cpu", "--json", path)
    assert status == 0
    for word in ("sequential", "rollout", "3 steps", "793,825", "549,633"):
        assert word in printed
    record = json.loads(path.read_text())
    assert len(record["results"]) == 2 * 4
    assert record["points"] == 16


def test_models_with_options_in_two_dimensions(vcnef):
    models = f"vcnef[{TINY},patches=4,16],vcnef[{TINY},attention=softmax,local=1],unet[width=4,multipliers=1,1]"
    case = ("--samples", "1", "--points", "16", "--steps", "2", "--repeats", "1", "--device", "cpu")
    status, printed, complaint = vcnef("benchmark", "--ndim", "2", "--models", models, *case)
    assert status == 0, complaint
    rows = [line.split()[0] for line in printed.splitlines()[2:]]
    assert list(dict.fromkeys(rows)) == models.replace("],", "]\n").splitlines()
    assert "1 initial states × 16×16 points, 64 at once" in printed


def test_the_training_table(vcnef, tmp_path, monkeypatch):
    monkeypatch.setattr("vcnef.training.cost.MOST_STEPS", 1)
    path = tmp_path / "train.json"
    models = f"vcnef[{TINY}],vcnef[{TINY},attention=softmax],fno[width=4,modes=2]"
    case = ("--points", "16", "--batch", "2", "--times", "3", "--repeats", "1", "--epoch-samples", "7")
    status, printed, complaint = vcnef(
        "benchmark", "train", "--models", models, *case, "--device", "cpu", "--json", path
    )
    assert status == 0, complaint
    assert "Training steps of 2 trajectories × 16 points, epochs of 7, fp32 precision" in printed
    record = json.loads(path.read_text())
    assert [each["times"] for each in record["results"]] == [3, 3, 40]
    for each in record["results"]:
        assert each["epoch_seconds"] == pytest.approx(4 * each["seconds"])


def test_all_are_those_of_the_dimension():
    from vcnef.cli._benchmark_models import _every_model

    # A PINN is the solution of one instance, and no answer to many.
    assert {*_every_model(1)} >= {"vcnef", "fno", "unet", "galerkin", "oformer", "mp_pde", "coral"}
    assert {*_every_model(3)} >= {"vcnef", "fno", "unet", "coral"}
    assert not {"pinn", "galerkin", "oformer", "mp_pde"} & {*_every_model(3)}


def test_the_help_shows_how_options_are_written(vcnef, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, printed, _ = vcnef("benchmark", "--help")
    assert "vcnef[OPTION=VALUE,OPTION=VALUE]" in printed


def test_a_run_beside_the_release(vcnef, tmp_path, release):
    from vcnef.data import from_arrays
    from vcnef.surrogate import Surrogate

    data = from_arrays(torch.randn(2, 3, 16, 1))
    run = tmp_path / "run"
    Surrogate.build("fno", {"width": 4, "modes": 2}, data).save(run)
    case = ("--release", release, "--samples", "2", "--points", "16", "--steps", "2", "--repeats", "1")
    status, printed, complaint = vcnef("benchmark", "speed", "--models", run, *case, "--device", "cpu")
    assert status == 0, complaint
    assert [line.split()[:2] for line in printed.splitlines()[2:]] == [
        [str(run), "rollout"], ["release", "parallel"], ["release", "chunks"], ["release", "sequential"],
    ]  # fmt: skip
    status, _, complaint = vcnef("benchmark", "speed", "--ndim", "2", "--models", run)
    assert (status, complaint) == (2, f"{run} is a 1D model, but --ndim is 2. Use --ndim 1.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("speed", "--models", ","), "--models names no model; write their names, e.g. --models vcnef,fno, or all."),
        (("speed", "--models", "fnoo"), "There is no model 'fnoo'"),
        (("speed", "--models", "fno", "--steps", "0"), "--steps 0 is not understood"),
        (("speed", "--models", "fno", "--precision", "fp8"), "precision is 'fp8'; expected one of default"),
        (("speed", "--models", "fno", "--ndim", "4"), "--ndim is 4; expected 1, 2 or 3"),
        (("speed", "--models", "mp_pde", "--ndim", "2"), "Model 'mp_pde' does not exist in 2D; expected one of vcnef"),
        (("speed", "--models", "vcnef[local"), "--models vcnef[local is not understood; write options as vcnef["),
        (("speed", "--models", "vcnef[local]"), "--models vcnef[local] is not understood"),
        (("speed", "--models", "vcnef[patchs=4,16]"), "Model 'vcnef' has no option 'patchs'. Did you mean 'patches'"),
        (("speed", "--models", "release"), "'release' is the authors' code, which vcnef does not have"),
        (("speed", "--models", "fno", "--release", "nowhere"), "nowhere is not the authors' release"),
        (("speed", "--models", "fno", "--times", "8"), "--times has no meaning for speed. Leave it out"),
        (("memory", "--models", "fno", "--device", "cpu"), "Memory is measured on a CUDA device, got cpu"),
        (("train", "--models", "fno", "--precision", "fp16", "--device", "cpu"), "'fp16', which needs a GPU"),
        (
            ("train", "--models", "fno", "--precision", "fp8", "--device", "cpu"),
            "expected one of fp32, tf32, bf16, fp16",
        ),
        (("train", "--models", "vcnef", "--times", "41"), "times is 41; expected 1 to 40"),
        (("train", "--models", "pinn"), "pinn is trained on an equation"),
        (("accuracy",), "accuracy"),
    ],
)
def test_wrong_questions(vcnef, arguments, message):
    status, _, complaint = vcnef("benchmark", *arguments)
    assert status == 2
    assert message in complaint


def test_packaged_models_are_known_by_name(monkeypatch, tmp_path):
    from vcnef.cli._benchmark_models import choose_models
    from vcnef.data import from_arrays
    from vcnef.surrogate import Surrogate

    monkeypatch.setattr("vcnef.packaged.FOLDER", tmp_path)
    Surrogate.build("fno", {"width": 4, "modes": 2}, from_arrays(torch.randn(2, 3, 16, 1))).save(tmp_path / "waves")
    (tmp_path / "waves" / "card.md").write_text("# Waves\n")
    assert choose_models("waves", 1, 16, None)["waves"].steps == 2
