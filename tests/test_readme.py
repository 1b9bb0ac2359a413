"""The README's first example does what it says."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_quickstart_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("{'sample': 4, 't': 3, 'x': 64, 'channel': 1}\nvcnef on burgers, test split: 6 traject")
