"""Every formula against a slow version in plain loops that shares no code with it."""

import itertools
import math

import numpy as np
import pytest
import torch

from vcnef import metrics
from vcnef.metrics import table

SIDES = {1: (26,), 2: (26, 28), 3: (6, 8, 10)}
FRAMES = {1: (3, 4, 2), 2: (2, 3, 2), 3: (2, 3, 2)}
in_each_dimension = pytest.mark.parametrize("ndim", [1, 2, 3])


def fields(ndim):
    samples, times, channels = FRAMES[ndim]
    target = torch.randn(samples, times, *SIDES[ndim], channels, dtype=torch.float64)
    return target + 0.3 * torch.randn_like(target), target


def slow(formula, pred, target):
    """formula(p, y) of each sample, predicted time and channel, in a loop over them; [b t c]."""
    p, y = pred.numpy(), target.numpy()
    samples, times, channels = p.shape[0], p.shape[1], p.shape[-1]
    rows = [
        [[formula(p[b, t, ..., c], y[b, t, ..., c]) for c in range(channels)] for t in range(1, times)]
        for b in range(samples)
    ]
    return torch.tensor(np.array(rows))


def every(field):
    return itertools.product(*(range(n) for n in field.shape))


def slow_rmse(p, y):
    return math.sqrt(sum((p[i] - y[i]) ** 2 for i in every(p)) / p.size)


def slow_nrmse(p, y):
    return math.sqrt(sum((p[i] - y[i]) ** 2 for i in every(p)) / sum(y[i] ** 2 for i in every(p)))


def slow_conserved(p, y):
    return abs(sum(p[i] for i in every(p)) - sum(y[i] for i in every(p))) / p.size


def slow_max(p, y):
    return max(abs(p[i] - y[i]) for i in every(p))


def slow_boundary_mean_square(p, y):
    total, points = 0.0, 0
    for i in every(p):
        faces = sum((k == 0) + (k == n - 1) for k, n in zip(i, p.shape, strict=True))
        total += faces * (p[i] - y[i]) ** 2
        points += faces
    return total / points


def slow_brmse(p, y):
    return math.sqrt(slow_boundary_mean_square(p, y))


def slow_correlation(p, y):
    return np.corrcoef(p.ravel(), y.ravel())[0, 1]


