"""The UNet: its published sizes, the identity it begins as, and the shifts it commutes with."""

import pytest
import torch

from vcnef.models.unet import Double, unet

TINY = {"width": 4, "multipliers": (1, 2, 2), "blocks": 1, "steps": 4}


def randomise(model):
    """All weights at random: those that begin as zeros hide the others."""
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model.double()


@pytest.mark.parametrize(
    ("ndim", "channels", "params", "count"),
    [(1, 1, 1, 557_137), (1, 3, 2, 562_579), (2, 4, 3, 9_187_284), (1, 1, 0, 557_137 - 5_248)],
)
def test_published_counts(ndim, channels, params, count):
    with torch.device("meta"):
        model = unet(ndim, channels, params)
    assert sum(weight.numel() for weight in model.parameters()) == count


@pytest.mark.parametrize(("ndim", "sides"), [(1, (16,)), (2, (12, 8)), (3, (4, 5, 6))])
def test_untrained_it_is_the_identity(ndim, sides):
    model = unet(ndim, 2, 1, **TINY)
    u0 = torch.randn(2, *sides, 2)
    u = model(u0, torch.rand(*sides, ndim), torch.tensor([0.25, 1.0]), torch.rand(2, 1))
    assert torch.equal(u, u0[:, None].expand_as(u))


@pytest.mark.parametrize(("ndim", "sides"), [(1, (16,)), (2, (12, 8)), (3, (4, 4, 8))])
def test_a_shift_by_whole_coarsest_cells_shifts_the_answer(ndim, sides):
    stepper = randomise(unet(ndim, 1, **TINY)).stepper
    u, grid = torch.randn(1, *sides, 1).double(), torch.rand(1, *sides, ndim).double()
    axes, shifts = tuple(range(1, ndim + 1)), (4,) * ndim
    answer = stepper(u, grid)
    assert (answer - u).std() > 1e-3
    torch.testing.assert_close(stepper(u.roll(shifts, axes), grid), answer.roll(shifts, axes))


@pytest.mark.parametrize("closes", [True, False])
def test_twice_the_points_are_those_of_a_padded_transposed_convolution(closes):
    """Inside both are torch's own; at the ends the circular one sees the other end."""
    double, field = Double((closes,), 2), torch.randn(1, 2, 6)
    plain = torch.nn.functional.conv_transpose1d(field.repeat(1, 1, 3), double.conv.weight, double.conv.bias, 2, 1)
    answer = double(field)
    assert answer.shape == (1, 2, 12)
    torch.testing.assert_close(answer[..., 1:-1], plain[..., 13:23])
    assert torch.allclose(answer, plain[..., 12:24], atol=1e-6) == closes


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("sides", [(12, 8), (7, 5), (1, 3)])
def test_any_grid_size(periodic, sides):
    stepper = randomise(unet(2, 1, **TINY, periodic=periodic)).stepper
    answer = stepper(torch.randn(2, *sides, 1).double(), torch.rand(1, *sides, 2).double())
    assert answer.shape == (2, *sides, 1)


def test_every_weight_matters():
    model = randomise(unet(1, 2, 2, **TINY))
    u0, grid = torch.randn(3, 16, 2).double(), torch.rand(16, 1).double()
    model(u0, grid, torch.tensor([1.0]).double(), torch.rand(3, 2).double()).square().mean().backward()
    assert not [name for name, weight in model.named_parameters() if weight.grad.abs().max() == 0]


def test_the_scale_makes_small_parameters_visible():
    u, grid, params = torch.randn(1, 16, 1).expand(2, 16, 1), torch.rand(1, 16, 1), torch.tensor([[0.001], [0.002]])
    for scale, visible in ((1.0, False), (1000.0, True)):
        torch.manual_seed(0)
        stepper = randomise(unet(1, 1, 1, **TINY, parameter_scale=scale)).stepper
        first, second = stepper(u.double(), grid.double(), params.double())
        assert ((first - second).abs().max() > 1e-4) == visible


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ndim": 4}, "ndim is 4; expected 1, 2 or 3"),
        ({"width": 5}, "width is 5; expected an even number"),
        ({"blocks": 0}, "blocks is 0 and multipliers"),
        ({"multipliers": ()}, r"multipliers \(\); expected numbers of at least 1"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        unet(**({"ndim": 1, "channels": 1} | options))
