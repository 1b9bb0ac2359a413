"""Data that do not fit the model are named, with both sides."""

from dataclasses import replace

import pytest

from vcnef.evaluation import evaluate


def test_other_channels(make_data, make_surrogate):
    surrogate = make_surrogate(make_data())
    with pytest.raises(ValueError, match="The model expects the channels u; the data have density, vx"):
        evaluate(surrogate, make_data(channels=("density", "vx")))


def test_other_dimension(make_data, make_surrogate):
    surrogate = make_surrogate(make_data())
    with pytest.raises(ValueError, match="The model expects the space axes 1; the data have 2"):
        evaluate(surrogate, make_data(ndim=2, points=8))


def test_a_parameter_that_is_missing(make_data, make_surrogate):
    data = make_data()
    surrogate = make_surrogate(data)
    surrogate.problem = replace(data.problem, parameters=("rate", "force"), ranges={})
    with pytest.raises(
        ValueError, match=r"expects the parameters rate, force; the data have rate, so force is missing"
    ):
        evaluate(surrogate, data)


def test_data_of_another_kind_are_judged_with_a_note(make_data, make_surrogate):
    data = replace(make_data(), attributes={"generation": "2022", "seed": 1})
    surrogate = make_surrogate(data)
    surrogate.provenance["generated"] = {"generation": "2022", "seed": 0}
    nearly = ((0.0, 1.001),)
    assert not evaluate(surrogate, replace(data, problem=replace(data.problem, domain=nearly))).notes
    elsewhere = replace(data.problem, domain=((-1.0, 1.0),))
    other = replace(data, problem=elsewhere, attributes={"generation": "documented", "seed": 0})
    assert evaluate(surrogate, other).notes == (
        "The generation of these data is documented, that of training was 2022: the model was not made for them.",
        "The domain of these data is (-1, 1), that of training was (0, 1): the model was not made for them.",
    )


def test_another_split(make_data, make_surrogate):
    data = make_data()
    valid = data.split("valid")
    with pytest.raises(ValueError, match="These trajectories are the valid split; expected the test split"):
        evaluate(make_surrogate(data), valid)
    assert evaluate(make_surrogate(data), valid, split="valid").samples == 1


def test_batch_must_be_positive(make_data, make_surrogate):
    data = make_data()
    with pytest.raises(ValueError, match="batch is 0; expected at least 1"):
        evaluate(make_surrogate(data), data, batch=0)


def test_parameters_that_the_model_does_not_know_only_group(make_data, make_surrogate):
    data = make_data(rates=(1.0, 2.0))
    surrogate = make_surrogate(data)
    surrogate.problem = replace(data.problem, parameters=(), ranges={})
    found = evaluate(surrogate, data)
    assert [group.seen for group in found.parameters] == [None, None]
