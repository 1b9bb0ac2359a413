"""A test set scored in batches gives the numbers of the whole set."""

import json

import pytest
import torch

from vcnef import metrics

SIDES = {1: (32,), 2: (26, 30), 3: (8, 8, 8)}


def fields(ndim, samples=7):
    target = torch.randn(samples, 4, *SIDES[ndim], 2) + 0.2
    return target + 0.3 * torch.randn_like(target) * torch.rand(samples, 1, *ndim * [1], 2), target


def in_batches(pred, target, size, **options):
    scores = metrics.Scores(**options)
    for p, y in zip(pred.split(size), target.split(size), strict=True):
        scores.update(p, y)
    return scores


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_batches_give_the_whole(ndim, size):
    pred, target = fields(ndim)
    scores = in_batches(pred, target, size)
    report = scores.compute()
    assert report["samples"] == 7
    assert report["left_out"] == {}
    whole = {f"frmse_{band}": value for band, value in metrics.frmse(pred, target, keep="t c").items()}
    for name in ("nrmse", "rmse", "brmse", "conserved", "max_error", "correlation"):
        whole[name] = getattr(metrics, name)(pred, target, keep="t c")
    for name, values in whole.items():
        torch.testing.assert_close(scores.value(name, keep="t c"), values)
        average = torch.amax if name == "max_error" else torch.mean
        assert report["overall"][name] == pytest.approx(average(values, (0, 1)).item(), rel=1e-12)
        assert report["per_channel"][name] == pytest.approx(average(values, (0,)).tolist(), rel=1e-12)
        assert report["over_time"][name] == pytest.approx(average(values, (1,)).tolist(), rel=1e-12)
    assert report["overall"]["relative_l2"] == pytest.approx(metrics.relative_l2(pred, target).item(), rel=1e-12)
    assert report["per_channel"]["relative_l2"] == pytest.approx(metrics.relative_l2(pred, target, keep="c").tolist())
    assert "relative_l2" not in report["over_time"]
    assert ("brmse_pdebench_3d" in report["overall"]) == (ndim == 3)
    assert json.loads(json.dumps(report)) == report


def test_the_3d_variant_is_scored_in_3d():
    pred, target = fields(3)
    report = in_batches(pred, target, 3).compute()
    assert report["overall"]["brmse_pdebench_3d"] == pytest.approx(metrics.brmse_pdebench_3d(pred, target).item())
    assert len(report["over_time"]["brmse_pdebench_3d"]) == 3
    assert "brmse_pdebench_3d" not in report["per_channel"]


def test_zero_frames_weigh_the_same_in_any_batches():
    pred, target = fields(1)
    target[2, 1:3, :, 1] = 0
    scores = in_batches(pred, target, 3, names=["nrmse"])
    with pytest.warns(UserWarning, match="nrmse leaves out 2 of 42 values"):
        report = scores.compute()
    assert report["left_out"] == {"nrmse": 2}
    with pytest.warns(UserWarning, match="leaves out 2"):
        assert report["overall"]["nrmse"] == pytest.approx(metrics.nrmse(pred, target).item(), rel=1e-12)


def test_scores_of_several_processes_merge_and_stay_as_they_were():
    pred, target = fields(2)
    first, second = in_batches(pred[:3], target[:3], 3), in_batches(pred[3:], target[3:], 2)
    before = second.compute()
    total = metrics.Scores()
    for part in (second, first):
        total.merge(part)
    assert second.compute() == before
    whole = in_batches(pred, target, 7).compute()
    merged = total.compute()
    assert merged["samples"] == 7
    assert merged["overall"] == pytest.approx(whole["overall"], rel=1e-12)


def test_chosen_metrics_initial_frames_and_gradients():
    pred, target = fields(1)
    scores = in_batches(pred.requires_grad_(), target, 4, names=("rmse",), initial_frames=0)
    assert list(scores.compute()["overall"]) == ["rmse"]
    assert scores.value("rmse", keep="t").shape == (4,)
    assert not scores.value("rmse").requires_grad
    coarse = metrics.Scores()
    coarse.update(target, target)
    coarse.update(target[:, :, ::2], target[:, :, ::2])
    assert coarse.samples == 14


def test_messages():
    u = torch.rand(2, 4, 8, 1)
    with pytest.raises(ValueError, match=r"There are no metrics \['mse'\]. Choose from .*'nrmse'"):
        metrics.Scores(["mse"])
    scores = metrics.Scores(["rmse"])
    with pytest.raises(ValueError, match="No batch has been scored yet"):
        scores.compute()
    scores.update(u, u)
    with pytest.raises(ValueError, match=r"There is no metric 'nrmse' among \['rmse'\]"):
        scores.value("nrmse")
    with pytest.raises(ValueError, match=r"Earlier batches have shape \(3, 1\) over 't c' and this one \(2, 1\)"):
        scores.update(u[:, 1:], u[:, 1:])
