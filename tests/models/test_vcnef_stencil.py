from math import ceil, prod

import pytest
import torch
from torch.nn.functional import conv1d, conv2d, pad

from vcnef.models.vcnef_beyond import Stencil, TokenGrid, spread_taps


def stencil(width, reach, extents, *, periodic=True):
    """One for grids of these extents in tokens."""
    module = Stencil(width, reach, (2,) * len(extents[0]), (2,) * len(extents), periodic=periodic)
    module.extents = list(extents)
    torch.nn.init.normal_(module.weight)
    return module


def mix(module, tokens, grids):
    """What it makes of the tokens of these grids, which stand in one row."""
    rows = tokens.split([prod(grid.sides) for grid in grids], dim=-2)
    return torch.cat([module.mix(row, which, grids[which]) for which, row in enumerate(rows)], dim=-2)


def whole(*grids):
    return tuple(TokenGrid(sides, sides) for sides in grids)


@pytest.mark.parametrize(("periodic", "mode"), [(True, "circular"), (False, "replicate")])
def test_it_is_a_depthwise_convolution_in_one_dimension(periodic, mode):
    local, tokens = stencil(5, 3, ((12,),), periodic=periodic), torch.randn(2, 4, 12, 5)
    wide = pad(tokens.flatten(0, 1).mT, (3, 3), mode=mode)
    wanted = conv1d(wide, local.weight[0].T[:, None], groups=5).mT.unflatten(0, (2, 4))
    torch.testing.assert_close(mix(local, tokens, whole((12,))), wanted)


def test_it_is_a_depthwise_convolution_on_every_grid_of_the_row():
    local, tokens = stencil(3, 1, ((8, 6), (4, 3))), torch.randn(2, 8 * 6 + 4 * 3, 3)
    answer = mix(local, tokens, whole((8, 6), (4, 3))).split([48, 12], dim=1)
    for row, sides, weight, given in zip(
        answer, ((8, 6), (4, 3)), local.weight, tokens.split([48, 12], 1), strict=True
    ):
        field = pad(given.mT.unflatten(-1, sides), (1, 1, 1, 1), mode="circular")
        wanted = conv2d(field, weight.T.reshape(3, 1, 3, 3), groups=3).flatten(2).mT
        torch.testing.assert_close(row, wanted)


def test_the_stencil_keeps_its_length_on_finer_and_coarser_grids():
    """A smooth field mixed on any grid is the same field, up to what linear interpolation costs."""
    local = stencil(1, 2, ((32,),))

    def answer(points):
        x = torch.arange(points)[:, None] / points
        return mix(local, torch.sin(2 * torch.pi * x)[None], whole((points,)))[0].detach()

    coarse = answer(32)
    torch.testing.assert_close(answer(64)[::2], coarse)
    torch.testing.assert_close(answer(128)[::4], coarse)
    torch.testing.assert_close(answer(48)[::3], coarse[::2], atol=0.01 * float(coarse.abs().max()), rtol=0)
    torch.testing.assert_close(answer(16), coarse[::2], atol=0.05 * float(coarse.abs().max()), rtol=0)


@pytest.mark.parametrize(("periodic", "before", "after"), [(True, [11, 12], [0, 1]), (False, [0, 0], [12, 12])])
def test_it_goes_on_from_where_the_domain_ends_and_not_from_the_end_of_the_tokens(periodic, before, after):
    """Twelve patches and a half in a row of sixteen: half a token beyond the last one a periodic domain begins anew."""
    local, tokens = stencil(1, 1, ((12.5,),), periodic=periodic), torch.randn(1, 16, 1)
    left, centre, right = local.weight[0, :, 0]
    mixed, z = mix(local, tokens, (TokenGrid((16,), (12.5,)),))[0, :, 0], tokens[0, :, 0]
    torch.testing.assert_close(mixed[0], left * z[before].mean() + centre * z[0] + right * z[1])
    torch.testing.assert_close(mixed[11], left * z[10] + centre * z[11] + right * z[12])
    torch.testing.assert_close(mixed[12], left * z[11] + centre * z[12] + right * z[after].mean())


@pytest.mark.parametrize("periodic", [True, False])
def test_tokens_beyond_the_domain_do_not_count(periodic):
    local, field = stencil(3, 2, ((8, 6),), periodic=periodic), torch.randn(2, 9, 8, 3)
    found = mix(local, field.flatten(1, 2), (TokenGrid((9, 8), (7.0, 6.0)),)).unflatten(1, (9, 8))
    alone = field[:, :7, :6].flatten(1, 2)
    torch.testing.assert_close(found[:, :7, :6].flatten(1, 2), mix(local, alone, whole((7, 6))))


@pytest.mark.parametrize("extent", [32.25, 32.5, 48.75, 65.5, 200 / 3])
def test_a_wave_around_a_domain_that_tokens_do_not_divide(extent):
    """Mixed at every token, those at the seam among them, it is Σ w_k sin 2π(x + k h)."""
    local, sides = stencil(1, 2, ((32.5,),)).requires_grad_(False), ceil(extent) + 3
    x = torch.arange(sides) / extent
    found = mix(local, torch.sin(2 * torch.pi * x)[None, :, None], (TokenGrid((sides,), (extent,)),))[0, :, 0]
    wanted = sum([w * torch.sin(2 * torch.pi * (x + k / 32.5)) for k, w in enumerate(local.weight[0, :, 0], start=-2)])
    torch.testing.assert_close(found, wanted, atol=0.02 * float(local.weight.abs().sum()), rtol=0)


def test_taps_between_points_are_shared():
    assert spread_taps(1, (2.0,)) == {(-2,): [(0, 1.0)], (0,): [(1, 1.0)], (2,): [(2, 1.0)]}
    assert spread_taps(1, (0.5,)) == {(-1,): [(0, 0.5)], (0,): [(0, 0.5), (1, 1.0), (2, 0.5)], (1,): [(2, 0.5)]}
    shares = [share for taps in spread_taps(2, (0.7, 1.3)).values() for _, share in taps]
    assert sum(shares) == pytest.approx(25)


def test_it_does_nothing_at_first_and_survives_a_grid_smaller_than_itself():
    assert not Stencil(4, 3, (16,), periodic=True)(torch.randn(1, 16, 4), (16,)).any()
    assert mix(stencil(4, 3, ((2,),)), torch.randn(1, 2, 4), whole((2,))).shape == (1, 2, 4)
