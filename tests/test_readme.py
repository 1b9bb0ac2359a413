"""The README's first example does what it says."""

import re
from itertools import takewhile
from pathlib import Path

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


def _rows(text, heading):
    """The cells of the first table below, without its head."""
    lines = text[text.index(heading) :].splitlines()
    start = next(number for number, line in enumerate(lines) if re.match(r"\|( ?-+ ?\|)+$", line)) + 1
    table = takewhile(lambda line: line.startswith("|"), lines[start:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
