"""What all verbs have in common."""

import io
import sys

import pytest

from vcnef.cli import main


def test_letters_that_the_output_cannot_hold(monkeypatch):
    held = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(held, encoding="cp1252"))
    with pytest.raises(SystemExit) as stop:
        main(["presets"])
    sys.stdout.flush()
    assert stop.value.code == 0
    assert "VCNeF on 1D advection, ? = 0.1: nRMSE 0.0165 ± 0.0007 in the paper" in held.getvalue().decode("cp1252")
