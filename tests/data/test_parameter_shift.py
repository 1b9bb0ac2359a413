"""Sets whose parameters differ from those of training are told of; those that chance draws are not."""

import numpy as np
import pytest
import torch

from vcnef.data.parameter_shift import describe_shifts

DRAWN = {
    "uniform": lambda rng, n: rng.uniform(0.1, 1.0, n),
    "decades": lambda rng, n: 10 ** rng.uniform(-3, 0, n),
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "a few values": lambda rng, n: rng.choice([0.1, 0.2, 0.5, 1.0], n),
    "one value": lambda rng, n: np.full(n, 0.3),
    "equally far apart": lambda rng, n: np.linspace(0.1, 1.0, n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n),
}


def shifts(judged, trained, given=False):
    columns = [{"nu": torch.as_tensor(np.asarray(each, dtype=np.float32)).double()} for each in (judged, trained)]
    return list(describe_shifts("test", *columns, given=given))


@pytest.mark.parametrize("samples", [3, 10, 40, 300])
@pytest.mark.parametrize("name", DRAWN)
def test_random_splits_raise_no_alarm(name, samples):
    rng = np.random.default_rng(0)
    for _ in range(150):
        values = rng.permutation(DRAWN[name](rng, samples))
        tested = max(1, samples // 10)
        assert shifts(values[:tested], values[tested:]) == []


@pytest.mark.parametrize("name", ["uniform", "decades", "a few values", "one value", "equally far apart"])
def test_random_sets_of_their_own_raise_no_alarm(name):
    rng = np.random.default_rng(1)
    for samples in (20, 100):
        for _ in range(100):
            judged, trained = DRAWN[name](rng, samples // 5), DRAWN[name](rng, samples)
            assert shifts(judged, trained, given=True) == []


def test_sorted_values_are_told_with_figures():
    nu = np.linspace(0.1, 1.0, 40)
    (said,) = shifts(nu[:4], nu[6:])
    assert said == (
        "4 of 4 trajectories of the test set have nu outside of the 0.2385 to 1 that is trained on: theirs is 0.1 to "
        "0.1692. There the model extrapolates; train on such values too, or take its errors as those of extrapolation."
    )
    assert "4 of 4 trajectories" in shifts(nu[-4:], nu[:-6])[0]


def test_another_distribution_within_the_range_is_told_with_figures():
    rng = np.random.default_rng(0)
    (said,) = shifts(rng.uniform(0.4, 0.5, 40), rng.uniform(0.1, 1.0, 300))
    assert said.startswith(
        "nu is distributed otherwise in the test set than in training: half of its values lie in 0.4"
    )
    assert ", of those of training in 0.3" in said


@pytest.mark.parametrize("value", [5.0, -1.0])
def test_one_value_far_outside_is_told_of_a_set_that_was_given(value):
    rng = np.random.default_rng(0)
    trained = rng.uniform(0.1, 1.0, 100)
    judged = [*rng.uniform(0.2, 0.9, 9), value]
    assert "1 of 10 trajectories of the test set have nu outside" in shifts(judged, trained, given=True)[0]
    assert shifts(judged, trained) == []


def test_any_other_value_than_the_one_of_training_is_told():
    assert "outside of the 0.3 that is trained on: theirs is 0.4" in shifts([0.4], np.full(30, 0.3), given=True)[0]


def test_nothing_to_compare_is_nothing_to_say():
    assert shifts([], [1.0, 2.0]) == []
