"""`vcnef report` on a debug run: with and without data, several runs, missing pieces, wrong folders."""

import contextlib
import json
import re
import shutil
from pathlib import Path

import pytest

from vcnef.cli import main
from vcnef.cli._reports import commands_of
from vcnef.cli.report import _finer
from vcnef.report import RunRecord

SMALL = ["--samples", "24", "--resolution", "16", "--frames", "5", "--horizon", "0.05", "--device", "cpu"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A file of Burgers' equation and a debug run on it."""
    folder = tmp_path_factory.mktemp("report")
    for command in (
        ["generate", "burgers", *SMALL, "--set", "nu=0.01", "--out", "burgers.hdf5"],
        ["train", "debug/vcnef1d", "--data", "burgers.hdf5", "--out", "runs/a", "--devices", "cpu"],
    ):
        with contextlib.chdir(folder), pytest.raises(SystemExit) as stop:
            main(command)
        assert not stop.value.code
    return folder


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    """The same, to be written to."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def headings(text):
    return re.findall(r"<h2>(.*?)</h2>", text)


def test_with_data_it_evaluates_and_draws(vcnef, place):
    case = {"model": "vcnef", "way": "parallel", "steps": 40, "seconds": 0.5, "peak_memory": None}
    (place / "speed.json").write_text(json.dumps({"device": "an abacus", "results": [case]}))
    more = ("--costs", "speed.json", "--out", "new/page.html")
    options = ("--data", "burgers.hdf5", "--time", "3,5", "--device", "cpu", *more)
    code, out, err = vcnef("report", "runs/a", *options)
    assert code == 0, err
    assert "Wrote new/page.html" in out
    text = (place / "new" / "page.html").read_text()
    metrics = json.loads((place / "runs" / "a" / "metrics.json").read_text())
    assert metrics["data"] == ["burgers.hdf5"]
    for value in metrics["result"]["scores"]["overall"].values():
        assert f'<data value="{value!r}">' in text
    assert f'<data value="{metrics["result"]["cost"]["seconds"]!r}">' in text
    for words in ("Median trajectory", "Worst trajectory", "Energy spectra", "Relative error over space and time"):
        assert f'alt="{words}' in text
    assert [each["resolution"] for each in metrics["solver"]] == [[8]]
    assert "The line is the classical solver on coarser grids" in text
    assert "Benchmark of inference</h3>\n<p>an abacus</p>" in text
    assert len(headings(text)) == 11
    assert "vcnef train runs/a/config.yaml --data burgers.hdf5 --out runs/a-again" in text
    assert "vcnef evaluate runs/a --data burgers.hdf5 --time 3,5" in text
    assert (
        "vcnef report runs/a --data burgers.hdf5 --time 3,5 --device cpu --costs speed.json --out new/page.html" in text
    )
    assert not list((place / "new").glob("*.part*"))


@pytest.mark.parametrize(("periodic", "option"), [(True, ""), (False, " --no-periodic"), ([True, False], " --walls y")])
def test_the_command_that_trains_again_says_whether_the_domain_closes(tmp_path, periodic, option):
    (tmp_path / "config.yaml").touch()
    record = RunRecord(name="a", folder=str(tmp_path), model={"problem": {"periodic": periodic}})
    command = f"vcnef train {tmp_path}/config.yaml{option} --data FILE --out {tmp_path}-again"
    assert commands_of(record) == [command]


def test_judged_again_on_the_same_file_it_keeps_its_super_resolution():
    metrics = {"data": ["a.hdf5"], "time": [{"frames": 3}, {"frames": 5}], "space": [{"resolution": [16]}]}
    record = RunRecord(name="a", folder="runs/a", metrics=metrics)
    assert _finer(record, {"space": (), "time": ()}, [Path("a.hdf5")]) == {"space": (), "time": (3, 5)}
    assert _finer(record, {"space": (), "time": (9,)}, [Path("a.hdf5")]) == {"space": (), "time": (9,)}
    assert _finer(record, {"space": (), "time": ()}, [Path("b.hdf5")]) == {"space": (), "time": ()}


def test_several_runs_side_by_side(vcnef, place):
    shutil.copytree(place / "runs" / "a", place / "runs" / "b & c")
    shutil.copy(place / "burgers.hdf5", place / "more.hdf5")
    command = ("report", "runs/a", "runs/b & c/model", "--data", "burgers.hdf5", "more.hdf5", "--no-solver")
    code, out, err = vcnef(*command, "--param", "nu=0.01")
    assert code == 0, err
    assert "Wrote report.html" in out
    text = (place / "report.html").read_text()
    assert "2 runs compared: vcnef on burgers" in text
    assert '<th scope="col">a</th><th scope="col">b &amp; c</th>' in text
    assert "vcnef evaluate &#39;runs/b &amp; c&#39; --data burgers.hdf5 --data more.hdf5 --param nu=0.01" in text
    assert json.loads((place / "runs" / "b & c" / "metrics.json").read_text())["samples"] == 4


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("channels", ["v"], "The model expects the channels v; the data have u."),
        ("parameters", ["mu"], "The model expects the parameters mu; the data have nu, so mu is missing."),
    ],
)
def test_a_run_that_does_not_fit_the_data_is_named_before_any_is_judged(vcnef, place, key, value, message):
    shutil.copytree(place / "runs" / "a", place / "runs" / "b")
    config = place / "runs" / "b" / "model" / "config.json"
    description = json.loads(config.read_text())
    del description["checksum"]
    description["problem"] |= {key: value, "ranges": {}}
    if key == "channels":
        description["scaling"]["fields"]["channels"] = value
        del description["provenance"]["field_ranges"]
    config.write_text(json.dumps(description))
    code, _, err = vcnef("report", "runs/a", "runs/b", "--data", "burgers.hdf5", "--device", "cpu")
    assert code == 2
    assert f"b cannot be judged on these data. {message}" in err
    assert not list(place.rglob("metrics.json"))
    assert not list(place.rglob("*.html"))


def test_without_data_it_shows_what_the_folder_holds(vcnef, place):
    code, out, err = vcnef("report", "runs/a")
    assert (code, err) == (0, "")
    assert "Wrote runs/a/report.html" in out
    text = (place / "runs" / "a" / "report.html").read_text()
    assert "a has not been evaluated: there is no metrics.json in runs/a." in text
    assert "Pictures need the data" in text
    assert text.count("<img ") == 2
    assert "vcnef train runs/a/config.yaml --data FILE --out runs/a-again" in text


def test_an_interrupted_run_without_a_model(vcnef, place):
    shutil.rmtree(place / "runs" / "a" / "model")
    (place / "runs" / "a" / "log.jsonl").write_text("")
    code, _, err = vcnef("report", "runs/a", "--out", "page.html")
    assert (code, err) == (0, "")
    text = (place / "page.html").read_text()
    assert "a has no training log" in text
    assert "<img " not in text


def test_runs_of_the_same_name_are_told_apart(vcnef, place):
    shutil.copytree(place / "runs", place / "other")
    code, _, err = vcnef("report", "runs/a", "other/a", "--out", "page.html")
    assert code == 0, err
    assert '<th scope="col">runs/a</th><th scope="col">other/a</th>' in (place / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("runs/gone",), "There is no run or model folder runs/gone. There are runs/a."),
        (("runs",), "runs holds no run: there is neither a model nor a config.yaml or log.jsonl in it."),
        (("burgers.hdf5",), "There is no run to report on; name run folders"),
        (("runs/a", "--space", "32"), "--space, --time and --split need data to judge the runs on"),
        (("runs/a", "--split", "nope"), "--space, --time and --split need data to judge the runs on"),
        (("runs/a", "--data", "gone.hdf5"), "There is no file gone.hdf5."),
        (("runs/a", "--data", "burgers.hdf5", "--space", "wide"), "--space wide is not understood"),
        (("runs/a", "--data", "burgers.hdf5", "--device", "abacus"), "abacus"),
        (("runs/a", "--costs", "gone.json"), "There is no file gone.json. Write it with `vcnef benchmark speed --json"),
        (("runs/a", "--costs", "burgers.hdf5"), "burgers.hdf5 is not what a benchmark of speed writes: expected resul"),
        (("runs/a", "--out", "runs"), "runs is a folder; expected a file. Name a file inside it with --out."),
        (("runs/a", "--out", "burgers.hdf5/page.html"), "Could not write"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(vcnef, place, arguments, message):
    code, _, err = vcnef("report", *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert not list(place.rglob("*.html"))


def test_what_is_read_is_not_written_over(vcnef, place):
    case = {"model": "vcnef", "way": "parallel", "steps": 40, "seconds": 0.5, "peak_memory": None}
    (place / "speed.json").write_text(json.dumps({"results": [case]}))
    given = ("--data", "burgers.hdf5", "--costs", "speed.json")
    for option, name in zip(given[::2], given[1::2], strict=True):
        before = (place / name).read_bytes()
        code, _, err = vcnef("report", "runs/a", *given, "--out", name)
        assert code == 2
        assert f"{name} is both {option} and --out. Write the page to another file." in err
        assert (place / name).read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        '{"results": []}',
        '{"table": "memory", "results": []}',
        '{"results": [{"model": "fno"}]}',
        "[1]",
        '{"results": [1]}',
    ],
)
def test_what_is_no_benchmark(vcnef, place, text):
    (place / "speed.json").write_text(text)
    code, _, err = vcnef("report", "runs/a", "--costs", "speed.json")
    assert code == 2
    assert "expected results with model, peak_memory, seconds, steps, way. Write it with" in err


def test_a_damaged_evaluation(vcnef, place):
    (place / "runs" / "a" / "metrics.json").write_text('{"result": 3}')
    code, _, err = vcnef("report", "runs/a")
    assert code == 2
    assert "metrics.json is not the record of an evaluation: it is damaged. Write it again" in err
