"""Patch encoders and decoders as products give what convolutions give."""

from math import prod

import pytest
import torch

from vcnef.accelerate.arithmetic import TRAINING, inference
from vcnef.accelerate.patches import decode_patches, encode_patches, encode_space, encode_time
from vcnef.grid import cell_centres
from vcnef.models.vcnef import FourierCoordinates, PatchDecoder, PatchEncoder
from vcnef.nn.patching import whole_sides

SIDES = [(20,), (8, 12), (8, 4, 12), (7,), (9, 5), (5, 4, 9)]
"""Of whole patches, and of others."""


def with_gradients(function, module, given):
    out = function(given)
    return out, *torch.autograd.grad(out.square().sum(), [given, *module.parameters()])


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("sides", SIDES)
def test_the_encoder_is_two_convolutions(sides, periodic, own):
    ndim = len(sides)
    encoder = PatchEncoder(ndim, ndim + 4, 8, (2, 4), periodic=periodic).double()
    u0 = torch.randn(2, *sides, 3, dtype=torch.float64, requires_grad=True)
    grid = cell_centres(((0.0, 1.0),) * ndim, sides, dtype=torch.float64)
    params = torch.rand(2, 1, dtype=torch.float64)
    points = torch.stack((grid, grid**2)) if own else grid[None]
    found = with_gradients(lambda u: encode_patches(encoder, u, points, params), encoder, u0)
    torch.testing.assert_close(found, with_gradients(lambda u: encoder(u, points, params), encoder, u0))


@pytest.mark.parametrize("points", [1, 2])
@pytest.mark.parametrize("sides", SIDES)
def test_coordinates_are_a_sum_of_time_and_space(sides, points):
    ndim, t = len(sides), torch.rand(2, 3, dtype=torch.float64)
    coordinates = FourierCoordinates(ndim, 16, (2, 4), points, pace=0.1).double()
    grid = cell_centres(((0.0, 1.0),) * ndim, sides, dtype=torch.float64).unsqueeze(0)
    time, space = encode_time(coordinates, t), encode_space(coordinates, grid)
    torch.testing.assert_close(time.unsqueeze(2) + space.unsqueeze(1), coordinates(t, grid))


@pytest.mark.parametrize("shared_mlp", [False, True])
@pytest.mark.parametrize("sides", SIDES)
def test_the_folded_decoder_is_the_one_with_a_concatenation(sides, shared_mlp):
    decoder = PatchDecoder(len(sides), 8, 3, (2, 4), shared_mlp=shared_mlp).double()
    whole = whole_sides(sides, (2, 4))
    tokens = sum(prod(side // size for side in whole) for size in (2, 4))
    z = torch.randn(2, 3, tokens, 8, dtype=torch.float64, requires_grad=True)

    def fast(z, table=TRAINING):
        return decode_patches(decoder, z, sides, table)

    expected = with_gradients(lambda z: decoder(z, sides), decoder, z)
    torch.testing.assert_close(with_gradients(fast, decoder, z), expected)
    with torch.no_grad():
        torch.testing.assert_close(fast(z, inference(torch.device("cpu"), None)), expected[0])


@torch.no_grad()
def test_an_answer_is_finer_than_half_precision():
    decoder, z = PatchDecoder(1, 8, 1, (4,), shared_mlp=False), torch.randn(2, 3, 5, 8)
    with torch.autocast("cpu", torch.bfloat16):
        found = decode_patches(decoder, z, (20,), inference(torch.device("cpu"), torch.bfloat16))
    assert found.dtype == torch.float32
    assert not torch.equal(found, found.bfloat16().float())
