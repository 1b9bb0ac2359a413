"""Derivatives of any order: exact where a grid resolves the field, of fourth order by differences, walls or none."""

from math import pi

import pytest
import torch

from vcnef.pde.derivatives import FiniteDifference, stencil
from vcnef.pde.fluxes import Spectral

ORDERS = [1, 2, 3, 4, 5]


def wave(x, order, k=2 * pi):
    """The derivative of sin(kx + 0.3)."""
    return k**order * torch.sin(k * x + 0.3 + order * pi / 2)


def line(n):
    return (torch.arange(n, dtype=torch.float64) + 0.5) / n


@pytest.mark.parametrize("n", [32, 33])
@pytest.mark.parametrize("order", ORDERS)
def test_spectral_derivatives_of_sines_are_exact(order, n):
    x = line(n)
    found = Spectral((1 / n,)).derivative(wave(x, 0)[None], 1, order)
    # Rounding of the shortest wave, (π n)ᵐ times 1e-16, is all there is.
    torch.testing.assert_close(found[0], wave(x, order), rtol=0, atol=1e-15 * (pi * n) ** order)


@pytest.mark.parametrize("order", ORDERS)
def test_spectral_derivatives_along_the_second_axis(order):
    x, y = torch.meshgrid(2 * line(8), line(16), indexing="ij")
    found = Spectral((0.25, 1 / 16)).derivative((torch.cos(pi * x) * wave(y, 0))[None], 2, order)
    torch.testing.assert_close(found[0], torch.cos(pi * x) * wave(y, order), rtol=0, atol=1e-15 * (pi * 16) ** order)


def test_the_shortest_wave_has_no_odd_derivative_and_the_right_even_one():
    zigzag = torch.tensor([[1.0, -1.0] * 4], dtype=torch.float64)
    method = Spectral((1 / 8,))
    assert method.derivative(zigzag, 1, 3).abs().max() == 0
    torch.testing.assert_close(method.derivative(zigzag, 1, 2), -((8 * pi) ** 2) * zigzag)
    torch.testing.assert_close(method.derivative(zigzag, 1, 4), (8 * pi) ** 4 * zigzag)


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_finite_differences_are_of_fourth_order(order, periodic):
    """At every point: those beside the walls have one-sided differences of the same order."""
    errors = []
    for n in (64, 128):
        # Between walls the points stand on them, and the field is none that closes on itself.
        k, spacing = (2 * pi, 1 / n) if periodic else (1.7, 1 / (n - 1))
        x = line(n) if periodic else torch.linspace(0, 1, n, dtype=torch.float64)
        found = FiniteDifference((spacing,), periodic).derivative(wave(x, 0, k)[None], 1, order)
        errors.append((found[0] - wave(x, order, k)).abs().max())
    if order < 5 or periodic:  # the fifth between walls is down to rounding
        assert torch.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.35)


@pytest.mark.parametrize("order", ORDERS)
def test_between_walls_polynomials_are_differentiated_exactly(order):
    x = torch.linspace(0, 1, 16, dtype=torch.float64)
    degree = order + 3
    factor = 1.0
    for power in range(degree, degree - order, -1):
        factor *= power
    expected = factor * x ** (degree - order)
    fields = (x**degree).reshape(1, 1, -1).expand(1, 3, -1)
    found = FiniteDifference((1 / 15, 1 / 15), False).derivative(fields, 2, order)
    torch.testing.assert_close(found, expected.expand(1, 3, -1), rtol=0, atol=1e-14 * 15**order * factor)


def test_weights_of_textbooks():
    assert stencil(range(-1, 2), 2) == (1.0, -2.0, 1.0)
    assert stencil(range(-2, 3), 1) == pytest.approx((1 / 12, -8 / 12, 0, 8 / 12, -1 / 12))
    assert stencil(range(5), 1) == pytest.approx((-25 / 12, 4, -3, 4 / 3, -1 / 4))


def test_an_axis_between_walls_that_is_too_short_is_named():
    with pytest.raises(ValueError, match=r"An axis has 7 points; a derivative of order 4 takes 8 between walls"):
        FiniteDifference((0.1,), False).derivative(torch.zeros(1, 7), 1, 4)


def test_a_channel_closes_along_x_and_ends_at_walls_along_y():
    x, y = line(48), torch.linspace(0, 1, 17, dtype=torch.float64)
    field = (wave(x, 0)[:, None] * y**2)[None]
    channel = FiniteDifference((1 / 48, 1 / 16), (True, False))
    torch.testing.assert_close(channel.derivative(field, 2, 2)[0], 2 * wave(x, 0)[:, None].expand(-1, 17))
    along_x = channel.derivative(field, 1, 1)
    torch.testing.assert_close(along_x[0], wave(x, 1)[:, None] * y**2, rtol=0.0, atol=1e-3)
    moved = channel.derivative(field.roll(5, 1), 1, 1)
    torch.testing.assert_close(moved, along_x.roll(5, 1))
