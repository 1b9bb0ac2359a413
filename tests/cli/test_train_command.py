"""`vcnef train` end to end: generate, train, resume; and what it says when something is wrong."""

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest

from vcnef.cli import main
from vcnef.config import Config
from vcnef.data import open as open_data
from vcnef.training.screen import _lines, describe
from vcnef.training.stopping import Stopped
from vcnef.workflow import load

SMALL = ["--samples", "10", "--resolution", "16", "--frames", "5", "--horizon", "0.05", "--device", "cpu"]


@pytest.fixture(scope="module")
def burgers(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "burgers.hdf5"
    with pytest.raises(SystemExit):
        main(["generate", "burgers", *SMALL, "--set", "nu=0.01", "--out", str(path)])
    return path


def test_generate_train_resume(vcnef, burgers, tmp_path):
    out = tmp_path / "my runs" / "x"
    command = ("train", "debug/vcnef1d", "--data", burgers, "--out", out, "--devices", "cpu")
    code, printed, err = vcnef(*command, "--set", "train.epochs=1", "--set", "width=8")
    assert code == 0
    lines = err.splitlines()
    assert lines[:4] == [
        "data: burgers on 16 points; trajectories: 8 to learn from, 1 to choose the weights, 1 left for the test; "
        "the first of each file are the test",
        "model: vcnef of 2,217 weights on cpu, preset debug/vcnef1d",
        "window: direct, all times are answered at once",
        "run: 1 epoch, batches of 8",
    ]
    for line in lines[4:]:
        assert re.fullmatch(r"epoch 1 of 1, loss \S+, .*samples/s(, 0:00:0\d left)?", line)
    assert "vcnef of 2," in printed
    assert "1 epochs in " in printed
    assert f"{out / 'model'}: the model, for vcnef.load('{out}') and `vcnef predict '{out}'`" in printed
    assert f"with `vcnef evaluate '{out}' --data FILE...`" in printed
    assert Config.load(out / "config.yaml").model.options["width"] == 8
    assert load(out).problem.name == "burgers"

    code, _, err = vcnef(*command)
    assert (code, err.count("\n")) == (2, 1)
    assert "already holds a run" in err
    code, _, err = vcnef(*command, "--resume")
    assert (code, err.count("\n")) == (2, 1)
    assert "was begun with model.options.width=8, not 16. Resume it as it was begun" in err
    code, printed, err = vcnef(*command, "--set", "epochs=2", "--set", "width=8", "--resume")
    assert code == 0
    assert "2 epochs in " in printed
    lines = (out / "log.jsonl").read_text().splitlines()
    assert len(lines) == 2


@pytest.mark.parametrize(("sides", "preset"), [((8, 8), "debug/vcnef2d"), ((4, 4, 4), "debug/vcnef3d")])
def test_debug_presets_in_more_dimensions(vcnef, tmp_path, sides, preset):
    np.savez(tmp_path / "mine.npz", u=np.random.default_rng(0).random((6, 5, *sides, 2)))
    out = tmp_path / "run"
    code, printed, _ = vcnef("train", preset, "--data", tmp_path / "mine.npz", "--out", out, "--devices", "cpu")
    assert code == 0
    assert "2 epochs in " in printed
    assert load(out).problem.ndim == len(sides)


def test_several_files_and_a_preset_of_its_own_choice(vcnef, burgers, tmp_path):
    other = tmp_path / "other.hdf5"
    assert vcnef("generate", "burgers", *SMALL, "--set", "nu=0.1", "--out", other)[0] == 0
    tiny = [each for setting in ("epochs=1", "width=8", "depth=1", "modulations=1") for each in ("--set", setting)]
    code, printed, _ = vcnef("train", "--data", burgers, other, "--out", tmp_path / "run", *tiny, "--devices", "cpu")
    assert code == 0
    assert "nu=0.01…0.1" in printed
    assert Config.load(tmp_path / "run" / "config.yaml").data.ndim == 1


def test_own_arrays_and_a_yaml_file(vcnef, tmp_path):
    x = np.arange(16) / 16
    u = np.sin(2 * np.pi * (x - np.linspace(0, 1, 4)[:, None] + np.arange(6)[:, None, None] / 6))[..., None]
    np.savez(tmp_path / "mine.npz", u=u)
    Config.load("debug/vcnef1d").override(["times=2", "epochs=1"]).save(tmp_path / "mine.yaml")
    code, _, _ = vcnef(
        "train", tmp_path / "mine.yaml", "--data", tmp_path / "mine.npz", "--param", "speed=2",
        "--out", tmp_path / "run", "--devices", "cpu",
    )  # fmt: skip
    assert code == 0
    assert load(tmp_path / "run").problem.ranges == {"speed": (2.0, 2.0)}


def test_a_domain_that_does_not_close(vcnef, tmp_path):
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).random((6, 4, 16, 1)))
    command = ("train", "debug/vcnef1d", "--data", tmp_path / "mine.npy", "--set", "epochs=1", "--devices", "cpu")
    code, _, err = vcnef(*command, "--set", "space_stride=3", "--out", tmp_path / "run")
    assert (code, "16 points do not divide by space_stride 3" in err) == (2, True)
    code, _, _ = vcnef(*command, "--set", "space_stride=3", "--out", tmp_path / "run", "--no-periodic")
    assert code == 0
    assert load(tmp_path / "run").options["periodic"] is False
    # The model knows what the file does not say.
    code, printed, _ = vcnef("evaluate", tmp_path / "run", "--data", tmp_path / "mine.npy", "--device", "cpu")
    assert (code, "6 points, 4 times" in printed) == (0, True)


