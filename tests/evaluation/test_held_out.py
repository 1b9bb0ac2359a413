"""A model is judged on what it has not seen: known again by fingerprints, and never silently otherwise."""

from dataclasses import replace

import pytest
import torch

from vcnef.data import open as open_data
from vcnef.data.fingerprints import Fingerprints
from vcnef.data.sets import make_sets
from vcnef.evaluation import evaluate
from vcnef.evaluation.held_out import choose_judged


def trained_on(make_surrogate, data, share=0.05, **given):
    sets = make_sets(data, share, **given)
    surrogate = make_surrogate(data)
    surrogate.provenance |= sets.provenance()
    return surrogate


@pytest.fixture
def data(make_data):
    return make_data(samples=40, points=16, frames=9)


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("view", [{}, {"time_stride": 2}, {"horizon": 0.5}, {"space_stride": 2}])
def test_data_that_were_trained_on_are_judged_on_their_test_split(make_surrogate, data, in_order, view):
    data = replace(data, split_in_order=in_order)
    surrogate = trained_on(make_surrogate, data)
    judged = choose_judged(surrogate, data.view(**view))
    assert (judged.split, judged.notes) == ("test", ())
    assert torch.equal(judged.data.u, data.view(**view).split("test").u)
    assert torch.equal(judged.training.u, data.view(**view).split("train").u)


def test_data_of_which_none_was_trained_on_are_judged_whole(make_surrogate, make_data, data):
    surrogate = trained_on(make_surrogate, data)
    fresh = make_data(samples=10, points=16)
    found = evaluate(surrogate, fresh)
    assert (found.samples, found.split) == (10, "all")
    assert found.notes == ("None of these 10 trajectories was trained on, so all of them are judged.",)
    assert found.table().startswith("fake on decay, all split: 10 trajectories")
    assert evaluate(surrogate, make_data(samples=1, points=16)).samples == 1
    assert evaluate(surrogate, fresh, split="test").samples == 1
    assert evaluate(surrogate, fresh, split="valid").samples == 1
    assert evaluate(surrogate, fresh, split="train").samples == 8


def test_files_that_are_streamed_are_known_again(make_surrogate, make_data, data, tmp_path):
    surrogate = trained_on(make_surrogate, data)
    for name, given, samples in (("old", data, 4), ("new", make_data(samples=10, points=16), 10)):
        stored = open_data(given.save(tmp_path / f"{name}.hdf5"), stream=True)
        assert evaluate(surrogate, stored).samples == samples


def grow(data, more):
    u, params = torch.cat([data.u, more.u]), torch.cat([data.params, more.params])
    return replace(data, u=u, params=params, parts=(len(u),))


def test_a_file_that_has_grown_has_a_test_split_without_what_was_seen(make_surrogate, make_data, data):
    surrogate = trained_on(make_surrogate, data)
    judged = choose_judged(surrogate, grow(data, make_data(samples=60, points=16)))
    assert (len(judged.data), judged.notes) == (10, ())
    known = surrogate.provenance["seen"]
    assert not Fingerprints.from_dict(known).among(judged.data).any()


def test_a_test_split_that_was_seen_is_not_judged(make_surrogate, make_data, data):
    """The first tenth of a longer file is more than it was, with trajectories that were trained on."""
    data = replace(data, split_in_order=True)
    surrogate = trained_on(make_surrogate, data)
    more = make_data(samples=60, points=16)
    for split in (None, "test"):
        judged = choose_judged(surrogate, grow(data, more), split)
        assert judged.split == "test"
        assert torch.equal(judged.data.u, torch.cat([data.u[:4], more.u]))
        (note,) = judged.notes
        assert note.startswith(
            "36 of the 100 trajectories were trained on, or chose the weights: errors on them are to"
        )
        assert note.endswith("Only the 64 others are judged.")


def test_data_without_anything_new_are_refused(make_surrogate, data):
    surrogate = trained_on(make_surrogate, data)
    train = replace(data.split("train"), subset=None)
    with pytest.raises(ValueError, match=r"All 34 trajectories of these data were trained on, .* or say split='all'"):
        evaluate(surrogate, train)
    assert evaluate(surrogate, train, split="all").samples == 34


