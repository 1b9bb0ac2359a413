"""`vcnef evaluate` on an untrained model and a small file, and what it says when something is wrong."""

import json
import re

import numpy as np
import pytest
import torch

from vcnef.cli._figures import averages, draw, trajectories
from vcnef.data import from_arrays, generate
from vcnef.data import open as open_data
from vcnef.evaluation import evaluate as judge
from vcnef.surrogate import Surrogate

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files of Burgers' equation, 32 points and 9 times."""
    folder = tmp_path_factory.mktemp("data")
    small = {"samples": 12, "resolution": 32, "frames": 9, "horizon": 0.1, "device": "cpu"}
    return generate("burgers", params={"nu": [0.01, 0.1]}, out=folder, **small)


@pytest.fixture
def run_folder(files, tmp_path):
    train = open_data(files[0], space_stride=2, time_stride=2).split("train")
    surrogate = Surrogate.build("vcnef", TINY, train, seed=0)
    surrogate.provenance |= {"resolution": [16], "times": train.t.tolist()}
    surrogate.save(tmp_path / "run" / "model")
    return tmp_path / "run"


def test_tables_json_and_figures(vcnef, files, run_folder, tmp_path):
    code, out, err = vcnef(
        "evaluate", run_folder, "--data", *files, "--space", "16,32", "--time", "9",
        "--json", tmp_path / "new" / "out.json", "--figures", tmp_path / "figures", "--device", "cpu",
    )  # fmt: skip
    assert code == 0, err
    assert "vcnef on burgers, test split: 2 trajectories, 16 points, 5 times" in out
    assert re.search(r"points +nRMSE +bRMSE +relative L2 +change\n +16( +[\d.]+){3} +trained\n +32 ", out)
    assert re.search(
        r"trajectories +nRMSE +bRMSE +relative L2\n +nu=0.01 +seen +1 .*\n +nu=0.1 +unseen +1( +[\d.]+){3}\n", out
    )
    assert "evaluate: 2 of 2" in err
    record = json.loads((run_folder / "metrics.json").read_text())
    assert record == json.loads((tmp_path / "new" / "out.json").read_text())
    assert record["data"] == [str(each) for each in files]
    assert [each["resolution"] for each in record["space"]] == [[16], [32]]
    assert [each["frames"] for each in record["time"]] == [5, 9]
    assert record["result"]["cost"]["solver_seconds"] > 0
    drawn = sorted(path.stem for path in (tmp_path / "figures").glob("*.png"))
    assert drawn == [
        "error_over_time", "heat_map", "median", "parameters", "spectra",
        "super_resolution_space", "super_resolution_time", "worst",
    ]  # fmt: skip


def test_the_model_folder_will_do(vcnef, files, run_folder):
    code, out, _ = vcnef("evaluate", run_folder / "model", "--data", files[0], "--split", "all", "--no-solver")
    assert code == 0
    assert "all split: 12 trajectories" in out
    assert (run_folder / "metrics.json").is_file()
    assert not (run_folder / "model" / "metrics.json").exists()


def test_a_parameter_on_the_command_line_leaves_those_of_the_file(vcnef, files, run_folder):
    code, out, err = vcnef("evaluate", run_folder, "--data", files[0], "--param", "g=9.81", "--no-solver")
    assert code == 0, err
    assert "nRMSE" in out
    assert "The model does not know the parameter 'g' of these data, and answers without. Use one of nu." in out


