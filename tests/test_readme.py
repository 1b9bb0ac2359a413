"""The README's first example does what it says."""

import re
from itertools import takewhile
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_quickstart_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("{'sample': 4, 't': 3, 'x': 64, 'channel': 1}\nvcnef on burgers, test split: 6 traject")


def test_its_accuracy_is_that_of_the_results():
    results = (README.parent / "docs" / "results.md").read_text(encoding="utf-8")
    sections = {name: _rows(results, f"<!-- begin results {name} -->") for name in ("headline", "space")}
    shown = _rows(README.read_text(encoding="utf-8"), "## How accurate")
    assert len(shown) == 5
    for (_, minutes, here, _, finer), case in zip(
        shown, ("burgers", "advection", "cns1d", "cns2d", "cns3d"), strict=True
    ):
        (row,) = (row for row in sections["headline"] if row[0].startswith(f"{case} ") and row[1] == "vcnef_plus")
        assert (minutes, here) == (row[9], row[3].split()[0])
        if finer != "–":
            finest = [row for row in sections["space"] if row[0].startswith(f"{case} ") and row[1] == "vcnef_plus"][-1]
            assert finer.split()[0] == finest[4].split()[0]
            assert finer.split()[2].rstrip("³") == finest[2].split("×")[0]


def test_what_other_models_reach_is_that_of_the_results():
    """The numbers of the paragraph below the table, rounded as they are there."""
    rows = _rows((README.parent / "docs" / "results.md").read_text(encoding="utf-8"), "<!-- begin results headline -->")
    found = {(row[0].split()[0], row[1]): float(row[3].split()[0]) for row in rows}
    said = (
        r"reach (\S+) and (\S+) on Burgers, where the paper's own VCNeF is no better, (\S+), and (\S+) and (\S+) on adv"
    )
    stepped = [("burgers", "fno"), ("burgers", "unet"), ("advection", "fno"), ("advection", "unet")]
    expected = [found[case, f"{model}, push-forward"] for case, model in stepped]
    expected.insert(2, found["burgers", "vcnef, 8 times per step"])
    assert _said(said) == pytest.approx(expected, abs=6e-4)
    others = ("galerkin, push-forward", "oformer, push-forward", "mp_pde, push-forward", "coral")
    reached = _said(r"MP-PDE and CORAL reach (\S+), (\S+), (\S+) and (\S+) on Burgers")
    assert reached == pytest.approx([found["burgers", model] for model in others], abs=6e-4)


def test_the_demo_is_that_of_its_file():
    measured = (README.parent / "benchmarks" / "results" / "demo_cpu_202611.md").read_text(encoding="utf-8")
    vcnef, fno = ([float(cell) for cell in row[2:]] for row in _rows(measured, "# The demo on a CPU"))
    shown = _said(r"VCNeF nRMSE (\S+), and (\S+) at 128 and 256 points, without training on them; (\S+) at twice")
    assert shown == pytest.approx([vcnef[0], vcnef[1], vcnef[3]], abs=6e-4)
    assert vcnef[2] == pytest.approx(vcnef[1], rel=0.03)
    assert _said(r"The FNO (\S+), (\S+) and (\S+), and (\S+) at twice the times") == pytest.approx(fno, abs=6e-4)
    (minutes,) = re.findall(r"clock and (.*?) of processor time", measured)
    assert f"It took {minutes} of processor time" in _text()


def _said(pattern):
    """The numbers that README has in such a sentence."""
    (numbers,) = re.findall(pattern, _text())
    return [float(number.rstrip(",;.")) for number in numbers]


def _text():
    return " ".join(README.read_text(encoding="utf-8").split())


def _rows(text, heading):
    """The cells of the first table below, without its head."""
    lines = text[text.index(heading) :].splitlines()
    start = next(number for number, line in enumerate(lines) if re.match(r"\|( ?-+ ?\|)+$", line)) + 1
    table = takewhile(lambda line: line.startswith("|"), lines[start:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
