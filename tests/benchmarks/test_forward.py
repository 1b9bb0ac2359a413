"""`benchmarks/forward.py`: what it times against each other is the same function."""

from argparse import Namespace

import pytest

import forward


@pytest.mark.parametrize("ndim", [1, 2])
@pytest.mark.parametrize("variant", ["paper", "release"])
def test_the_method_written_down_gives_what_the_model_gives(ndim, variant):
    sizes = {"ndim": ndim, "batch": 2, "times": 3, "points": 32, "device": "cpu", "repeats": 1, "steps": 1}
    found = forward.compare(Namespace(**sizes), variant)
    assert found["largest difference"] < 1e-5
    assert found["predict ratio"] > 0
    assert found["engine step ratio"] > 0
