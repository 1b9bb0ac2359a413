"""Data that do not fit the model are named, with both sides."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from vcnef.data import from_arrays, generate
from vcnef.evaluation import evaluate
from vcnef.surrogate import Surrogate
from vcnef.workflow import load


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
    missing = r"expects the parameters rate, force; the data have rate, so force is missing\. .*, --param force=VALUE\."
    with pytest.raises(ValueError, match=missing):
        evaluate(surrogate, data)


def test_data_of_another_kind_are_judged_with_a_note(make_data, make_surrogate):
    data = replace(make_data(), attributes={"generation": "2022", "seed": 1})
    surrogate = make_surrogate(data)
    surrogate.provenance["generated"] = {"generation": "2022", "seed": 0}
    nearly = ((0.0, 1.001),)
    assert not evaluate(surrogate, replace(data, problem=replace(data.problem, domain=nearly)), split="test").notes
    elsewhere = replace(data.problem, domain=((-1.0, 1.0),))
    other = replace(data, problem=elsewhere, attributes={"generation": "documented", "seed": 0})
    assert evaluate(surrogate, other, split="test").notes == (
        "The generation of these data is documented, that of training was 2022: the model was not made for them.",
        "The domain of these data is (-1, 1), that of training was (0, 1): the model was not made for them.",
    )


def test_times_that_nobody_gave_are_doubted_where_they_are_others_than_in_training(make_data, make_surrogate):
    data = make_data()
    surrogate = make_surrogate(data)
    surrogate.provenance["times"] = data.t.tolist()
    bare = replace(data, attributes={"times": "assumed"})
    assert not evaluate(surrogate, bare, split="test").notes
    longer = replace(bare, t=data.t[:-1] * 1.25, u=bare.u[:, :-1])
    (doubt,) = [note for note in evaluate(surrogate, longer).notes if "say no times" in note]
    assert f"their {len(data.t) - 1} frames are taken to be equally spaced from 0 to" in doubt
    assert f"while the {len(data.t)} of training go to {float(data.t[-1]):g}. Give t of both" in doubt
    told = evaluate(surrogate, replace(longer, attributes={})).notes
    assert not any("say no times" in note for note in told)


def test_a_run_a_folder_or_a_packaged_name_will_do(make_data, make_surrogate, tmp_path):
    data = make_data()
    surrogate = make_surrogate(data)
    assert evaluate(SimpleNamespace(surrogate=surrogate), data).result.value("nrmse") == pytest.approx(0.1, rel=1e-5)
    burgers = generate("burgers", samples=2, params={"nu": 0.01}, resolution=32, frames=3, horizon=0.1, seed=0)
    packaged = load("burgers")
    packaged.save(tmp_path)
    found = [evaluate(each, burgers, split="all", solver=False) for each in (packaged, "burgers", tmp_path)]
    assert len({each.result.value("nrmse") for each in found}) == 1


def test_data_that_are_no_trajectories(make_data, make_surrogate):
    data = make_data()
    surrogate = make_surrogate(data)
    with pytest.raises(ValueError, match=r"to judge on, got ndarray\. Make them of arrays with vcnef\.from_arrays"):
        evaluate(surrogate, data.u.numpy())
    with pytest.raises(ValueError, match=r"got the path 'test\.hdf5'\. Open it with vcnef\.open"):
        evaluate(surrogate, "test.hdf5")
    with pytest.raises(ValueError, match=r"The data have 1 frame, which is the initial state; expected later ones"):
        evaluate(surrogate, replace(data, u=data.u[:, :1], t=data.t[:1]), split="all")


def test_scattered_points_have_no_edges_and_no_waves(make_data, make_surrogate):
    line = make_data(rates=(1.0, 2.0), points=16)
    places = torch.rand(16, 2)
    problem = replace(line.problem, domain=((0.0, 1.0),) * 2)
    data = replace(line, grid=places, problem=problem)
    surrogate = make_surrogate(data, provenance={"resolution": [16], "times": [k / 4 for k in range(5)]})
    found = evaluate(surrogate, data, time=(9,))
    assert {"nrmse", "rmse", "conserved"} < found.result.scores["overall"].keys()
    assert not any(name == "brmse" or name.startswith("frmse") for name in found.result.scores["overall"])
    assert any(note.startswith("Points are scattered: bRMSE and fRMSE") for note in found.notes)
    assert "bRMSE" not in found.table().split("Note:")[0]


@pytest.mark.parametrize("ndim", [1, 3])
def test_uneven_grids_have_no_waves(make_data, make_surrogate, ndim):
    data = make_data(points=8, ndim=ndim)
    surrogate = make_surrogate(data, provenance={"resolution": [8] * ndim, "times": [k / 4 for k in range(5)]})
    even = evaluate(surrogate, data, split="test")
    uneven = evaluate(surrogate, replace(data, grid=data.grid**2), split="test")
    assert set(even.result.scores["overall"]) - set(uneven.result.scores["overall"]) == {
        name for name in even.result.scores["overall"] if name.startswith("frmse")
    }
    assert uneven.notes[0] == "The grid is uneven: fRMSE, which needs the waves of a uniform one, is left out."
    assert not even.notes


def test_another_split(make_data, make_surrogate):
    data = make_data()
    valid = data.split("valid")
    with pytest.raises(ValueError, match="These trajectories are the valid split; expected the test split"):
        evaluate(make_surrogate(data), valid)
    assert evaluate(make_surrogate(data), valid, split="valid").samples == 1


def test_a_folder_that_does_not_tell_the_share_of_validation_had_the_default(make_data, make_surrogate):
    data = make_data(samples=40)
    assert evaluate(make_surrogate(data), data, split="valid").samples == 2
    told = make_surrogate(data, provenance={"valid": 0.3})
    assert evaluate(told, data, split="valid").samples == 12


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


def test_another_equation_and_other_sides_are_noted(make_data, make_surrogate):
    data = make_data()
    surrogate = make_surrogate(replace(data, problem=replace(data.problem, name="burgers")))
    other = replace(data, problem=replace(data.problem, name="advection", periodic=False))
    notes = evaluate(surrogate, other, split="test").notes
    assert (
        "The equation of these data is advection, that of training was burgers: the model was not made for them."
        in notes
    )
    assert (
        "The periodicity of these data is along no axis, that of training was along x: the model was not made for them."
        in notes
    )
    # The names of own data say nothing of their equation.
    mine = replace(data, problem=replace(data.problem, name="mine"))
    assert not [note for note in evaluate(surrogate, mine, split="test").notes if "not made for them" in note]


def test_initial_states_beyond_those_of_training_are_noted():
    x, nu = (np.arange(16) + 0.5) / 16, np.linspace(0.01, 0.1, 20)
    u = np.sin(2 * np.pi * (x + nu[:, None]))[:, None, :, None] * np.linspace(1, 0.5, 5)[:, None, None]
    data = from_arrays(u, t=np.linspace(0, 1, 5), x=x, params={"nu": nu})
    tiny = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
    surrogate = Surrogate.build("vcnef", tiny, data, seed=0)
    said = (
        "u0 has u between -10 and 10; in training it was between -1 and 1. The answer is extrapolated; check the units"
    )
    louder = replace(data, u=data.u * 10)
    for asked, expected in ((data, False), (louder, True)):
        notes = evaluate(surrogate, asked, split="all", batch=7, solver=False).notes
        assert any(note.startswith(said) for note in notes) == expected
