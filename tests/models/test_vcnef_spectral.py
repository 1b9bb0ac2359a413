"""Spectral mixing: a filter of every feature, the same wave on every grid."""

import pytest
import torch

import vcnef
from vcnef.grid import cell_centres
from vcnef.models.vcnef_beyond import SpectralMixing

SIDES = [(12,), (8, 10), (4, 6, 5)]


def mixing(ndim, modes, patches=(), *, periodic=True):
    module = SpectralMixing(ndim, 3, modes, patches, periodic=periodic).double()
    torch.nn.init.normal_(module.weight)
    return module


@pytest.mark.parametrize("sides", SIDES)
def test_it_does_not_matter_where_a_periodic_grid_begins(sides):
    module, axes = mixing(len(sides), 2), tuple(range(1, len(sides) + 1))
    field = torch.randn(2, *sides, 3, dtype=torch.float64)

    def mix(field):
        return module(field.flatten(1, -2), sides).view_as(field)

    shifts = (2,) * len(sides)
    torch.testing.assert_close(mix(field.roll(shifts, axes)), mix(field).roll(shifts, axes))


def test_a_wave_is_turned_and_scaled_by_its_own_number():
    module, x = mixing(1, 3), 2 * torch.pi * torch.arange(12, dtype=torch.float64) / 12
    for number in range(6):
        wave = torch.polar(torch.ones_like(x), number * x)
        factor = torch.view_as_complex(module.weight[0, number, 1]) if number <= 3 else 0
        field = torch.zeros(1, 12, 3, dtype=torch.float64)
        field[0, :, 1] = wave.real
        expected = (factor * wave).real if number else factor * wave.real
        found = module(field, (12,))
        torch.testing.assert_close(found[0, :, 1], expected.real if torch.is_complex(expected) else expected)
        assert not found[0, :, 0].any()


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("ndim", [1, 2])
def test_a_smooth_field_is_mixed_alike_on_every_grid(ndim, periodic):
    module = mixing(ndim, 2, periodic=periodic)

    def mixed(side):
        grid = cell_centres(((0.0, 1.0),) * ndim, (side,) * ndim, dtype=torch.float64)
        wave = torch.cos(2 * torch.pi * grid).prod(dim=-1, keepdim=True).expand(*grid.shape[:-1], 3)
        return module(wave.reshape(1, -1, 3), (side,) * ndim).unflatten(1, (side,) * ndim)

    # Of three times as many points, every third is a point of the coarse grid.
    fine = mixed(27)[(slice(None), *(slice(1, None, 3),) * ndim)]
    torch.testing.assert_close(fine, mixed(9))


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("sides", SIDES)
def test_every_number_of_it_has_a_gradient(sides, periodic):
    module = mixing(len(sides), 1, periodic=periodic)
    tokens = torch.randn(2, 4, torch.Size(sides).numel(), 3, dtype=torch.float64, requires_grad=True)
    out = module(tokens, sides)
    assert out.shape == tokens.shape
    gradient, weight = torch.autograd.grad(out.square().sum(), (tokens, module.weight))
    assert gradient.isfinite().all()
    assert weight.abs().flatten(0, -3).sum(dim=(1, 2)).count_nonzero() == weight.flatten(0, -3).shape[0]


def test_a_coarse_grid_has_fewer_waves():
    assert mixing(2, 8)(torch.randn(1, 12, 3, dtype=torch.float64), (4, 3)).shape == (1, 12, 3)
    assert mixing(1, 8)(torch.randn(1, 1, 3, dtype=torch.float64), (1,)).shape == (1, 1, 3)


@pytest.mark.parametrize(("ndim", "patches"), [(1, ()), (1, (4,)), (2, (4, 8)), (2, (4,))])
def test_a_model_with_it_takes_finer_grids_and_predicts_what_it_says(ndim, patches):
    sides = (16,) * ndim
    options = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": patches, "modes": 2, "sides": sides}
    model = vcnef.build("vcnef", ndim=ndim, channels=1, **options).eval()
    for block in (model.blocks[0], model.modulations[0]):
        torch.nn.init.normal_(block.local.weight, std=0.3)
    assert not model.scattered
    for side in (16, 32):
        grid, u0 = cell_centres(((0.0, 1.0),) * ndim, (side,) * ndim), torch.randn(2, *(side,) * ndim, 1)
        t = torch.rand(3)
        with torch.no_grad():
            expected = model(u0, grid, t)
        torch.testing.assert_close(vcnef.accelerate.predict(model, u0, grid, t), expected, rtol=1e-4, atol=1e-5)
    assert "reference" not in vcnef.explain(model)


def test_it_takes_the_place_of_a_stencil():
    with pytest.raises(ValueError, match="local is 2 and modes is 3; a block has one of them"):
        vcnef.build("vcnef", ndim=1, channels=1, local=2, modes=3, sides=(16,))
