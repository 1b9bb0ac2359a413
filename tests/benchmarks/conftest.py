"""The scripts of `benchmarks/`, and a smoke run of one of them that several tests look at."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))


@pytest.fixture(autouse=True, scope="session")
def few_cores(one_thread):
    """Every test here."""


@pytest.fixture(scope="session")
def measured(tmp_path_factory):
    """A tiny VCNeF for several parameter values: its run folder, the path of its result, and the result."""
    import accuracy

    place = tmp_path_factory.mktemp("accuracy")
    options = ["--out", str(place), "--keep", str(place / "runs"), "--seed", "3", "--device", "cpu"]
    accuracy.main(["burgers_params", "--smoke", *options, "--set", "train.batch=8", "--label", "larger batch"])
    path = place / "burgers_params_vcnef_larger_batch_seed3.json"
    return place / "runs" / path.stem, path, json.loads(path.read_text())