def slow_energies(e):
    """Energies of the benchmark's shells: no negative wave numbers, shells below half of the smallest side."""
    extra = 1 if e.ndim == 1 else 0
    transform = np.fft.fftn(e) / e.size
    energies = np.zeros(min(e.shape) // 2 + extra)
    for i in itertools.product(*(range(n // 2 + extra) for n in e.shape)):
        shell = math.floor(math.sqrt(sum(k * k for k in i)))
        if shell < len(energies):
            energies[shell] += abs(transform[i]) ** 2
    return energies


def slow_spectrum(u):
    energies = {}
    transform = np.fft.fftn(u) / u.size
    for i in every(u):
        shell = math.floor(math.sqrt(sum(min(k, n - k) ** 2 for k, n in zip(i, u.shape, strict=True))))
        energies[shell] = energies.get(shell, 0.0) + abs(transform[i]) ** 2
    return [energies[k] for k in range(max(energies) + 1)]


@in_each_dimension
@pytest.mark.parametrize(
    ("metric", "formula"),
    [
        (metrics.rmse, slow_rmse),
        (metrics.nrmse, slow_nrmse),
        (metrics.conserved, slow_conserved),
        (metrics.max_error, slow_max),
        (metrics.brmse, slow_brmse),
        (metrics.correlation, slow_correlation),
    ],
    ids=lambda function: function.__name__,
)
def test_formula(metric, formula, ndim):
    pred, target = fields(ndim)
    expected = slow(formula, pred, target)
    torch.testing.assert_close(metric(pred, target, keep="b t c"), expected)
    average = torch.amax if metric is metrics.max_error else torch.mean
    for keep, axes in {"": (0, 1, 2), "t": (0, 2), "c": (0, 1), "b": (1, 2), "t c": (0,)}.items():
        torch.testing.assert_close(metric(pred, target, keep=keep), average(expected, axes))


@in_each_dimension
@pytest.mark.parametrize("joint_channels", [False, True])
def test_relative_l2(ndim, joint_channels):
    pred, target = (field.numpy() for field in fields(ndim))
    samples, _, channels = FRAMES[ndim]
    groups = [slice(None)] if joint_channels else range(channels)
    values = [
        np.linalg.norm((pred[b, 1:] - target[b, 1:])[..., c].ravel()) / np.linalg.norm(target[b, 1:, ..., c].ravel())
        for b in range(samples)
        for c in groups
    ]
    value = metrics.relative_l2(torch.tensor(pred), torch.tensor(target), joint_channels=joint_channels)
    assert value.item() == pytest.approx(np.mean(values))


def test_brmse_pdebench_3d():
    pred, target = fields(3)
    expected = slow(slow_boundary_mean_square, pred, target).sum(dim=-1).sqrt()
    torch.testing.assert_close(metrics.brmse_pdebench_3d(pred, target, keep="b t"), expected)


@in_each_dimension
def test_frmse(ndim):
    pred, target = fields(ndim)
    errors = metrics.frmse(pred, target, keep="b t c")
    assert list(errors) == ["low", "mid", "high"][: 1 if ndim == 3 else 3]
    for (name, error), band in zip(errors.items(), (slice(0, 4), slice(4, 12), slice(12, None)), strict=False):
        expected = slow(lambda p, y, band=band: np.sqrt(slow_energies(p - y)[band]).mean(), pred, target)
        torch.testing.assert_close(error, expected, msg=name)
        torch.testing.assert_close(metrics.frmse(pred, target)[name], expected.mean())


@in_each_dimension
def test_energy_spectrum(ndim):
    pred, target = fields(ndim)
    spectrum = metrics.energy_spectrum(pred)
    samples, times, channels = FRAMES[ndim]
    assert spectrum.shape[:2] == (samples, times)
    assert spectrum.shape[-1] == channels
    expected = slow(lambda p, y: slow_spectrum(p), pred, target)
    torch.testing.assert_close(spectrum[:, 1:].movedim(2, -1), expected)


def test_the_benchmarks_definitions_follow_as_documented():
    pred, target = fields(1)
    error = (pred - target)[:, 1:].numpy()
    conserved = np.sqrt((error.sum(axis=2) ** 2).mean(axis=0)).mean() / error.shape[2]
    table = metrics.conserved(pred, target, keep="b t c")
    assert table.square().mean(0).sqrt().mean().item() == pytest.approx(conserved)

    amplitude = np.sqrt((np.abs(np.fft.rfft(error, axis=2)) ** 2).mean(axis=0)) / error.shape[2]
    spectrum = metrics.energy_spectrum(pred - target, one_sided=True)[:, 1:].mean(0).sqrt()
    assert spectrum[:, 4:12].mean().item() == pytest.approx(amplitude[:, 4:12].mean())
    assert spectrum[:, 12:].mean().item() == pytest.approx(amplitude[:, 12:].mean())

    largest = np.abs(error).max(axis=(0, 2)).mean()
    assert metrics.max_error(pred, target, keep="t c").mean().item() == pytest.approx(largest)


def test_correlation_time():
    target = torch.randn(3, 8, 30, 2, dtype=torch.float64)
    pred = target + torch.linspace(0, 1.5, 8).view(1, 8, 1, 1) * torch.randn_like(target)
    t = torch.linspace(0, 2, 8)
    correlations = slow(slow_correlation, pred, target)
    for b, c in itertools.product(range(3), range(2)):
        lasted = 0.0
        for rho, time in zip(correlations[b, :, c], t[1:], strict=True):
            if rho < 0.8:
                break
            lasted = time.item()
        value = metrics.correlation_time(pred[b : b + 1, ..., c : c + 1], target[b : b + 1, ..., c : c + 1], t)
        assert value.item() == pytest.approx(lasted)


@in_each_dimension
def test_working_in_portions_changes_nothing(ndim, monkeypatch):
    pred, target = fields(ndim)
    whole = [metrics.nrmse(pred, target, keep="b t c"), metrics.energy_spectrum(pred), metrics.rmse(pred, target)]
    for portion in (1, 2 * pred[0, 0].numel(), pred[:2].numel()):
        monkeypatch.setattr(table, "CHUNK", portion)
        parts = [metrics.nrmse(pred, target, keep="b t c"), metrics.energy_spectrum(pred), metrics.rmse(pred, target)]
        torch.testing.assert_close(parts, whole, rtol=1e-14, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sums_run_in_double_precision(dtype):
    target = (torch.rand(1, 2, 4096, 1) + 100).to(dtype)
    pred = target * 1.25
    for metric in (metrics.rmse, metrics.nrmse, metrics.conserved, metrics.brmse):
        value = metric(pred, target)
        assert value.dtype == torch.float64
        assert value.item() == metric(pred.double(), target.double()).item()
