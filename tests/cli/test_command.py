"""What all verbs have in common."""

import io
import re
import sys
from unittest.mock import Mock

import pytest

from vcnef import __version__
from vcnef.cli import main


def test_letters_that_the_output_cannot_hold(monkeypatch):
    held = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(held, encoding="cp1252"))
    with pytest.raises(SystemExit) as stop:
        main(["presets"])
    sys.stdout.flush()
    assert stop.value.code == 0
    assert "VCNeF on 1D advection, ? = 0.1: nRMSE 0.0165 ± 0.0007 in the paper" in held.getvalue().decode("cp1252")


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 61440000000")]
)
def test_too_little_memory_is_one_sentence(vcnef, monkeypatch, error):
    monkeypatch.setattr("vcnef.presets.summarise_presets", Mock(side_effect=error))
    code, _, err = vcnef("presets")
    assert (code, err.count("\n")) == (2, 1)
    assert re.match(r"There is not enough memory \(.*(61440000000|none is left)\)\. Ask for less at once", err)


def test_other_failures_are_not_hidden(monkeypatch):
    monkeypatch.setattr("vcnef.presets.summarise_presets", Mock(side_effect=RuntimeError("a mistake of ours")))
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        main(["presets"])


def test_an_interrupt_is_said(vcnef, monkeypatch):
    monkeypatch.setattr("vcnef.presets.summarise_presets", Mock(side_effect=KeyboardInterrupt))
    assert vcnef("presets") == (130, "", "Stopped.\n")


def test_help_fills_the_terminal(vcnef, monkeypatch):
    """Lines are folded where it ends, and not also where those of the source do."""
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = vcnef("export", "--help")
    paragraph = re.search(r"\n (Inputs are u0 .*?)\n *\n", out, re.DOTALL)[1]
    first, *between, _ = (line.strip() for line in paragraph.split("\n"))
    assert code == 0
    assert all(len(line) > 50 for line in (first, *between))


@pytest.mark.parametrize(("verb", "usage"), [("train", "[PRESET]..."), ("evaluate", "[FILE]..."), ("report", "RUN")])
def test_usage_has_no_brackets_of_its_own(vcnef, verb, usage):
    _, out, _ = vcnef(verb, "--help")
    (said,) = re.findall(r"Usage: .*", out)
    assert re.sub(r"[^A-Z]", "", usage) in said  # older versions of click write no brackets
    assert "[[" not in said
    assert "......" not in said.replace("}", "")


def test_it_knows_its_version(vcnef):
    assert vcnef("--version") == (0, f"vcnef {__version__}\n", "")
