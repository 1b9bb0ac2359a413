"""The kernels in Triton's interpreter and its compiler: no GPU needed, but a process of its own for each."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


@pytest.mark.parametrize("kernels", ["modulation", "layers", "orthogonal", "adam"])
def test_kernels_agree_with_their_twins_and_models_with_and_without_them(kernels):
    run(f"interpreted_{kernels}.py", interpret=True)


def test_kernels_compile():
    run("compiled.py", interpret=False)


def run(script, *, interpret):
    environment = os.environ | {"TRITON_INTERPRET": str(int(interpret))}
    command = [sys.executable, Path(__file__).with_name(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
