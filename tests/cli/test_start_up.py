"""What a command imports before it answers: modules are counted, since seconds differ from machine to machine."""

import json
import subprocess
import sys

import pytest

from vcnef.cli._options import DATA_FILES
from vcnef.config import Config
from vcnef.data.opening import READERS
from vcnef.presets import summarise_presets

HEAVY = {"torch", "xarray", "pandas", "matplotlib", "h5py"}
BESIDE_TORCH = {"torch._dynamo", "triton", "sympy", "lightning_fabric", "pandas", "matplotlib", "email.mime"}
"""What torch does not import itself, and nobody needs who has not asked for an answer yet."""
MOST_MODULES_WITHOUT_TENSORS = 500
"""At most 445 today, of Python itself, Typer, Rich and NumPy."""

REPORT = "import atexit, json, sys; atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"


def imported_by(code):
    ended = subprocess.run([sys.executable, "-c", REPORT + code], capture_output=True, text=True, check=False)
    said, _, modules = ended.stderr.rstrip().rpartition("\n")
    return set(json.loads(modules)), said


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "predict --help",
        "presets",
        "evaluate runs/typo --data a.hdf5",
        "evaluate burgers --data typo.hdf5",
        "export runs/typo --out a.pt2",
        "predict runs/typo --input a.nc --times 0,1 --out b.nc",
        "predict burgers --input typo.nc --times 0,1 --out b.nc",
        "report runs/typo",
        "serve runs/typo",
        "train burgers/typo --data a.hdf5 --out runs/a",
        "train burgers/vcnef --data typo.hdf5 --out runs/a",
    ],
)
def test_no_tensor_is_needed_to_list_or_to_answer_a_mistyped_name(command):
    modules, said = imported_by(f"from vcnef.cli import main; main({command.split()})")
    assert not modules & HEAVY
    assert len(modules) <= MOST_MODULES_WITHOUT_TENSORS
    if "typo" in command:
        assert "There is no" in said
        assert "typo" in said
        assert "\n" not in said


@pytest.mark.parametrize(
    "code",
    [
        "import vcnef.workflow, vcnef.evaluation, vcnef.pde, vcnef.explorer",
        "from vcnef.cli import main; main(['models'])",
    ],
)
def test_neither_the_compiler_nor_pandas_is_imported_with_torch(code):
    modules, _ = imported_by(code)
    assert "torch" in modules
    assert not modules & BESIDE_TORCH


def test_public_names_are_fetched_when_they_are_used():
    modules, _ = imported_by("import vcnef; vcnef.__version__; dir(vcnef)")
    assert not modules & HEAVY
    modules, _ = imported_by("import vcnef; vcnef.Problem")
    assert "vcnef.problem" in modules
    assert "vcnef.workflow" not in modules


def test_suffixes_of_data_files_are_those_that_are_read():
    assert set(DATA_FILES) == set(READERS)


def test_lines_about_presets_are_those_of_their_configurations():
    for name, model, epochs, _ in summarise_presets():
        config = Config.load(name)
        assert (model, epochs) == (config.model.name, config.train.epochs), name