def test_data_that_end_are_doubted_once(vcnef, tmp_path):
    ramp = np.linspace(-1.0, 1.0, 16) + 0.1 * np.random.default_rng(0).random((12, 3, 16))
    np.save(tmp_path / "mine.npy", ramp[..., None])
    out, small = tmp_path / "run", ("--set", "epochs=1", "--set", "width=16", "--devices", "cpu")
    code, _, err = vcnef("train", "--data", tmp_path / "mine.npy", "--out", out, *small)
    doubts = [line for line in err.splitlines() if "--no-periodic" in line]
    assert (code, len(doubts)) == (0, 1)
    assert doubts[0].startswith("Warning: ")


def test_a_domain_that_ends_along_one_axis(vcnef, tmp_path):
    y = np.linspace(0.0, 1.0, 15, endpoint=False)
    np.save(tmp_path / "mine.npy", np.exp(y)[:, None] * np.random.default_rng(0).random((6, 3, 16, 1, 1)))
    command = ("train", "debug/vcnef2d", "--data", tmp_path / "mine.npy", "--devices", "cpu")
    small = ("--set", "epochs=1", "--set", "space_stride=2", "--set", "patches=2,4")
    code, _, err = vcnef(*command, *small, "--out", tmp_path / "run", "--walls", "y")
    assert code == 0, err
    model = load(tmp_path / "run")
    assert model.problem.periodic == model.options["periodic"] == (True, False)
    assert model.model.encoder.closes == (True, False)
    # The model knows what the file does not say: that 15 points along y need no divisor, and that they end.
    code, printed, err = vcnef("evaluate", tmp_path / "run", "--data", tmp_path / "mine.npy", "--device", "cpu")
    assert (code, "8×8 points, 3 times" in printed, "walls" in err) == (0, True, False)
    np.save(tmp_path / "u0.npy", np.load(tmp_path / "mine.npy")[:2, 0, ::2, ::2])
    asked = ("--input", tmp_path / "u0.npy", "--times", "0:1:3", "--out", tmp_path / "out.nc")
    code, _, err = vcnef("predict", tmp_path / "run", *asked, "--device", "cpu")
    assert code == 0, err
    assert open_data(tmp_path / "out.nc").problem.periodic == (True, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--walls", "w"), "--walls is w; expected axes among x, y, z, e.g. --walls y, or --walls y,z."),
        (("--walls", "x", "--no-periodic"), "--walls x and --no-periodic are given; one of them says it all."),
        (("--walls", "y"), "periodic names the axis 'y'; expected some of x."),
    ],
)
def test_walls_that_are_none(vcnef, tmp_path, options, message):
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).random((6, 4, 16, 1)))
    command = ("train", "debug/vcnef1d", "--data", tmp_path / "mine.npy", "--out", tmp_path / "run")
    code, _, err = vcnef(*command, *options)
    assert (code, message in err) == (2, True), err


