"""`vcnef generate` end to end, and what it says when something is wrong."""

import re
import subprocess
import sys
from unittest.mock import Mock

import pytest
import torch

from vcnef.cli._settings import parse_settings
from vcnef.data import open as open_data
from vcnef.progress import _lines

SMALL = ["--samples", "4", "--resolution", "32", "--frames", "3", "--horizon", "0.05", "--device", "cpu"]


def test_a_file_under_the_given_name(vcnef, tmp_path):
    path = tmp_path / "new" / "mine.hdf5"
    code, out, err = vcnef("generate", "burgers", *SMALL, "--set", "nu=0.01", "--seed", 3, "--out", path)
    assert code == 0
    assert f"{path}: 4 trajectories, " in out
    assert "mine.hdf5: 4 of 4" in err
    data = open_data(path)
    assert data.u.shape == (4, 3, 32, 1)
    assert data.problem.ranges == {"nu": (0.01, 0.01)}
    assert data.attributes["seed"] == 3


def test_a_folder_of_parameter_values_under_the_benchmarks_names(vcnef, tmp_path):
    code, _, _ = vcnef("generate", "burgers", *SMALL, "--set", "nu=0.01,1", "--out", tmp_path)
    assert code == 0
    paths = [tmp_path / f"1D_Burgers_Sols_Nu{nu}.hdf5" for nu in ("0.01", "1.0")]
    data = open_data(paths)
    assert torch.equal(data.u[:4, 0], data.u[4:, 0])


@pytest.mark.parametrize(("times", "expected"), [("0:0.1:3", [0.0, 0.05, 0.1]), ("0,0.01,0.1", [0.0, 0.01, 0.1])])
def test_free_output_times(vcnef, tmp_path, times, expected):
    size = ["--samples", 2, "--resolution", 32, "--device", "cpu"]
    code, _, _ = vcnef("generate", "burgers", *size, "--times", times, "--out", tmp_path / "mine.hdf5")
    assert code == 0
    torch.testing.assert_close(open_data(tmp_path / "mine.hdf5").t, torch.tensor(expected))


def test_times_that_are_not_understood(vcnef, tmp_path):
    code, _, err = vcnef("generate", "burgers", "--times", "0:2", "--out", tmp_path)
    assert code == 2
    assert err == "--times 0:2 is not understood; write first:last:count, e.g. 0:2:201, or 0,0.5,2.\n"


def test_a_range_and_an_option_of_the_initial_states(vcnef, tmp_path):
    code, _, _ = vcnef(
        "generate", "cns2d", *SMALL[:2], "--resolution", 8, *SMALL[4:], "--set", "eta=0.01:0.1", "--set", "mach=0.5",
        "--store-stride", 2, "--out", tmp_path / "gas.hdf5",
    )  # fmt: skip
    assert code == 0
    data = open_data(tmp_path / "gas.hdf5")
    assert data.u.shape == (4, 3, 4, 4, 4)
    assert data.attributes["mach"] == 0.5
    assert len(set(data.params[:, 0].tolist())) == 4


def test_resume(vcnef, tmp_path):
    arguments = ("generate", "burgers", *SMALL, "--out", tmp_path / "a.hdf5")
    assert vcnef(*arguments)[0] == 0
    code, _, err = vcnef(*arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert "exists already. Resume it" in err
    assert vcnef(*arguments, "--resume")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "burger"), "There is no equation 'burger'. Did you mean 'burgers'"),
        (("generate", "burgers", "--set", "mu=1"), "burgers has nothing called 'mu' to set. Did you mean 'nu'"),
        (("generate", "burgers", "--set", "nu"), "--set nu is not understood; write --set name=value"),
        (("generate", "burgers", "--set", "nu=1", "--set", "nu=2"), "--set names nu twice"),
        (("generate", "burgers", "--set", "nu=thick"), "nu is 'thick'; expected a number"),
        (("generate", "burgers", "--samples", "0"), "samples is 0"),
        (("generate", "burgers", "--batch", "-1"), "batch is -1; expected at least 1"),
        (("generate", "burgers", "--seed", "-1"), "seed is -1; expected at least 0"),
        (("generate", "burgers", "--set", "modes=abc"), "modes is 'abc'; expected a whole number, as its default 4 is"),
        (("generate", "burgers", "--set", "modes=true"), "modes is True; expected a whole number"),
        (("generate", "burgers", "--set", "constant_offsets=1"), "constant_offsets is 1; expected true or false"),
        (("generate", "cns2d", "--set", "mach=fast"), "mach is 'fast'; expected a number"),
        (("generate", "burgers", "--samples", "many"), "Invalid value for '--samples'"),
        (("generate", "burgers", "--colour", "red"), "No such option"),
        (("generate", "burgers", "--out", "x.csv"), "generated data are written as .hdf5"),
        (("generate",), "Missing argument '"),
        (("generat",), "No such command 'generat'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(vcnef, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = vcnef(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_who_interrupts_is_told_how_to_continue(vcnef, tmp_path, monkeypatch):
    monkeypatch.setattr("vcnef.data.generator.generate", Mock(side_effect=KeyboardInterrupt))
    code, _, err = vcnef("generate", "burgers", *SMALL, "--out", tmp_path / "mine.hdf5")
    assert code == 130
    assert err == "What is made so far is kept; continue with --resume.\n"


def test_help_lists_the_verbs_and_options(vcnef):
    code, out, _ = vcnef("--help")
    assert code == 0
    assert "generate" in out
    code, out, _ = vcnef("generate", "--help")
    assert code == 0
    assert all(option in out for option in ("--samples", "--set", "--resume", "--store-stride"))


def test_the_command_is_installed_and_loads_nothing_heavy_of_its_own():
    listing = "import sys, typer, vcnef; before = set(sys.modules); from vcnef import cli; cli._app(); "
    listing += "print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\b(h5py|vcnef\.data|vcnef\.pde|rich\.progress)\b", loaded)


def test_values_of_settings():
    parsed = parse_settings(["a=1", "b=0.5", "c=1,2.5", "d=1e-3:1", "e=true", "f=Rand"])
    assert parsed == {"a": 1, "b": 0.5, "c": [1, 2.5], "d": (0.001, 1), "e": True, "f": "Rand"}


def test_plain_lines_say_the_time_left(monkeypatch, capsys):
    import sys as system
    from types import SimpleNamespace

    clock = iter([0.0, 5.0, 20.0, 40.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    report = _lines(SimpleNamespace(file=system.stdout))
    for done in (0, 10, 20, 40):
        report("burgers", done, 40)
    assert capsys.readouterr().out.splitlines() == [
        "burgers: 0 of 40",
        "burgers: 20 of 40, 20 s left",
        "burgers: 40 of 40",
    ]
