"""The public surface: stable names, importable one by one, in wheels as in a checkout."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import vcnef


def test_every_public_name_is_there():
    for name in vcnef.__all__:
        assert getattr(vcnef, name) is not None
    assert set(vcnef.__all__) <= set(dir(vcnef))


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(vcnef, "banana")


def test_importing_the_package_does_not_import_torch():
    script = "import sys, vcnef; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_the_package_runs_as_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["vcnef", "presets"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("vcnef", run_name="__main__")
    assert stop.value.code == 0
    assert "burgers/vcnef" in capsys.readouterr().out


def test_the_citation_has_this_version():
    citation = Path(__file__).parent.parent / "CITATION.cff"
    assert yaml.safe_load(citation.read_text())["version"] == vcnef.__version__


def test_continuous_integration_runs_commands_that_there_are():
    root = Path(__file__).parent.parent
    targets = re.findall(r"^(\w+):", (root / "Makefile").read_text(), flags=re.MULTILINE)
    for workflow in (root / ".github" / "workflows").glob("*.yml"):
        for target in re.findall(r"make (\w+)", workflow.read_text()):
            assert target in targets, f"{workflow.name} runs make {target}"
