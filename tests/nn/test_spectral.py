import pytest
import torch

from vcnef.nn.spectral_conv import SpectralConv


@pytest.mark.parametrize("out", [2, 3])
@pytest.mark.parametrize(("ndim", "sides"), [(1, (16,)), (2, (8, 10)), (3, (6, 6, 8))])
def test_it_is_a_circular_convolution(ndim, sides, out):
    """The kernel is the answer to a unit pulse; every other answer is the dense sum Σ_y k(x − y) u(y)."""
    conv = SpectralConv(ndim, 2, 3, out).double()
    axes = tuple(range(2, 2 + ndim))
    field = torch.randn(1, 2, *sides, dtype=torch.float64)
    expected = torch.zeros(1, out, *sides, dtype=torch.float64)
    for channel in range(2):
        pulse = torch.zeros(1, 2, *sides, dtype=torch.float64)
        pulse[(0, channel, *(0,) * ndim)] = 1.0
        kernel = conv(pulse)
        for place in torch.cartesian_prod(*(torch.arange(side) for side in sides)).reshape(-1, ndim).tolist():
            expected += field[(0, channel, *place)] * torch.roll(kernel, place, axes)
    torch.testing.assert_close(conv(field), expected)


def test_only_low_modes_pass():
    conv = SpectralConv(1, 2, 4).double()
    x = torch.arange(32, dtype=torch.float64) / 32
    high = torch.sin(2 * torch.pi * 5 * x).expand(1, 2, 32)
    low = torch.sin(2 * torch.pi * 3 * x).expand(1, 2, 32)
    assert conv(high).abs().max() < 1e-12
    assert conv(low).abs().max() > 1e-3


@pytest.mark.parametrize("sides", [(3, 5), (4, 2), (33, 40)])
def test_any_grid_size(sides):
    assert SpectralConv(2, 2, 16)(torch.randn(1, 2, *sides)).shape == (1, 2, *sides)


def test_the_same_function_on_finer_grids():
    conv = SpectralConv(1, 1, 4).double()

    def on(n):
        return conv(torch.cos(2 * torch.pi * torch.arange(n, dtype=torch.float64) / n).expand(1, 1, n))

    torch.testing.assert_close(on(64)[..., ::4], on(16))


def test_half_precision_transforms_in_single():
    conv = SpectralConv(1, 4, 4)
    field = torch.randn(2, 4, 20)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert conv(field.bfloat16()).dtype == torch.float32


def test_gradients():
    conv = SpectralConv(2, 2, 2).double()
    field = torch.randn(1, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(conv, field)
