"""Evaluation against a surrogate whose errors are known exactly."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from vcnef.evaluation import evaluate, predict_trajectories


def test_metrics_at_the_resolution_and_times_of_training(make_data, make_surrogate):
    data = make_data(samples=30)
    found = evaluate(make_surrogate(data), data, split="test")
    assert (found.samples, found.split, found.model, found.problem) == (3, "test", "fake", "decay")
    assert (found.result.resolution, found.result.frames) == ((16,), 5)
    assert found.result.t == (0.25, 0.5, 0.75, 1.0)
    assert found.result.trained
    assert found.result.value("nrmse") == pytest.approx(0.1, rel=1e-5)
    assert found.result.scores["over_time"]["nrmse"] == pytest.approx([0.1] * 4, rel=1e-5)
    np.testing.assert_allclose(found.nrmse, 0.1, rtol=1e-5)
    assert found.notes == ()


def test_between_which_errors_most_trajectories_lie(make_data, make_surrogate):
    data = make_data(rates=[0.1 * k for k in range(1, 12)], samples=1)
    surrogate = make_surrogate(data, provenance={}, error=0.0)
    exact = surrogate.answer
    surrogate.answer = lambda u0, grid, t, params: exact(u0, grid, t, params) * (1 + params[..., None, None])
    result = evaluate(surrogate, data, split="all").result
    assert result.band["low"] == pytest.approx([0.2] * 8, rel=1e-4)
    assert result.band["high"] == pytest.approx([1.0] * 8, rel=1e-4)
    # A prediction that is not finite is worse than all others; two of eleven are more than a tenth.
    surrogate.answer = lambda u0, grid, t, params: exact(u0, grid, t, params) / (params[..., None, None] > 0.25)
    found = evaluate(surrogate, data, split="all")
    assert found.result.band["low"] == pytest.approx([0.0] * 8, abs=1e-6)
    assert found.to_dict()["result"]["band"]["high"] == [None] * 8


def test_every_channel_has_its_numbers(make_data, make_surrogate):
    data = make_data(channels=("density", "vx"), ndim=2, points=8, frames=5)
    found = evaluate(make_surrogate(data, provenance={}), data, split="all")
    assert found.samples == 10
    assert len(found.result.scores["per_channel"]["nrmse"]) == 2
    assert found.sections()[0].header == ("metric", "all", "density", "vx")


def test_errors_beyond_the_horizon_stand_by_horizons(make_data, make_surrogate):
    data = make_data(samples=30, frames=17)
    times = {"resolution": [16], "times": [0.0, 0.125, 0.25]}
    surrogate = make_surrogate(data, provenance=times, horizon=0.25)
    exact = surrogate.answer
    surrogate.answer = lambda u0, grid, t, params: exact(u0, grid, t, params) * (1 + t[:, None, None])
    found = evaluate(surrogate, data, horizon=3)
    assert found.result.t == (0.125, 0.25)
    assert found.beyond.t == (0.125, 0.25, 0.375, 0.5, 0.625, 0.75)
    rows = next(each.rows for each in found.sections() if each.title == "Beyond the horizon of training")
    assert [row[0] for row in rows] == ["1, to t = 0.25", "2, to t = 0.5", "3, to t = 0.75"]
    # (1 + 0.1) (1 + t) − 1, at the end of each and the mean of both frames before it.
    expected = [[1.1 * (1 + t) - 1 for t in (end - 0.0625, end)] for end in (0.25, 0.5, 0.75)]
    assert [[float(cell) for cell in row[1:]] for row in rows] == pytest.approx(np.array(expected), rel=1e-2)
    assert json.dumps(found.to_dict()["beyond"])
    assert evaluate(surrogate, data).beyond is None
    for wrong in (1, 9):
        with pytest.raises(ValueError, match=f"horizon is {wrong} times the 0.25 of training, but the data end at 1"):
            evaluate(surrogate, data, horizon=wrong)


def test_super_resolution_in_space_and_time(make_data, make_surrogate):
    data = make_data()
    surrogate = make_surrogate(data)
    found = evaluate(surrogate, data, space=(64, 16, 32), time=(9,))
    assert [each.resolution for each in found.space] == [(16,), (32,), (64,)]
    assert [each.trained for each in found.space] == [True, False, False]
    assert [each.value("nrmse") for each in found.space] == pytest.approx([0.1, 0.2, 0.4], rel=1e-5)
    assert [each.change["nrmse"] for each in found.space] == pytest.approx([0.0, 1.0, 3.0], rel=1e-5)
    assert [(each.frames, each.resolution) for each in found.time] == [(5, (16,)), (9, (16,))]
    assert found.time[1].change["nrmse"] == pytest.approx(0.0, abs=1e-5)
    assert ((1, 16, 1), 8) in surrogate.calls


def test_batches_and_streams_do_not_matter(make_data, make_surrogate, tmp_path):
    from vcnef.data import open as open_data

    data = make_data(rates=(1.0, 2.0), samples=30, points=16)
    path = data.save(tmp_path / "decay.npz")
    surrogate = make_surrogate(data, trained=(1.0, 2.0))
    whole = evaluate(surrogate, data, split="all")
    parts = evaluate(surrogate, open_data(path, stream=True), split="all", batch=7)
    assert parts.result.scores["overall"] == pytest.approx(whole.result.scores["overall"])
    np.testing.assert_allclose(parts.nrmse, whole.nrmse)


def test_values_seen_and_unseen(make_data, make_surrogate):
    data = make_data(rates=(0.5, 1.0, 2.0))
    found = evaluate(make_surrogate(data, trained=(0.5, 1.0)), data)
    assert [group.values for group in found.parameters] == [{"rate": (r, r)} for r in (0.5, 1.0, 2.0)]
    assert [group.seen for group in found.parameters] == [True, True, False]
    assert [len(group.nrmse) for group in found.parameters] == [1, 1, 1]
    assert "in its range count as seen" in found.notes[-1]
    assert found.params["rate"].tolist() == [0.5, 1.0, 2.0]
    unknown = make_surrogate(data)
    unknown.problem = replace(unknown.problem, ranges={})
    found = evaluate(unknown, data)
    assert [group.seen for group in found.parameters] == [None] * 3
    assert re.search(r"rate=1 +unknown", found.table())


def test_values_below_a_range_of_decades_are_unseen(make_data, make_surrogate):
    data = make_data(rates=(0.0, 1e-9, 1e-8, 0.05, 0.1, 0.2))
    found = evaluate(make_surrogate(data, trained=(1e-8, 0.1)), data)
    assert [group.seen for group in found.parameters] == [False, False, True, True, True, False]


@pytest.mark.parametrize("listed", [[{"rate": 0.5}, {"rate": 2.0}], [[0.5], [2.0]], [0.5, 2.0]])
def test_values_that_the_model_lists(make_data, make_surrogate, listed):
    data = make_data(rates=(0.5, 1.0, 2.0))
    listed = {"parameter_values": listed}
    found = evaluate(make_surrogate(data, trained=(0.5, 2.0), provenance=listed), data)
    assert [group.seen for group in found.parameters] == [True, False, True]
    assert re.search(r"rate=1 +unseen +1 +0\.4000", found.table())


def test_values_drawn_from_a_range_are_two_groups(make_data, make_surrogate):
    data = make_data(rates=tuple(np.linspace(0.1, 3.0, 60)), samples=1)
    found = evaluate(make_surrogate(data, trained=(0.1, 1.0)), data, split="all")
    assert [group.seen for group in found.parameters] == [False, True]
    assert sum(len(group.nrmse) for group in found.parameters) == 60
    assert found.parameters[1].values["rate"] == pytest.approx((0.1, 1.0), abs=0.05)


def test_predictions_that_are_not_finite_are_counted_and_said(make_data, make_surrogate):
    data = make_data(rates=(1.0, 2.0))
    surrogate = make_surrogate(data, trained=(1.0, 2.0))
    exact = surrogate.answer

    def answer(u0, grid, t, params):
        u = exact(u0, grid, t, params)
        u[params[:, 0] == 2.0, -1] = torch.nan
        return u

    surrogate.answer = answer
    found = evaluate(surrogate, data, split="test")
    assert found.result.not_finite == 1
    assert "1 of 2 predictions on 16 points and 5 times are not finite" in found.notes[0]
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["result"]["scores"]["overall"]["nrmse"] is None
    assert record["nrmse"] == [pytest.approx(0.1, rel=1e-5), None]
    assert found.nrmse[1] == np.inf
    assert record["parameters"][0]["scores"]["overall"]["nrmse"] == pytest.approx(0.1, rel=1e-5)
    assert "not finite" in found.table()


def test_targets_that_are_zero_are_said(make_data, make_surrogate):
    data = make_data()
    data.u[0, -1] = 0.0
    found = evaluate(make_surrogate(data), data)
    # Over the floor it has an error like any other frame.
    assert np.isfinite(found.nrmse).all()
    assert any(note.startswith("nrmse_raw on 16 points and 5 times leaves out 1 values") for note in found.notes)


def test_trajectories_at_rest_are_neither_good_nor_bad(make_data, make_surrogate):
    data = make_data(rates=(1.0, 2.0))
    data.u[:15] = 0.0
    found = evaluate(make_surrogate(data), data, split="all")
    np.testing.assert_allclose(found.nrmse, [np.nan] * 15 + [0.1] * 5, rtol=1e-5)
    assert [len(group.nrmse) for group in found.parameters] == [0, 5]
    rows = {table.title: table.rows for table in found.sections()}
    assert rows["Error over time"][0][1:] == ("0.1000",) * 4
    assert [row[3] for row in rows["Parameter values"]] == ["undefined", "0.1000"]
    assert "not finite" not in found.table()
    for end in ("low", "high"):
        assert found.result.band[end] == pytest.approx([0.1] * 4, rel=1e-5)


def test_fields_that_fade_are_said(make_data, make_surrogate):
    """They are off by a tenth of what is left: next to nothing of what they were."""
    data = make_data(rates=(1.0, 40.0))
    found = evaluate(make_surrogate(data, trained=(1.0, 40.0)), data)
    (note,) = (note for note in found.notes if "faded" in note)
    assert note.startswith("In 4 of 8 frames on 16 points and 5 times fields have faded below 0.001 of what they were")
    assert 0.05 < found.result.scores["overall"]["nrmse"] < 0.06
    assert found.result.scores["overall"]["nrmse_raw"] == pytest.approx(0.1, rel=1e-5)
    assert note.endswith("nRMSE divides by no less than that. Without this floor it is 0.1000.")
    assert re.search(r"nRMSE without floor +0\.1000", found.table())
    # The same rule in every other number: of trajectories, over time, of values, and without a model.
    assert found.nrmse[0] == pytest.approx(0.1, rel=1e-5)
    assert found.nrmse[1] < 0.02
    assert found.result.scores["over_time"]["nrmse"][-1] == pytest.approx(0.05, rel=1e-3)
    assert found.parameters[1].scores["overall"]["nrmse"] < 0.02
    assert found.baselines["persistence"] < 1000
    plain = evaluate(make_surrogate(data), make_data())
    assert not any("faded" in note for note in plain.notes)
    assert "without floor" not in plain.table()


def test_predictions_that_diverged_are_not_left_out_where_fields_fade(make_data, make_surrogate):
    data = make_data(rates=(1.0, 40.0))
    surrogate = make_surrogate(data, trained=(1.0, 40.0))
    surrogate.answer = lambda u0, grid, t, params: torch.full((len(u0), len(t), *u0.shape[1:]), torch.nan)
    (note,) = (note for note in evaluate(surrogate, data).notes if "faded" in note)
    assert note.endswith("Without this floor it is not finite.")


def test_the_record_is_json_and_the_table_is_text(make_data, make_surrogate):
    data = make_data(rates=(1.0, 2.0))
    found = evaluate(make_surrogate(data), data, space=(32,), time=(9,))
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["space"][1]["change"]["nrmse"] == pytest.approx(1.0, rel=1e-5)
    assert record["result"]["cost"]["seconds"] > 0
    text = found.table()
    titles = "Error over time", "Super-resolution in space", "Super-resolution in time", "Parameter values"
    for title in ("fake on decay, test split: 2 trajectories, 16 points, 5 times", *titles, "Time per trajectory"):
        assert title in text
    assert "+100.0 %" in text
    assert str(found) == text


def test_progress_is_reported(make_data, make_surrogate):
    seen = []
    data = make_data(samples=5, points=16)
    evaluate(make_surrogate(data), data, split="all", batch=2, progress=lambda *each: seen.append(each))
    assert seen == [("evaluate", 2, 5), ("evaluate", 4, 5), ("evaluate", 5, 5), ("time", 1, 1)]


def test_trajectories_for_figures(make_data, make_surrogate):
    data = make_data()
    selection, truth, prediction = predict_trajectories(make_surrogate(data), data, [3, 1])
    assert truth.shape == prediction.shape == (2, 4, 16, 1)
    torch.testing.assert_close(prediction, 1.1 * truth)
    assert selection.times(data).tolist() == [0.25, 0.5, 0.75, 1.0]
