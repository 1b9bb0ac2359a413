"""`benchmarks/beyond.py`: what is composed is what `predict` gives."""

import pytest

import beyond


def test_the_first_horizon_is_answered_directly():
    case = {"model": "advection", "params": {"beta": 0.4}, "samples": 2, "horizons": 1}
    (composed,), direct = beyond.ends(case, "cpu")
    assert composed == pytest.approx(direct, rel=1e-4)  # times are rounded on the way
    assert 0 < direct < 0.1
