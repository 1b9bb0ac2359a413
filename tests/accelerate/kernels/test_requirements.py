"""What kernels require, and the reasons they give; no Triton needed."""

import subprocess
import sys

import pytest
import torch

from vcnef.accelerate.kernels import requirements

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def able(monkeypatch):
    """As if every device had all that kernels need."""
    monkeypatch.setattr(requirements, "lack", lambda device: None)


def test_a_processor_is_no_gpu():
    assert requirements.obstacle(CPU, torch.float32, 96) == "tokens are on cpu, not on a GPU"


def test_the_switch_comes_first(monkeypatch):
    monkeypatch.setenv(requirements.SWITCH, "0")
    assert requirements.obstacle(CPU, torch.float32, 96) == "VCNEF_KERNELS is 0"


@pytest.mark.usefixtures("able")
def test_widths_heads_and_types():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert requirements.obstacle(GPU, dtype, 128, 8) is None
    assert requirements.obstacle(GPU, torch.float64, 96) == "tokens are torch.float64"
    assert requirements.obstacle(GPU, torch.float16, 129) == (
        "width 129 with 1 heads, where at most 128 and a multiple of the heads is served"
    )
    assert "width 96 with 7 heads" in requirements.obstacle(GPU, torch.float16, 96, 7)
    assert requirements.norm_obstacle(GPU, torch.float16, 1024) is None
    assert requirements.norm_obstacle(GPU, torch.float16, 1025) is not None


@pytest.mark.usefixtures("able")
def test_operations_with_requirements_of_their_own():
    pytest.importorskip("triton")
    from vcnef.accelerate.kernels.registry import OPERATIONS

    def obstacle(name, *given, **named):
        return OPERATIONS[name].obstacle(GPU, torch.float16, *given, **named)

    assert obstacle("mixing", 256, 8) is None
    assert (
        obstacle("mixing", 256, 2)
        == "width 256 with 2 heads, where at most 256 in heads of (16, 32, 64) features is served"
    )
    assert obstacle("mixing", 512, 8) is not None
    assert obstacle("mixing", 100, 6) is not None
    assert obstacle("decoder", 96, 8) is None
    assert obstacle("decoder", 96, 9) == "9 channels, where at most 8 are served"
    assert obstacle("neighbours", 256, 64) is None
    assert obstacle("neighbours", 256, 65) == "a stencil with 65 taps, where at most 64 are served"
    assert obstacle("neighbours", 96, 3, periodic=False) == "a grid that is not periodic"
    assert obstacle("mix_neighbours", 96, 3) is None
    assert obstacle("orthogonalise", 128) is None
    assert obstacle("orthogonalise", 256) is not None
    assert obstacle("adam") == "weights are torch.float16"


def test_weights_that_adam_cannot_update(monkeypatch):
    pytest.importorskip("triton")
    from vcnef.accelerate.kernels import adam

    plain, complex_one = torch.zeros(4, 3), torch.zeros(3, dtype=torch.complex64)
    assert adam.obstacle_of_all([plain]) == "tokens are on cpu, not on a GPU"
    monkeypatch.setattr(adam, "lack", lambda device: None)
    assert adam.obstacle_of_all([plain, complex_one]) is None
    assert adam.obstacle_of_all([plain, plain.double()]) == "weights are torch.float64"
    assert adam.obstacle_of_all([plain.mT]) == "a weight that is not in one piece of memory"
    assert adam.obstacle_of_all([plain, plain.to("meta")]) == "weights are on several devices"
    monkeypatch.setenv(requirements.SWITCH, "0")
    assert adam.obstacle_of_all([plain]) == "VCNEF_KERNELS is 0"


def test_what_runs_anywhere_does_not_import_triton():
    names = ("requirements", "weights", "stencil", "newton_schulz", "formulas", "operation", "beside")
    imports = "; ".join(f"import vcnef.accelerate.kernels.{name}" for name in names)
    code = f"import sys; sys.modules['triton'] = None; {imports}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
