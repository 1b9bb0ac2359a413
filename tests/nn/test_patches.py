import pytest
import torch
from torch import nn

from vcnef.grid import cell_centres
from vcnef.nn.decoders import PatchDecoder, PointDecoder
from vcnef.nn.encoders import PatchEncoder, PointEncoder
from vcnef.nn.patches import continue_field, continue_grid, patch_points, whole_sides


def test_whole_sides():
    assert whole_sides((16, 17, 1), (4, 16)) == (16, 32, 16)
    assert whole_sides((6,), (4, 6)) == (12,)


def test_a_periodic_field_is_continued_by_itself():
    x = cell_centres([(0.0, 1.0)], 10, dtype=torch.float64)
    field = torch.sin(2 * torch.pi * x).unsqueeze(0)
    longer = continue_grid(x.unsqueeze(0), (33,))
    torch.testing.assert_close(continue_field(field, (33,), periodic=True), torch.sin(2 * torch.pi * longer))


def test_a_field_that_is_not_periodic_is_continued_by_its_last_values():
    field = torch.arange(6.0).view(1, 2, 3, 1)
    longer = continue_field(field, (4, 4), periodic=False)
    assert longer[0, :, :, 0].tolist() == [[0, 1, 2, 2], [3, 4, 5, 5], [3, 4, 5, 5], [3, 4, 5, 5]]


def test_patch_points_are_centres_or_corners():
    grid = cell_centres(((0.0, 1.0), (0.0, 2.0)), (8, 8)).unsqueeze(0)
    centres = patch_points(grid, 4, 1)
    torch.testing.assert_close(centres[0, :, 0], cell_centres(((0.0, 1.0), (0.0, 2.0)), (2, 2)).flatten(0, 1))
    corners = patch_points(grid, 4, 2)
    assert torch.equal(corners[0, 1, 0], grid[0, 0, 4])
    assert torch.equal(corners[0, 1, 1], grid[0, 3, 7])


@pytest.mark.parametrize(("ndim", "sides"), [(1, (20,)), (2, (8, 12)), (3, (8, 4, 12))])
def test_the_encoder_is_two_convolutions(ndim, sides):
    encoder = PatchEncoder(ndim, 3 + ndim, 8, (2, 4), periodic=True).double()
    u0 = torch.randn(2, *sides, 3, dtype=torch.float64)
    grid = cell_centres(((0.0, 1.0),) * ndim, sides, dtype=torch.float64).expand(2, *sides, ndim)
    fields = torch.cat((grid, u0), dim=-1).movedim(-1, 1)
    expected = torch.cat([scale(fields).flatten(2).mT for scale in encoder.scales], dim=1)
    torch.testing.assert_close(encoder(u0, grid[:1], None), expected)


@pytest.mark.parametrize("shared_mlp", [False, True])
@pytest.mark.parametrize(("ndim", "sides"), [(1, (20,)), (2, (8, 12)), (3, (8, 4, 8))])
def test_the_folded_decoder_is_the_one_with_a_concatenation(ndim, sides, shared_mlp):
    decoder = PatchDecoder(ndim, 8, 3, (2, 4), shared_mlp=shared_mlp).double()
    whole = whole_sides(sides, (2, 4))
    shapes = [[side // size for side in whole] for size in (2, 4)]
    tokens = torch.randn(2, 3, sum(torch.Size(s).numel() for s in shapes), 8, dtype=torch.float64)

    fields, rows = [], decoder.norm(tokens).split([torch.Size(s).numel() for s in shapes], dim=2)
    for k, (row, shape) in enumerate(zip(rows, shapes, strict=True)):
        latent = decoder.mlps[0 if shared_mlp else k](row).flatten(0, 1).mT.unflatten(-1, shape)
        fields.append(decoder.paint[k](nn.functional.gelu(decoder.grow[k](latent))))
    expected = decoder.mix(torch.cat(fields, dim=1).movedim(1, -1)).unflatten(0, (2, 3))
    torch.testing.assert_close(decoder(tokens, sides), expected[(..., *map(slice, sides), slice(None))])


def test_gradients():
    u0 = torch.randn(2, 4, 6, 1, dtype=torch.float64, requires_grad=True)
    grid, params = cell_centres(((0.0, 1.0),) * 2, (4, 6), dtype=torch.float64).unsqueeze(0), torch.rand(2, 1).double()
    patch = PatchEncoder(2, 4, 4, (2, 4), periodic=True).double()
    point = PointEncoder(4, 4).double()
    assert torch.autograd.gradcheck(lambda u: patch(u, grid, params), u0)
    assert torch.autograd.gradcheck(lambda u: point(u, grid, params), u0)

    tokens = torch.randn(1, 2, 4 + 1, 4, dtype=torch.float64, requires_grad=True)
    decoder = PatchDecoder(2, 4, 1, (2, 4), shared_mlp=False).double()
    assert torch.autograd.gradcheck(lambda z: decoder(z, (4, 3)), tokens)
    point_decoder = PointDecoder(4, 2).double()
    assert torch.autograd.gradcheck(lambda z: point_decoder(z, (5,)), tokens)
