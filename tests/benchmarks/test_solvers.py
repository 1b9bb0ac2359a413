"""`benchmarks/solvers.py`: what its rates are about."""

import pytest
import torch

import solvers


def measure(frames):
    return solvers.measure("advection", solvers.Load(2, 2, frames, resolution=8), torch.device("cpu"), 0, None)


def test_rates_of_a_few_frames_are_scaled_to_all_of_them():
    found = measure(frames=11)
    assert (found.frames, found.samples, found.not_finite) == (11, 2, 0)
    assert found.full_horizon_per_second == pytest.approx(found.per_second / 20)


@pytest.mark.parametrize("frames", [1, 1001])
def test_frames_that_the_benchmark_has_not(frames):
    with pytest.raises(ValueError, match=f"frames is {frames}; expected 2 to the benchmark's 201"):
        measure(frames)
