"""What must hold for any field: known errors give known numbers, in every dimension and channel count."""

import pytest
import torch

from vcnef import metrics

SIDES = {1: (24,), 2: (8, 10), 3: (4, 6, 5)}
everywhere = pytest.mark.parametrize(("ndim", "channels"), [(d, c) for d in (1, 2, 3) for c in (1, 4)])


def field(ndim, channels, samples=3, times=5, dtype=torch.float32):
    return torch.randn(samples, times, *SIDES[ndim], channels, dtype=dtype) + 0.1


@everywhere
def test_a_uniform_error_is_every_root_mean_square(ndim, channels):
    y = field(ndim, channels, dtype=torch.float64)
    for metric in (metrics.rmse, metrics.brmse, metrics.max_error, metrics.conserved):
        assert metric(y - 0.1, y).item() == pytest.approx(0.1, rel=1e-12)
        assert metric(y - 0.1, y, keep="b t c").shape == (3, 4, channels)


@pytest.mark.parametrize("channels", [1, 4, 5])
def test_the_benchmarks_3d_boundary_error_grows_with_the_channels(channels):
    y = field(3, channels, dtype=torch.float64)
    assert metrics.brmse_pdebench_3d(y + 0.1, y).item() == pytest.approx(0.1 * channels**0.5, rel=1e-12)
    assert metrics.brmse_pdebench_3d(y + 0.1, y, keep="b t").shape == (3, 4)


@everywhere
def test_a_scaled_target_is_off_by_the_scale(ndim, channels):
    y = field(ndim, channels, dtype=torch.float64)
    for metric in (metrics.nrmse, metrics.relative_l2):
        assert metric(0.75 * y, y).item() == pytest.approx(0.25, rel=1e-12)
        assert metric(torch.zeros_like(y), y).item() == pytest.approx(1.0, rel=1e-12)
        assert metric(0.75 * y, y, keep="c").tolist() == pytest.approx([0.25] * channels, rel=1e-12)
    assert metrics.relative_l2(0.75 * y, y, joint_channels=True, keep="b").tolist() == pytest.approx([0.25] * 3)
    assert metrics.correlation(0.75 * y - 2, y).item() == pytest.approx(1.0, rel=1e-12)


@everywhere
def test_a_perfect_prediction_scores_zero(ndim, channels):
    y = field(ndim, channels)
    scores = metrics.Scores()
    scores.update(y, y)
    overall = scores.compute()["overall"]
    assert overall.pop("correlation") == pytest.approx(1.0)
    assert set(overall.values()) == {0.0}


@everywhere
def test_an_error_without_mean_conserves(ndim, channels):
    y, e = field(ndim, channels), field(ndim, channels)
    space = tuple(range(2, 2 + ndim))
    pred = y.double() + e - e.double().mean(space, keepdim=True)
    assert metrics.conserved(pred, y.double()).item() < 1e-15
    assert metrics.rmse(pred, y.double()) > 0.5


@everywhere
def test_the_largest_error_is_found_anywhere(ndim, channels):
    y = field(ndim, channels, dtype=torch.float64)
    pred = y + 0.01
    pred[1, 2, ..., -1].view(-1)[7] -= 3.0
    assert metrics.max_error(pred, y).item() == pytest.approx(2.99)
    expected = torch.full((4, channels), 0.01, dtype=torch.float64)
    expected[1, -1] = 2.99
    torch.testing.assert_close(metrics.max_error(pred, y, keep="t c"), expected)


@everywhere
def test_the_spectrum_holds_all_energy(ndim, channels):
    u = field(ndim, channels, dtype=torch.float64)
    energy = metrics.energy_spectrum(u).sum(dim=2)
    torch.testing.assert_close(energy, u.square().flatten(2, -2).mean(dim=2))


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_single_wave_lies_in_its_shell_and_band(ndim):
    x = (torch.arange(32, dtype=torch.float64) + 0.5) / 32
    wave = torch.cos(2 * torch.pi * 5 * x).view(1, 1, 32, *(ndim - 1) * [1], 1).expand(1, 1, *ndim * [32], 1)
    spectrum = metrics.energy_spectrum(wave)[0, 0, :, 0]
    expected = torch.zeros_like(spectrum)
    expected[5] = 0.5
    torch.testing.assert_close(spectrum, expected)
    error = metrics.frmse(wave, torch.zeros_like(wave), initial_frames=0)
    assert error["mid"].item() == pytest.approx(0.5 / 8)
    assert error["low"] < 1e-15
    assert error["high"] < 1e-15


def test_one_sided_spectra_miss_oblique_waves_and_full_ones_do_not():
    x = torch.arange(16, dtype=torch.float64) / 16
    oblique = torch.cos(2 * torch.pi * (3 * x[:, None] - 2 * x)).view(1, 1, 16, 16, 1)
    assert metrics.energy_spectrum(oblique)[0, 0, 3, 0].item() == pytest.approx(0.5)
    assert metrics.energy_spectrum(oblique, one_sided=True).sum() < 1e-20


def test_bands_that_the_grid_cannot_hold_are_left_out():
    y = torch.randn(2, 3, 16, 16, 1)
    assert list(metrics.frmse(y + 1, y)) == ["low", "mid"]
    assert list(metrics.frmse(y[:, :, :, :4] + 1, y[:, :, :, :4])) == ["low"]


def test_given_frames_are_not_judged():
    y = field(2, 2)
    pred = y + 0.1
    pred[:, 0] = torch.nan
    assert metrics.rmse(pred, y).item() == pytest.approx(0.1, rel=1e-5)
    assert metrics.rmse(pred, y, initial_frames=0).isnan()
    assert metrics.rmse(pred, y, initial_frames=3, keep="t").shape == (2,)
    torch.testing.assert_close(metrics.nrmse(pred, y), metrics.nrmse(pred[:, 1:], y[:, 1:], initial_frames=0))


def test_the_time_of_correlation_ends_with_the_first_break():
    y = torch.randn(2, 6, 64, 1, dtype=torch.float64)
    t = torch.tensor([1.0, 1.5, 2.0, 3.0, 5.0, 9.0])
    pred = y.clone()
    pred[0, 3] *= -1  # good up to t = 2, and good again later
    assert metrics.correlation_time(pred, y, t, keep="b").tolist() == [1.0, 8.0]
    assert metrics.correlation_time(pred, y, t).item() == 4.5
    assert metrics.correlation_time(-y, y, t).item() == 0.0
    assert metrics.correlation_time(pred, y, t, initial_frames=0, keep="b").tolist() == [2.0, 9.0]
    assert metrics.correlation_time(pred, y, torch.stack([t, 2 * t]), keep="b c").tolist() == [[1.0], [16.0]]
    pred[1, 1] = torch.nan
    assert metrics.correlation_time(pred, y, t, keep="b").tolist() == [1.0, 0.0]
