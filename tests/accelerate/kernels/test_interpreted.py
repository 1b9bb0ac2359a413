"""The kernels in Triton's interpreter and its compiler: no GPU needed, but a process of its own for each."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


@pytest.mark.parametrize("operations", ["training", "inference"])
def test_interpreted_operations_agree_with_their_baselines(operations):
    run("interpreted.py", operations, interpret=True)


def test_kernels_compile():
    run("compiled.py", interpret=False)


def test_compiled_calls_give_what_eager_ones_give():
    run("compiled_calls.py", "cpu", interpret=True)


@pytest.mark.gpu
def test_compiled_calls_on_a_gpu_give_what_eager_ones_give():
    run("compiled_calls.py", "cuda", interpret=False)


def run(script, *arguments, interpret):
    environment = os.environ | {"TRITON_INTERPRET": str(int(interpret))}
    command = [sys.executable, Path(__file__).with_name(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
