"""`benchmarks/forward.py`: what it times against each other is the same function."""

import os
from argparse import Namespace

import pytest

import forward


@pytest.mark.parametrize("ndim", [1, 2])
@pytest.mark.parametrize("variant", ["paper", "release"])
def test_what_is_fast_gives_what_the_reference_gives(ndim, variant):
    sizes = {"ndim": ndim, "batch": 2, "times": 3, "points": 32, "device": "cpu", "repeats": 1, "steps": 1}
    found = forward.compare(Namespace(**sizes, precisions=["fp32"]), variant)
    assert found["predict fp32, change"] < 1e-5
    assert found["predict fp32, ratio"] > 0
    assert found["engine step, ratio"] > 0
    assert forward.SWITCH not in os.environ