def test_a_model_with_a_test_set_of_its_own(make_surrogate, make_data, data):
    test = make_data(samples=6, points=16)
    surrogate = trained_on(make_surrogate, data, test=test)
    assert evaluate(surrogate, test).samples == 6
    with pytest.raises(ValueError, match="All 40 trajectories of these data were trained on"):
        evaluate(surrogate, data)
    with pytest.raises(ValueError, match=r"with a valid set of its own\. Give that set, and split='all'"):
        evaluate(trained_on(make_surrogate, data, valid=test), data, split="valid")
    assert evaluate(surrogate, data, split="train").samples == 38


def test_a_model_of_splits_that_were_made_before_knows_them_again(make_surrogate, data):
    """Whatever the shares were by which they were made."""
    train, valid, test = (data.split(name, valid=0.3) for name in ("train", "valid", "test"))
    surrogate = trained_on(make_surrogate, train, valid=valid, test=test)
    judged = choose_judged(surrogate, data)
    assert torch.equal(judged.data.u, test.u)
    assert "Only the 4 others are judged." in judged.notes[0]
    inside = Fingerprints.from_dict(surrogate.provenance["seen"]).among(choose_judged(surrogate, data, "train").data)
    assert inside.all()


def test_all_of_what_was_seen_is_judged_with_a_note(make_surrogate, data):
    surrogate = trained_on(make_surrogate, data)
    (note,) = evaluate(surrogate, data, split="all").notes
    assert note == "36 of the 40 trajectories were trained on, or chose the weights: errors on them are too small."
    assert evaluate(surrogate, data.split("test")).notes == ()
    assert evaluate(surrogate, data.split("train"), split="train").notes == ()
    other = replace(data, split_in_order=not data.split_in_order).split("test")
    assert "trajectories were trained on" in evaluate(surrogate, other).notes[0]


def test_data_that_cannot_be_compared_are_judged_on_their_test_split_with_a_note(make_surrogate, make_data, data):
    surrogate = trained_on(make_surrogate, data)
    moved = replace(data, grid=data.grid + 0.01)
    judged = choose_judged(surrogate, moved)
    assert torch.equal(judged.data.u, data.split("test").u)
    (note,) = judged.notes
    assert note.startswith(
        "The data lack points or times by which the model knows what it was trained on again: judged"
    )
    assert choose_judged(surrogate, moved, "test").notes == ()
    own = trained_on(make_surrogate, data, test=make_data(samples=6, points=16))
    with pytest.raises(
        ValueError, match=r"The data lack points or times .* say split='all' if it has seen none of them"
    ):
        evaluate(own, moved)
    assert evaluate(own, moved, split="all").samples == 40


def test_folders_of_earlier_versions_are_judged_in_the_order_of_the_data(make_surrogate, data):
    """They were trained so, and do not say on which trajectories."""
    judged = choose_judged(make_surrogate(data), data)
    assert torch.equal(judged.data.u, data.u[:4])
    assert judged.notes == (
        "The model does not say which trajectories it was trained on: judged on 4 of 40, their test split. If it has "
        "seen none of them, judge all with split='all', or --split all.",
    )
    assert torch.equal(choose_judged(make_surrogate(data), data, "valid").data.u, data.u[4:6])


def test_frames_beyond_the_horizon_of_training_are_said(make_surrogate, make_data):
    data = make_data(samples=10, points=16, frames=17)
    surrogate = make_surrogate(data, provenance={"resolution": [16], "times": [0.0, 0.25, 0.5]}, horizon=0.5)
    said = "8 of the 17 frames lie beyond the horizon 0.5 of training and are not judged. horizon=2, or --horizon 2, "
    assert said + "judges them too." in evaluate(surrogate, data).notes
    assert not any("beyond the horizon" in note for note in evaluate(surrogate, data, horizon=2).notes)
    assert not any("beyond the horizon" in note for note in evaluate(surrogate, data.view(horizon=0.5)).notes)
