"""The kernels in Triton's interpreter: no GPU needed, and a process of its own to switch it on."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("kernels", ["modulation", "layers", "orthogonal"])
def test_kernels_agree_with_their_twins_and_models_with_and_without_them(kernels):
    script = Path(__file__).with_name(f"interpreted_{kernels}.py")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