def test_another_model_for_own_data(vcnef, tmp_path):
    np.savez(tmp_path / "mine.npz", u=np.random.default_rng(0).random((6, 5, 16, 1)))
    small = [each for setting in ("model.name=fno", "epochs=1", "width=4", "modes=2") for each in ("--set", setting)]
    out = tmp_path / "run"
    code, printed, _ = vcnef("train", "--data", tmp_path / "mine.npz", "--out", out, *small, "--devices", "cpu")
    assert code == 0
    assert "fno of " in printed
    assert load(out).name == "fno"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "debug/vcnf1d"}, "There is no preset 'debug/vcnf1d'. Did you mean 'debug/vcnef1d' or "),
        ({"preset": "mine.yaml"}, "There is no file mine.yaml. Give the path of a YAML file or a preset's name."),
        ({"preset": "debug/vcnef2d"}, "The configuration is for 2D data, but burgers is 1D. Choose a preset for 1D"),
        ({"--data": "no.hdf5"}, "There is no file no.hdf5."),
        ({"--data": "notes.txt"}, "notes.txt"),
        ({"--set": "train.epoch=3"}, "train has no key 'epoch'. Did you mean 'epochs' or "),
        ({"--set": "model.options.widht=3"}, "Model 'vcnef' has no option 'widht'. Did you mean 'width'?"),
        ({"--set": "epochs"}, "'epochs' is not understood; write name=value, e.g. train.epochs=50."),
        ({"--set": "symmetries=[affine]"}, "Affine is no symmetry of 'burgers'; it is one of advection."),
        ({"--set": "data.passes=9"}, "The data have 5 frames; "),
        ({"--param": "nu"}, "--param nu is not understood; write --param name=value"),
        ({"--devices": "two"}, "--devices is two; expected a number of devices, auto or cpu."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(vcnef, burgers, tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    options = {"--data": burgers, "--out": "run", "--devices": "cpu"} | changes
    preset = options.pop("preset", "debug/vcnef1d")
    code, out, err = vcnef("train", preset, *(each for pair in options.items() for each in pair))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert "Traceback" not in err


def test_what_is_missing(vcnef, burgers):
    code, _, err = vcnef("train", "debug/vcnef1d", "--out", "run")
    assert (code, err) == (2, "There are no data to train on; name one or more files, e.g. --data data/*.hdf5.\n")
    code, _, err = vcnef("train", "debug/vcnef1d", "--data", burgers)
    assert (code, err) == (2, "There is no folder for the run; name one, e.g. --out runs/x.\n")
    code, _, err = vcnef("train", "debug/vcnef1d", "burgers/vcnef", "--data", burgers, "--out", "run")
    assert code == 2
    assert err.startswith("Expected one preset, got debug/vcnef1d, burgers/vcnef. Data files end in .hdf5, ")


def test_data_that_are_not_finite(vcnef, tmp_path):
    u = np.ones((6, 5, 16, 1))
    u[4] = np.nan
    np.savez(tmp_path / "mine.npz", u=u)
    code, _, err = vcnef("train", "debug/vcnef1d", "--data", tmp_path / "mine.npz", "--out", tmp_path / "run")
    assert (code, err.count("\n")) == (2, 1)
    assert "mine.npz has NaN or infinity in trajectory 4; remove it from the file." in err
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_stopped_says_how_to_go_on(vcnef, burgers, tmp_path, monkeypatch):
    def stop(*arguments, **options):
        raise Stopped("Stopped by SIGTERM; continue with resume.")

    monkeypatch.setattr("vcnef.workflow.train_surrogate", stop)
    code, out, err = vcnef("train", "debug/vcnef1d", "--data", burgers, "--out", tmp_path / "run")
    assert (code, out, err) == (130, "", "Stopped by SIGTERM; continue with resume.\n")


RECORD = {"epoch": 2, "step": 5, "steps": 10, "loss": 0.0123, "samples_per_second": 98.7, "seconds_left": 3723.4}


def test_a_run_in_one_line():
    assert describe(RECORD, 4) == "epoch 2 of 4, loss 1.230e-02, 99 samples/s, 1:02:03 left"
    done = RECORD | {"step": 10, "valid_nrmse": 0.25}
    assert describe(done, 4) == "epoch 2 of 4, loss 1.230e-02, valid nRMSE 0.2500, 99 samples/s"


def test_plain_lines_are_few(monkeypatch):
    clock = iter([0.0, 1.0, 11.0, 12.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    console = SimpleNamespace(file=io.StringIO())
    report = _lines(console, 4)
    for step in (1, 2, 3, 10):
        report(RECORD | {"step": step, "epoch": step})
    assert re.findall(r"epoch (\d+)", console.file.getvalue()) == ["1", "3", "10"]


def test_a_live_line_on_a_terminal(monkeypatch, capsys):
    from rich import console

    from vcnef.training.screen import training_progress

    terminal = console.Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr("rich.console.Console", lambda stderr: terminal)
    with training_progress(4) as report:
        report(RECORD)
    assert "epoch 2 of 4, loss 1.230e-02, 99 samples/s, 1:02:03 left" in terminal.file.getvalue()


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Files of one's own: to train on, sorted by a parameter, to choose by and to test."""
    folder, rng = tmp_path_factory.mktemp("own"), np.random.default_rng(0)
    for name, samples, low, high in (("train", 40, 0.1, 1.0), ("valid", 6, 0.1, 1.0), ("test", 10, 2.0, 3.0)):
        u, nu = rng.normal(size=(samples, 5, 16, 1)), np.linspace(low, high, samples)
        np.savez(folder / f"{name}.npz", u=u, t=np.linspace(0.0, 1.0, 5), nu=nu)
    return folder


TINY = ("--set", "epochs=1", "--set", "width=8", "--devices", "cpu")


def test_sets_of_their_own_are_files_of_their_own(vcnef, own, tmp_path):
    files = ("--data", own / "train.npz", "--valid", own / "valid.npz", "--test", own / "test.npz")
    code, printed, err = vcnef("train", "debug/vcnef1d", *files, "--out", tmp_path / "run", *TINY)
    assert code == 0, err
    assert (
        "40 to learn from, 6 to choose the weights (a set of its own), 10 left for the test (a set of its own)" in err
    )
    assert "Warning: 10 of 10 trajectories of the test set have nu outside of the 0.1 to 1 that is trained on" in err
    assert f"--data {own / 'test.npz'}`" in printed
    code, printed, err = vcnef("evaluate", tmp_path / "run", "--data", own / "test.npz", "--no-solver")
    assert code == 0, err
    assert "vcnef on test, all split: 10 trajectories" in printed
    assert "None of these 10 trajectories was trained on, so all of them are judged." in printed
    code, _, err = vcnef("evaluate", tmp_path / "run", "--data", own / "train.npz", "--no-solver")
    assert code == 2
    assert "All 40 trajectories of these data were trained on" in err


def test_own_files_are_shuffled_and_judged_on_their_test_split(vcnef, own, tmp_path):
    command = ("train", "debug/vcnef1d", "--data", own / "train.npz", "--out", tmp_path / "run", *TINY)
    code, _, err = vcnef(*command)
    assert code == 0, err
    assert "34 to learn from, 2 to choose the weights, 4 left for the test; drawn at random" in err
    assert "Warning" not in err
    code, printed, err = vcnef("evaluate", tmp_path / "run", "--data", own / "train.npz", "--no-solver")
    assert code == 0, err
    assert "vcnef on train, test split: 4 trajectories" in printed
    assert "Note" not in printed


def test_it_is_never_guessed_to_which_set_a_file_belongs(vcnef, own, tmp_path):
    """A pattern of the shell makes several words, of which an option takes the first."""
    files = ("--data", own / "train.npz", "--valid", own / "valid.npz", own / "test.npz")
    code, _, err = vcnef("train", "debug/vcnef1d", *files, "--out", tmp_path / "run")
    assert code == 2
    assert "test.npz may be meant for --data, --valid or --test. Give each file an option of its own" in err


def test_a_set_that_does_not_fit_is_one_sentence(vcnef, own, burgers, tmp_path):
    files = ("--data", own / "train.npz", "--valid", burgers)
    code, _, err = vcnef("train", "debug/vcnef1d", *files, "--out", tmp_path / "run")
    assert (code, err.count("\n")) == (2, 1)
    assert "The valid set does not fit the data that are trained on: their times differ" in err
    assert not (tmp_path / "run").exists()