def test_a_terminal_gets_tables_with_lines(vcnef, files, run_folder, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = vcnef("evaluate", run_folder, "--data", files[0], "--no-solver")
    assert code == 0
    assert "─" in out
    assert "nRMSE" in out


def test_fields_in_two_dimensions(vcnef, tmp_path):
    path = from_arrays(torch.rand(3, 3, 8, 8, 2), channels=("height", "speed")).save(tmp_path / "waves.npz")
    train = open_data(path).split("train")
    Surrogate.build("vcnef", TINY | {"patches": ()}, train, seed=0).save(tmp_path / "model")
    code, out, err = vcnef("evaluate", tmp_path / "model", "--data", path, "--figures", tmp_path / "figures")
    assert code == 0, err
    assert re.search(r"metric +all +height +speed", out)
    drawn = sorted(each.stem for each in (tmp_path / "figures").iterdir())
    assert drawn == [
        "error_over_time", "median_height", "median_speed", "spectra_height", "spectra_speed",
        "worst_height", "worst_speed",
    ]  # fmt: skip


def test_boxes_in_three_dimensions(vcnef, tmp_path):
    path = from_arrays(torch.rand(3, 3, 4, 4, 4, 1)).save(tmp_path / "box.npz")
    train = open_data(path).split("train")
    Surrogate.build("vcnef", TINY | {"patches": ()}, train, seed=0).save(tmp_path / "model")
    code, _, err = vcnef("evaluate", tmp_path / "model", "--data", path, "--figures", tmp_path / "figures")
    assert code == 0, err
    drawn = sorted(each.stem for each in (tmp_path / "figures").iterdir())
    assert drawn == ["boxes_median", "boxes_worst", "error_over_time", "median", "spectra", "worst"]


def test_trajectories_at_rest_are_not_drawn_as_the_worst():
    u = torch.rand(5, 3, 8, 1)
    u[:3] = 0.0
    data = from_arrays(u)
    surrogate = Surrogate.build("vcnef", TINY, data, seed=0)
    found = judge(surrogate, data, split="all")
    better, worse = sorted(found.nrmse[3:])
    titles = [figure.get_suptitle() for _, figure in trajectories(surrogate, found, data)]
    assert titles == [f"median trajectory, nRMSE {better:.3g}", f"worst trajectory, nRMSE {worse:.3g}"]


def test_pictures_of_uneven_grids_have_their_points():
    x, z = torch.linspace(0.0, 1.0, 6) ** 2, torch.linspace(0.0, 1.0, 8) ** 2
    data = from_arrays(torch.rand(3, 3, 6, 5, 8, 1), x=(x, torch.arange(5.0), z), periodic=False)
    surrogate = Surrogate.build("vcnef", {**TINY, "patches": ()}, data, seed=0)
    found = judge(surrogate, data, split="all")
    drawn = dict(trajectories(surrogate, found, data))
    row = found.nrmse.argsort()[-1]
    for name, number in (("worst", 1), ("boxes_worst", 0)):
        mesh = drawn[name].axes[number].collections[0]
        np.testing.assert_allclose(mesh.get_coordinates()[0, 1:-1, 0], (x[1:] + x[:-1]) / 2, rtol=1e-6)
        # Of the squares of eighths, the sixth is nearest to the middle.
        np.testing.assert_allclose(mesh.get_array().T, data.u[row, -1, :, :, 5, 0])


def test_a_channel_may_be_a_quotient(monkeypatch, tmp_path):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, path: path.touch())
    data = from_arrays(torch.rand(2, 3, 8, 2), channels=("u/U", "p"))
    surrogate = Surrogate.build("vcnef", TINY, data, seed=0)
    draw(surrogate, judge(surrogate, data, split="all"), data, tmp_path)
    assert {"worst_u-U.png", "worst_p.png"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(("power", "drawn"), [(1, ["spectra", "heat_map"]), (2, ["heat_map"])])
def test_there_are_spectra_of_uniform_grids_only(power, drawn):
    data = from_arrays(torch.rand(2, 3, 8, 1), x=torch.linspace(0.0, 1.0, 8) ** power, periodic=False)
    surrogate = Surrogate.build("vcnef", TINY, data, seed=0)
    assert [name for name, _ in averages(surrogate, judge(surrogate, data, split="all"), data)] == drawn


def test_a_run_that_may_not_be_written_to_is_judged_all_the_same(vcnef, files, run_folder):
    (run_folder / "metrics.json").mkdir()
    code, out, err = vcnef("evaluate", run_folder, "--data", files[0], "--no-solver")
    assert code == 0
    assert "nRMSE" in out
    assert "Warning: Could not write" in err


def test_a_prediction_that_is_not_finite_is_null_and_said(vcnef, files, run_folder):
    surrogate = Surrogate.load(run_folder)
    with torch.no_grad():
        for weight in surrogate.model.decoder.parameters():
            weight.fill_(3e38)  # Weights that are not finite would not be loaded.
    surrogate.save(run_folder / "model")
    code, out, _ = vcnef("evaluate", run_folder, "--data", files[0], "--no-solver")
    assert code == 0
    assert "Note: 1 of 1 predictions on 16 points and 5 times are not finite" in out
    assert json.loads((run_folder / "metrics.json").read_text())["nrmse"] == [None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "There are no data to judge the model on; give files, e.g. --data burgers.hdf5. Those of"),
        (("--data", "gone.hdf5"), "There is no file gone.hdf5."),
        (("--data", "{file}", "--space", "wide"), "--space wide is not understood; write positive whole numbers"),
        (("--data", "{file}", "--time", "5,-1"), "--time 5,-1 is not understood; write positive whole numbers"),
        (("--data", "{file}", "--space", "24"), "space has 24, which no stride leaves of the 32 points of the data."),
        (("--data", "{file}", "--time", "8"), "time has 8 frames, which the 9 frames of the data"),
        (("--data", "{file}", "--split", "exam"), "There is no split 'exam'; expected one of train, valid, test, all."),
        (("--data", "{file}", "--device", "abacus"), "The device is 'abacus', which this machine does not have"),
        (("--data", "{file}", "--json", "{file}/out.json"), "Could not write"),
        (("--data", "{file}", "--figures", "{file}"), "Could not write"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(vcnef, files, run_folder, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = vcnef("evaluate", run_folder, "--no-solver", *(each.format(file=files[0]) for each in arguments))
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_the_data_are_not_written_over(vcnef, files, run_folder):
    before = files[1].read_bytes()
    code, _, err = vcnef("evaluate", run_folder, "--no-solver", "--data", *files, "--json", files[1])
    assert code == 2
    assert "is both --data and --json. Write the numbers to another file." in err
    assert files[1].read_bytes() == before


def test_a_folder_without_a_model(vcnef, files, tmp_path):
    code, _, err = vcnef("evaluate", tmp_path, "--data", files[0])
    assert (code, err.count("\n")) == (2, 1)
    assert "holds no model" in err
    code, _, err = vcnef("evaluate", tmp_path / "gone", "--data", files[0])
    assert code == 2
    assert "There is no run or model folder" in err
