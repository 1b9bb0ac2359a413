"""Virtual machines that announce what they cannot do."""

import os
import platform
import subprocess
import sys

import pytest

from vcnef import processor

NATIVE = pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="needs Linux on x86-64")


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """One whose processor has those flags and says so much of its tiles."""

    def make(flags, palette):
        (tmp_path / "cpuinfo").write_text(f"flags : fpu {flags}\n")
        monkeypatch.setattr(platform, "machine", lambda: "x86_64")
        monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
        monkeypatch.setattr(processor, "_largest_palette", lambda: palette)
        # Set first, so that it is as it was afterwards whatever happens between.
        monkeypatch.setenv(processor.ISA, "ALL")
        monkeypatch.delenv(processor.ISA)

    return make


@pytest.mark.parametrize(
    ("flags", "palette", "kept_from"),
    [("amx_tile", 0, True), ("amx_tile", 1, False), ("amx_tile", None, False), ("avx2", 0, False)],
)
def test_tiles_without_layouts_are_not_used(machine, flags, palette, kept_from):
    machine(flags, palette)
    processor.avoid_broken()
    assert (os.environ.get(processor.ISA) == processor.WITHOUT_TILES) == kept_from


def test_a_choice_of_the_user_stands(machine, monkeypatch):
    machine("amx_tile", 0)
    monkeypatch.setenv(processor.ISA, "AVX2")
    processor.avoid_broken()
    assert os.environ[processor.ISA] == "AVX2"


@NATIVE
def test_the_processor_is_asked_and_the_memory_for_it_given_back():
    answers = {processor._largest_palette() for _ in range(3)}
    assert len(answers) == 1
    assert answers <= {None, 0, 1}


def test_products_in_bf16_do_not_end_the_process():
    code = "import vcnef, torch; x = torch.ones(64, 64, dtype=torch.bfloat16); assert (x @ x)[0, 0] == 64"
    environment = {name: value for name, value in os.environ.items() if name != processor.ISA}
    assert subprocess.run([sys.executable, "-c", code], env=environment, timeout=120).returncode == 0
