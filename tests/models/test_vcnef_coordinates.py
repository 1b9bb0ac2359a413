import pytest
import torch

from vcnef.grid import cell_centres
from vcnef.models.vcnef import FourierCoordinates, LearnableFourier, LinearCoordinates
from vcnef.models.vcnef_beyond import Clocks, PeriodicFeatures
from vcnef.nn.layers import sinusoidal


def test_linear_coordinates_are_one_linear_layer_on_t_and_x():
    encode = LinearCoordinates(2, 8).double()
    t, points = torch.rand(3, 4, dtype=torch.float64), torch.rand(3, 5, 2, dtype=torch.float64)
    joined = torch.cat((t[:, :, None, None].expand(-1, -1, 5, 1), points[:, None].expand(-1, 4, -1, -1)), dim=-1)
    torch.testing.assert_close(encode(t, points), encode.linear(joined))
    torch.testing.assert_close(encode(t, points[:1])[1], encode(t[1:2], points[:1])[0])


@pytest.mark.parametrize("points", [1, 2])
def test_fourier_coordinates_are_a_concatenation(points):
    encode = FourierCoordinates(2, 16, (4, 8), points).double()
    grid = cell_centres(((0.0, 1.0),) * 2, 16, dtype=torch.float64).unsqueeze(0)
    t = torch.rand(1, 3, dtype=torch.float64)
    c = encode(t, grid)
    assert c.shape == (1, 3, 16 + 4, 16)
    torch.testing.assert_close(c[:, :, 5, :8], sinusoidal(t, 8))
    centre_or_corner = grid[:, 4:8, :4].mean((1, 2)) if points == 1 else grid[:, 4, 0]
    first = encode.fourier[0](centre_or_corner)
    torch.testing.assert_close(c[:, 1, 4, 8 : 8 + first.shape[-1]], first)


def test_sinusoidal_time_is_the_transformers_encoding():
    encoded = sinusoidal(torch.tensor([0.002]), 6)
    rates = [10000 ** (-2 * k / 6) for k in range(3)]
    expected = torch.tensor([f(10.0 * rate) for rate in torch.tensor(rates) for f in (torch.sin, torch.cos)])
    torch.testing.assert_close(encoded[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float16, 5e-4), (torch.bfloat16, 4e-3)])
def test_sinusoidal_time_of_a_model_in_half_precision(dtype, bound):
    """Only the answer is rounded; thousands of radians would be off by some."""
    t = torch.tensor([0.25, 0.5, 1.0])
    features = sinusoidal(t.to(dtype), 128)
    assert features.dtype == dtype
    assert (features.float() - sinusoidal(t, 128)).abs().max() < bound


def test_gradients():
    fourier = LearnableFourier(2, 8, 4).double()
    x = torch.rand(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(fourier, x)
    linear, t = LinearCoordinates(2, 4).double(), torch.rand(1, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(linear, (t, x.unsqueeze(0)))


def test_a_width_that_cannot_hold_the_points_is_refused():
    with pytest.raises(ValueError, match=r"Width 12 cannot hold a time and 2 points per patch. Choose a multiple of 8"):
        FourierCoordinates(2, 12, (4,), 2)


def test_periodic_features_are_the_same_at_both_ends():
    features = PeriodicFeatures(3, (2.0, 1.0), periodic=True)
    ends = features(torch.tensor([[-1.0, 0.0], [1.0, 1.0]]))
    assert ends.shape == (2, features.count) == (2, 12)
    torch.testing.assert_close(ends[0], ends[1], atol=1e-5, rtol=0)
    x = torch.tensor([[0.3, 0.0]])
    torch.testing.assert_close(features(x)[0, 1], torch.sin(torch.tensor(2 * torch.pi * 2 * 0.3 / 2)))
    assert PeriodicFeatures(3, (2.0,), periodic=False)(x[:, :1])[0, 0] == x[0, 0]


def test_clocks_go_as_fast_as_parameters_say():
    speeds = ((-1.0, 2.0, True), (0.5, 0.25, False))
    clocks = Clocks(3, 8, speeds).double()
    t, params = torch.rand(1, 4, dtype=torch.float64), torch.randn(2, 2, dtype=torch.float64)
    found = clocks(t, params)
    assert found.shape == (2, 4, 1, 8)
    # Time passes twice as fast: the same as twice the time.
    fast = torch.stack(((torch.exp(2 * params[:, 0] - 1) * 2).log() / 2 + 0.5, 2 * params[:, 1] + 2), dim=-1)
    torch.testing.assert_close(clocks(t, fast), clocks(2 * t, params))
    assert not torch.allclose(clocks(t, params + 0.1), found)
    assert torch.autograd.gradcheck(lambda t: clocks(t, params), t.clone().requires_grad_())
