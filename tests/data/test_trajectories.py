"""Trajectories in memory: splits, views, and what they refuse."""

from dataclasses import replace

import jaxtyping
import pytest
import torch

from vcnef.data import Trajectories
from vcnef.data.splits import shuffled, split_rows


def test_of_the_benchmark_the_first_tenth_is_test_next_twentieth_valid_rest_train(make_data):
    data = replace(make_data(samples=100), split_in_order=True)
    parts = {name: data.split(name) for name in ("train", "valid", "test")}
    assert {name: len(part) for name, part in parts.items()} == {"test": 10, "valid": 5, "train": 85}
    assert torch.equal(torch.cat([parts[name].u for name in ("test", "valid", "train")]), data.u)
    assert parts["train"].subset == "train"


def test_one_file_in_order_is_split_without_a_copy(make_data):
    data = replace(make_data(samples=100), split_in_order=True)
    assert data.split("train").u.data_ptr() == data.u[15].data_ptr()


def test_own_data_that_are_sorted_are_judged_where_they_are_trained_on(make_data):
    data = replace(make_data(samples=100), params=torch.linspace(0.1, 1.0, 100)[:, None])
    values = {name: data.split(name).params[:, 0] for name in ("train", "valid", "test")}
    assert {name: len(each) for name, each in values.items()} == {"test": 10, "valid": 5, "train": 85}
    assert torch.equal(torch.cat(list(values.values())).sort().values, data.params[:, 0])
    assert values["test"].min() < 0.25
    assert values["test"].max() > 0.75


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_shuffled_splits_are_the_same_for_ever_and_in_ascending_order(name):
    """Written down: a surrogate has to be judged on what it was not trained on, with later versions too."""
    assert shuffled(12).tolist() == [2, 4, 6, 8, 5, 10, 1, 11, 7, 0, 9, 3]
    rows = split_rows((40, 40), name)
    assert torch.equal(rows, rows.sort().values)
    assert torch.equal(rows[len(rows) // 2 :], rows[: len(rows) // 2] + 40)


def test_fewer_rows_are_shuffled_into_the_same_order():
    more = shuffled(100)
    assert torch.equal(more[more < 30], shuffled(30))


def test_shuffled_rows_are_spread_evenly():
    places = torch.stack([shuffled(samples)[: samples // 10].float().mean() / samples for samples in range(200, 400)])
    assert abs(float(places.mean()) - 0.5) < 0.05


def test_every_file_is_split_by_itself():
    rows = {name: split_rows((20, 40), name, in_order=True).tolist() for name in ("test", "valid", "train")}
    assert rows["test"] == [0, 1, 20, 21, 22, 23]
    assert rows["valid"] == [2, 24, 25]
    assert sorted(row for part in rows.values() for row in part) == list(range(60))
    own = [row for name in ("test", "valid", "train") for row in split_rows((20, 40), name).tolist()]
    assert sorted(own) == list(range(60))


@pytest.mark.parametrize("shares", [{"valid": 0.0, "test": 0.0}, {"valid": 0.0}, {"test": 0.0}])
def test_what_is_held_out_elsewhere_is_trained_on(shares):
    sizes = {"test": 4, "valid": 2} | dict.fromkeys(shares, 0)
    found = {name: len(split_rows((40,), name, **shares)) for name in ("train", "valid", "test")}
    assert found == sizes | {"train": 40 - sum(sizes.values())}
    if "valid" not in shares:
        assert torch.equal(split_rows((40,), "valid", **shares), split_rows((40,), "valid"))


def test_the_benchmark_split_has_no_validation_part():
    assert len(split_rows((10_000,), "train", valid=0.0)) == 9_000
    assert len(split_rows((10_000,), "valid", valid=0.0)) == 0


def test_small_files_still_have_one_of_each():
    for in_order in (True, False):
        rows = [split_rows((3,), name, in_order=in_order).tolist() for name in ("test", "valid", "train")]
        assert sorted(rows) == [[0], [1], [2]]


def test_ranges_follow_the_parameters(make_data):
    data = make_data(samples=4)
    spread = replace(data, params=torch.tensor([[0.001], [0.1], [0.01], [0.01]]))
    assert data.problem.ranges == {"nu": (0.01, 0.01)}
    assert spread.problem.ranges == {"nu": (0.001, 0.1)}
    assert "nu=0.001…0.1" in repr(spread)
    assert "burgers: 4 × 6 times 0…1 × 8 points, u" in repr(spread)


def test_view_thins_times_and_points(make_data):
    data = make_data("cns2d", frames=11)
    seen = data.view(space_stride=4, time_stride=2, horizon=0.6, phase=1)
    assert seen.u.shape == (20, 4, 2, 2, 4)
    assert torch.equal(seen.u, data.u[:, 0:7:2, 1::4, 1::4])
    assert torch.equal(seen.grid, data.grid[1::4, 1::4])
    assert torch.allclose(seen.t, torch.tensor([0.0, 0.2, 0.4, 0.6]))
    assert seen.problem.domain == data.problem.domain


def test_the_papers_compressible_view_is_41_of_101_frames(make_data):
    data = make_data("cns1d", samples=3, frames=101)
    assert len(data.view(time_stride=2, horizon=0.8).t) == 41
    assert len(data.view(horizon=0.81).t) == 82


def test_moving_keeps_everything(make_data):
    data = make_data()
    assert torch.equal(data.to("cpu").u, data.u)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": torch.zeros(5)}, r"t has shape \(5,\); expected \(6,\) beside u"),
        ({"grid": torch.zeros(7, 1)}, r"grid has shape \(7, 1\); expected \(8, 1\)"),
        ({"params": torch.zeros(20, 2)}, r"params has shape \(20, 2\); expected \(20, 1\)"),
        ({"u": torch.zeros(20, 6, 8, 2)}, "u has 2 channels, but 1 are named: u"),
        ({"u": torch.zeros(20, 6, 8)}, r"u has shape \(20, 6, 8\); expected \[samples, times"),
        ({"parts": (3, 4)}, r"parts \(3, 4\) sum to 7; expected the 20 trajectories"),
    ],
)
def test_what_does_not_fit_is_refused(make_data, change, message, monkeypatch):
    data = make_data()
    # The tests' own checks of shapes would speak first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    fields = {name: getattr(data, name) for name in ("u", "t", "grid", "params", "problem")}
    with pytest.raises(ValueError, match=message):
        Trajectories(**(fields | change))


def test_messages_of_splits_and_views(make_data, monkeypatch):
    data = make_data()
    with pytest.raises(ValueError, match="no split 'dev'; expected one of train, valid, test"):
        data.split("dev")
    with pytest.raises(ValueError, match="already the train split"):
        data.split("train").split("test")
    with pytest.raises(ValueError, match=r"2 trajectories cannot be split; at least 3 .* with split='all'"):
        make_data(samples=2).split("test")
    with pytest.raises(ValueError, match=r"1 trajectory cannot be split; at least 3 .* Give more, all of them in one"):
        make_data(samples=1).split("train")
    with pytest.raises(ValueError, match=r"validation share is 0.9"):
        data.split("train", valid=0.9)
    with pytest.raises(ValueError, match="8 points do not divide by space_stride 3"):
        data.view(space_stride=3)
    with pytest.raises(ValueError, match="horizon is 3, but the data end at 1"):
        data.view(horizon=3.0)
    with pytest.raises(ValueError, match="leave only the first frame"):
        data.view(horizon=0.1)
    with pytest.raises(ValueError, match="time_stride is 0"):
        data.view(time_stride=0)
    # The tests' own checks of types would speak first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"space_stride is 2.0; expected a positive whole number"):
        data.view(space_stride=2.0)
    with pytest.raises(ValueError, match="horizon is 'all'; expected a time, or None for the last one"):
        data.view(horizon="all")
    assert len(data.view(horizon=data.t[2]).t) == 3
    with pytest.raises(ValueError, match="phase is 2; expected 0 to 1"):
        data.view(space_stride=2, phase=2)
    with pytest.raises(ValueError, match=r"the suffix is '.txt', expected one of .hdf5"):
        data.save("x.txt")
