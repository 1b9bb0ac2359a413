"""Energy spectra: the definition, and what is drawn of it."""

import io

import numpy as np
import pytest
import torch

from vcnef import plots
from vcnef.metrics.spectral import energy_spectrum

T = np.linspace(0.0, 1.0, 5)


def fields(*sides, samples=3, seed=0):
    return np.random.default_rng(seed).normal(size=(samples, len(T), *sides))


def draw(figure):
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure


@pytest.mark.parametrize("sides", [(16,), (15,), (12, 8), (6, 8, 10)])
def test_shells_are_those_of_the_metric(sides):
    u = fields(*sides)
    shells = plots.shell_energy(u, len(sides))
    assert shells.shape == (3, 5, min(sides) // 2 + 1)
    metric = energy_spectrum(torch.tensor(u)[..., None])[..., 0].numpy()
    np.testing.assert_allclose(shells, metric[..., : shells.shape[-1]], atol=1e-12)
    np.testing.assert_array_equal(plots.shell_energy(torch.tensor(u, requires_grad=True), len(sides)), shells)


def test_a_wave_has_its_energy_in_its_shell():
    x = (np.arange(16) + 0.5) / 16
    u = 2 * np.cos(2 * np.pi * (3 * x[:, None] + 4 * x[None]))
    energy = plots.shell_energy(u, 2)
    assert energy[5] == pytest.approx(2.0)
    np.testing.assert_allclose(np.delete(energy, 5), 0.0, atol=1e-12)


@pytest.mark.parametrize("sides", [(16,), (8, 8), (8, 8, 8)])
def test_a_panel_for_each_time_and_a_curve_for_each_model(sides):
    u = fields(*sides)
    figure = draw(plots.spectra(u, {"vcnef": 2 * u, "fno": 3 * u}, T, channel="density", title="All"))
    assert [axis.get_title() for axis in figure.axes] == ["t = 0", "t = 0.5", "t = 1"]
    mean = plots.shell_energy(u, len(sides)).mean(axis=0)
    for axis, frame in zip(figure.axes, (0, 2, 4), strict=True):
        assert (axis.get_xscale(), axis.get_yscale(), axis.get_xlabel()) == ("log", "log", "wave number k")
        for line, factor in zip(axis.get_lines(), (1, 4, 9), strict=True):
            assert line.get_xdata().tolist() == list(range(1, sides[0] // 2 + 1))
            np.testing.assert_allclose(line.get_ydata(), factor * mean[frame, 1:])
    first = figure.axes[0]
    assert first.get_ylabel() == "energy E(k) of density"
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["truth", "vcnef", "fno"]
    assert first.get_ylim() == figure.axes[2].get_ylim()
    assert figure.get_suptitle() == "All"


def test_one_prediction_and_chosen_times():
    u = fields(16)
    figure = draw(plots.spectra(torch.tensor(u), torch.tensor(u), T, times=[0.26]))
    assert [axis.get_title() for axis in figure.axes] == ["t = 0.25"]
    assert figure.axes[0].get_legend().get_texts()[1].get_text() == "prediction"


def test_what_is_not_finite_is_left_out_and_counted():
    u = fields(16)
    some, none = u.copy(), np.full_like(u, np.inf)
    some[1, 2:] = np.nan
    axis = draw(plots.spectra(u, {"some": some, "none": none}, T)).axes[0]
    names = [text.get_text() for text in axis.get_legend().get_texts()]
    assert names == ["truth", "some (1 of 3 not finite)", "none (3 of 3 not finite)"]
    expected = plots.shell_energy(u[[0, 2], 0], 1).mean(axis=0)[1:]
    np.testing.assert_allclose(axis.get_lines()[1].get_ydata(), expected)
    assert np.isnan(axis.get_lines()[2].get_ydata()).all()


def test_a_shell_without_energy_is_a_gap():
    axis = draw(plots.spectra(np.ones((1, 5, 8)), fields(8, samples=1), T)).axes[0]
    truth = axis.get_lines()[0]
    assert np.isnan(truth.get_ydata()).all()
    assert truth.get_marker() == ".", "a shell alone between gaps has no line"


def test_all_panels_have_room_for_every_curve():
    u = fields(16)
    growing = u * np.array([1.0, 10.0, 1e3, 1e-1, 1e-4])[:, None]
    for axis in draw(plots.spectra(u, growing, T)).axes:
        low, high = axis.get_ylim()
        assert all(low < line.get_ydata().min() and line.get_ydata().max() < high for line in axis.get_lines())


@pytest.mark.parametrize(("points", "labels"), [(12, "1 2 3 4 5 6"), (64, "1 10")])
def test_wave_numbers_are_whole(points, labels):
    axis = draw(plots.spectra(fields(points), fields(points), T)).axes[0]
    low, high = axis.get_xlim()
    ticks = [tick for minor in (False, True) for tick in axis.xaxis.get_ticklabels(minor=minor)]
    shown = sorted({int(tick.get_text()) for tick in ticks if tick.get_text() and low < tick.get_position()[0] < high})
    assert shown == [int(each) for each in labels.split()]


@pytest.mark.filterwarnings("error")
def test_fields_at_rest_have_empty_panels():
    axis = draw(plots.spectra(np.zeros((2, 5, 8)), np.zeros((2, 5, 8)), T)).axes[2]
    assert np.isnan(axis.get_lines()[0].get_ydata()).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda u: plots.spectra(u[0], u, T), r"truth has shape \(5, 16\); expected the axes \[n t x y z\]"),
        (lambda u: plots.spectra(u, {}, T), "There is no curve to draw"),
        (lambda u: plots.spectra(u, {"a": u[1:]}, T), r"truth \(3, 5, 16\) and prediction a \(2, 5, 16\); expected"),
        (lambda u: plots.spectra(u, u, T[1:]), "t has 4 values; expected 5"),
        (lambda u: plots.spectra(u, u, T, times=[2.0]), r"times are \[2.0\]; expected some between 0 and 1"),
        (lambda u: plots.spectra(u[..., :1], u, T), r"shape \(3, 5, 1\); expected at least one sample and two points"),
        (lambda u: plots.shell_energy(u, 4), r"ndim is 4 for a field of shape \(3, 5, 16\); expected 1 to 3"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(fields(16))
