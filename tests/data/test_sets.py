"""What is trained on, chosen by and tested: drawn from the data, or given; whatever does not fit is said."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from vcnef.data import from_arrays
from vcnef.data import open as open_data
from vcnef.data.sets import make_sets


def make(samples=40, seed=0, nu=(0.1, 1.0), points=16, **given):
    rng = np.random.default_rng(seed)
    given = {"params": {"nu": rng.uniform(*nu, samples)}, "t": np.linspace(0, 1, 5)} | given
    return from_arrays(rng.normal(size=(samples, 5, points, 1)), **given)


def test_sets_are_drawn_from_the_data():
    data = make()
    sets = make_sets(data, 0.05)
    assert torch.equal(sets.train.u, data.split("train").u)
    assert torch.equal(sets.valid.u, data.split("valid").u)
    assert sets.describe() == "34 to learn from, 2 to choose the weights, 4 left for the test; drawn at random"
    assert sets.seen.among(data).sum() == 36
    assert not sets.seen.among(data.split("test")).any()
    assert sets.doubts == ()


def test_those_of_the_benchmark_are_in_order():
    data = replace(make(), split_in_order=True)
    sets = make_sets(data, 0.0)
    assert torch.equal(sets.train.u, data.u[4:])
    assert sets.valid is None
    assert sets.describe() == "36 to learn from, 4 left for the test; the first of each file are the test"


@pytest.mark.parametrize(
    ("given", "train", "words"),
    [
        (
            {"valid": 1},
            36,
            "36 to learn from, 8 to choose the weights (a set of its own), 4 left for the test; drawn at",
        ),
        (
            {"test": 2},
            38,
            "38 to learn from, 2 to choose the weights, 8 left for the test (a set of its own); drawn at",
        ),
        (
            {"valid": 1, "test": 2},
            40,
            "40 to learn from, 8 to choose the weights (a set of its own), 8 left for the test (a set of its own)",
        ),
    ],
)
def test_with_sets_of_their_own_everything_else_is_trained_on(given, train, words):
    sets = make_sets(make(), 0.05, **{name: make(8, seed) for name, seed in given.items()})
    assert len(sets.train) == train
    assert sets.train.subset == "train"
    assert sets.describe().startswith(words)
    assert sets.provenance()["sets"]["own"] == list(given)
    assert not sets.doubts


def test_splits_that_were_made_before_are_taken_as_they_are():
    data = make()
    train, valid, test = (data.split(name) for name in ("train", "valid", "test"))
    sets = make_sets(train, 0.05, valid, test)
    assert (len(sets.train), len(sets.valid), sets.tested) == (34, 2, 4)
    assert len(make_sets(train, 0.05, valid).train) == 34
    alone = make_sets(train, 0.05, test=test)
    assert (len(alone.train), len(alone.valid)) == (33, 1)
    with pytest.raises(ValueError, match=r"valid is the test split of its data; .* used twice judges nothing"):
        make_sets(train, 0.05, test)
    with pytest.raises(
        ValueError, match="The data are the test split; expected the whole data set, or its train split"
    ):
        make_sets(test, 0.05, valid)


def test_parameters_may_come_in_another_order():
    names = {"a": np.arange(20.0), "b": np.arange(20.0) + 5}
    data = make(20, params=names)
    sets = make_sets(data, 0.0, make(20, 1, params=dict(reversed(names.items()))))
    assert sets.valid.problem.parameters == ("a", "b")
    assert torch.equal(sets.valid.params, data.params)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"channels": ["h"]}, r"their channels are \['h'\] and \['u'\]"),
        ({"params": {"mu": 1.0}}, r"their parameters are \['mu'\] and \['nu'\]"),
        ({"points": 8}, "they have 8 and 16 points"),
        ({"x": np.arange(16.0)}, "their points differ, by up to 14"),
        ({"t": np.linspace(0, 2, 5)}, "their times differ, by up to 1"),
        ({"periodic": False}, "only one of them is periodic"),
    ],
)
def test_sets_of_another_problem_are_refused(other, message):
    for name in ("valid", "test"):
        with pytest.raises(ValueError, match=f"The {name} set does not fit the data that are trained on: {message}"):
            make_sets(make(), 0.05, **{name: make(8, 1, **other)})


def test_a_set_that_is_no_data_is_refused():
    with pytest.raises(ValueError, match=r"test is ndarray; expected trajectories\. Make them with vcnef\.open"):
        make_sets(make(), 0.05, test=np.zeros(3))


def test_what_is_in_two_sets_is_said():
    data = make()
    begun = make(4, 2)
    begun.u[:3, 0] = data.split("train").u[:3, 0]
    for name in ("valid", "test"):
        (said,) = make_sets(data, 0.05, **{name: begun}).doubts
        assert said.startswith(f"3 of the 4 trajectories of the {name} set have initial states that are trained on too")
    valid = make(4, 3)
    (said,) = make_sets(data, 0.05, valid=valid, test=valid).doubts
    assert "4 of the 4 trajectories of the test set have initial states that are used to choose the weights too" in said


def test_what_is_in_a_given_set_is_left_out_of_the_data():
    data = make()
    test = data.split("test")
    sets = make_sets(data, 0.05, data.split("valid"), test)
    assert not sets.doubts
    assert sets.describe().endswith(", 6 of the data left out, which are in these sets")
    assert torch.equal(sets.train.u, data.split("train").u)
    assert make_sets(data, 0.05, test=test).describe() == (
        "34 to learn from, 2 to choose the weights, 4 left for the test (a set of its own), 4 of the data left out, "
        "which are in these sets; drawn at random"
    )
    with pytest.raises(
        ValueError, match=r"The 2 trajectories .* were to choose the weights are in the test set\. Give a"
    ):
        make_sets(data, 0.05, test=replace(data.split("valid", valid=0.3), subset=None))
    with pytest.raises(ValueError, match=r"All 40 trajectories of the data are in the sets given beside\. Give others"):
        make_sets(data, 0.05, data.select(torch.arange(20)), data.select(torch.arange(20, 40)))


def test_other_parameters_are_said():
    (said,) = make_sets(make(), 0.05, test=make(8, 1, nu=(2.0, 3.0))).doubts
    assert said.startswith("8 of 8 trajectories of the test set have nu outside of the 0.1")
    nu = {"nu": np.linspace(0.1, 1.0, 100)}
    ordered = replace(make(100, params=nu), split_in_order=True)
    said = [each[: each.index(" set")] for each in make_sets(ordered, 0.05).doubts]
    assert said == ["5 of 5 trajectories of the valid", "10 of 10 trajectories of the test"]
    assert not make_sets(replace(ordered, split_in_order=False), 0.05).doubts


def test_streamed_data_make_the_same_sets(tmp_path):
    data, valid = make(), make(8, 1)
    stored = [open_data(each.save(tmp_path / f"{len(each)}.hdf5"), stream=True) for each in (data, valid)]
    sets, streamed = make_sets(data, 0.05, valid), make_sets(stored[0], 0.05, stored[1])
    assert torch.equal(streamed.train.load().u, sets.train.u)
    assert streamed.provenance() == sets.provenance()
