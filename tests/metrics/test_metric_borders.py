"""Zero and constant targets, non-finite predictions, and what the metrics say about wrong input."""

import jaxtyping
import pytest
import torch

from vcnef import metrics
from vcnef.metrics.errors import floored_nrmse_table, nrmse_table

PAIRS = (metrics.rmse, metrics.nrmse, metrics.relative_l2, metrics.max_error, metrics.conserved, metrics.brmse)


@pytest.fixture
def unchecked(monkeypatch):
    """Annotations are not checked, as for a user of the package."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def with_zero_frames():
    y = torch.rand(3, 5, 8, 2) + 1
    y[0, 1, :, 1] = 0
    y[2, 3, :, 0] = 0
    y[1, 0] = 0  # a given frame, never judged
    return y


def test_zero_frames_are_left_out_and_reported():
    y = with_zero_frames()
    pred = 1.5 * y
    pred[0, 1, :, 1] = 7.0
    with pytest.warns(UserWarning, match=r"nrmse leaves out 2 of 24 values: the target is zero there"):
        assert metrics.nrmse(pred, y).item() == pytest.approx(0.5)
    with pytest.warns(UserWarning, match="leaves out 2"):
        kept = metrics.nrmse(pred, y, keep="b t c")
    where = metrics.zero_norm_frames(y)
    assert where.nonzero().tolist() == [[0, 0, 1], [2, 2, 0]]
    assert torch.equal(kept.isnan(), where)
    assert metrics.zero_norm_frames(y, initial_frames=0).sum() == 4
    assert metrics.relative_l2(1.5 * y, y).item() == pytest.approx(0.5)


def test_frames_of_which_little_is_left():
    y = torch.rand(3, 5, 8, 2) + 1
    y[0, 1:, :, 1] *= 1e-4  # little is left since the initial state
    y[2, 3, :, 0] *= 1e-9
    y[1, 2, :, 0] = 0  # nothing is left, which `zero_norm_frames` says
    faded = metrics.faded_frames(y[:, 1:], y[:, 0])
    assert faded.nonzero().tolist() == [[0, t, 1] for t in range(4)] + [[2, 2, 0]]
    floored = floored_nrmse_table(y[:, 1:] + 1e-3, y[:, 1:], y[:, 0])
    assert floored.defined.all()
    assert 0.5 < floored.values[faded].min() < floored.values[faded].max() < 1
    plain = nrmse_table(y[1:2, 1:] + 1e-3, y[1:2, 1:], 0).values
    torch.testing.assert_close(floored.values[1][[0, 2, 3]], plain[0][[0, 2, 3]])


def test_averages_of_nothing_are_nan():
    y = torch.zeros(2, 3, 8, 1)
    with pytest.warns(UserWarning, match="leaves out 4 of 4"):
        assert metrics.nrmse(y + 1, y).isnan()
    with pytest.warns(UserWarning, match="relative_l2 leaves out 2 of 2"):
        assert metrics.relative_l2(y + 1, y).isnan()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("at_zero_frame", [False, True])
def test_a_non_finite_prediction_is_never_dropped(bad, at_zero_frame):
    y = with_zero_frames()
    if not at_zero_frame:
        y = torch.rand_like(y) + 1
    pred = y + 0.1
    pred[0, 1, 0, 1] = bad
    scores = metrics.Scores()
    scores.update(pred, y)
    for metric in PAIRS:
        if at_zero_frame and metric is metrics.nrmse:
            with pytest.warns(UserWarning, match="leaves out 1 of 24"):
                value = metric(pred, y)
        else:
            value = metric(pred, y)
        assert not value.isfinite(), metric
        assert not scores.value(metric.__name__).isfinite(), metric
        assert scores.value(metric.__name__, keep="c")[0].isfinite(), metric
    assert all(not value.isfinite() for value in metrics.frmse(pred, y).values())
    assert not scores.value("correlation").isfinite()


def test_correlation_with_constant_fields():
    y = torch.randn(2, 4, 8, 2)
    assert metrics.correlation(torch.full_like(y, 0.1), y).item() == 0.0
    assert metrics.correlation(torch.full_like(y, torch.inf), y).isnan()
    y[0, 2, :, 0] = 0.1
    with pytest.warns(UserWarning, match=r"correlation leaves out 1 of 12 values: the target is constant"):
        assert metrics.correlation(2 * y, y).item() == pytest.approx(1.0)
    t = torch.linspace(0, 3, 4)
    assert metrics.correlation_time(y, y, t).item() == 3.0
    y[1, :, :, 1] = 0.1
    with pytest.warns(UserWarning, match="correlation_time leaves out 1 of 4"):
        times = metrics.correlation_time(y, y, t, keep="b c")
    assert times[1, 1].isnan()
    assert times[0].tolist() == [3.0, 3.0]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("metric", [*PAIRS, metrics.frmse, metrics.correlation, metrics.Scores().update])
def test_shapes_that_differ_are_both_named(metric):
    message = r"The prediction has shape \(2, 4, 8, 1\) and the target \(2, 5, 8, 1\)\. Both must have the same axes"
    with pytest.raises(ValueError, match=message):
        metric(torch.ones(2, 4, 8, 1), torch.ones(2, 5, 8, 1))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("metric", [*PAIRS, metrics.frmse, metrics.correlation, metrics.Scores().update])
def test_arrays_are_to_be_tensors(metric):
    u = torch.zeros(2, 3, 8, 1)
    with pytest.raises(TypeError, match=r"The target is of type ndarray; expected a tensor\. Convert it with torch"):
        metric(u, u.numpy())


@pytest.mark.usefixtures("unchecked")
def test_other_messages():
    u = torch.ones(2, 4, 8, 1)
    with pytest.raises(ValueError, match=r"Expected non-empty fields .* got \(4, 8, 1\)\. Add axes"):
        metrics.rmse(u[0], u[0])
    with pytest.raises(ValueError, match=r"got \(0, 4, 8, 1\)"):
        metrics.brmse(u[:0], u[:0])
    with pytest.raises(ValueError, match=r"Of 1 frames, 1 count as given.* Pass initial_frames=0"):
        metrics.nrmse(u[:, :1], u[:, :1])
    with pytest.raises(ValueError, match=r"keep='x' names an axis that is not among 'b t c'"):
        metrics.rmse(u, u, keep="x")
    with pytest.raises(ValueError, match=r"keep='t' names an axis that is not among 'b c'"):
        metrics.relative_l2(u, u, keep="t")
    with pytest.raises(ValueError, match=r"expects three space axes .* got shape \(2, 4, 8, 1\)\. Use brmse"):
        metrics.brmse_pdebench_3d(u, u)
    with pytest.raises(ValueError, match=r"Times of shape \(3,\) do not fit 2 samples of 4 frames"):
        metrics.correlation_time(u, u, torch.ones(3))
    with pytest.raises(TypeError, match=r"The time of the frames is of type ndarray; expected a tensor"):
        metrics.correlation_time(u, u, torch.ones(4).numpy())


@pytest.mark.parametrize("keep", ["t t", ("b", "t")])
def test_axes_to_keep_are_one_string(unchecked, keep):
    u = torch.rand(2, 3, 8, 1)
    with pytest.raises(ValueError, match=r"expected names in one string, each once\. Write them as in keep='b t'\."):
        metrics.rmse(u, u, keep=keep)


def test_space_has_three_axes_at_most(unchecked):
    u = torch.rand(1, 2, 3, 3, 3, 3, 1)
    with pytest.raises(ValueError, match=r"1 to 3 of space, channel; got \(1, 2, 3, 3, 3, 3, 1\)"):
        metrics.brmse(u, u)


def test_the_floored_error_is_the_plain_one_where_nothing_fades():
    y = torch.randn(3, 5, 16, 2) + 0.5
    pred = y + 0.1 * torch.randn_like(y)
    assert torch.equal(metrics.floored_nrmse(pred, y, keep="b t c"), metrics.nrmse(pred, y, keep="b t c"))
    later = {"initial": y[:, 0], "initial_frames": 0}
    assert torch.equal(metrics.floored_nrmse(pred[:, 1:], y[:, 1:], **later), metrics.floored_nrmse(pred, y))
    with pytest.raises(ValueError, match=r"expected the initial state\. Pass initial=u0"):
        metrics.floored_nrmse(pred, y, initial_frames=0)


def test_the_floored_error_of_a_field_that_dies_out():
    y = torch.tensor([1.0, 0.5, 1e-6, 0.0])[None, :, None, None].expand(1, 4, 8, 1)
    error = metrics.floored_nrmse(y + 1e-4, y, keep="t")
    torch.testing.assert_close(error, torch.tensor([2e-4, 0.1, 0.1], dtype=torch.float64), rtol=1e-3, atol=0)
    scores = metrics.Scores(["nrmse"], initial_frames=0)
    scores.update(y[:, 1:3] + 1e-4, y[:, 1:3], y[:, 0])
    overall = scores.compute()["overall"]
    assert overall["nrmse"] == pytest.approx((2e-4 + 0.1) / 2, rel=1e-3)
    assert overall["nrmse_raw"] > 40
