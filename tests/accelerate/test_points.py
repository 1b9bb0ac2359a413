"""Tokens of points: encoders, coordinates and decoders give what those of the model give."""

import pytest
import torch
import torch.nn.functional as F

from vcnef.accelerate.arithmetic import TRAINING, inference
from vcnef.accelerate.points import (
    MAX_COLUMNS,
    decode_points,
    encode_points,
    encode_space,
    encode_time,
    sum_of_columns,
)
from vcnef.grid import cell_centres
from vcnef.models.vcnef import LinearCoordinates, PointDecoder, PointEncoder

GRID = cell_centres(((0.0, 1.0), (0.0, 2.0)), (3, 4)).unsqueeze(0)


def with_gradients(function, given):
    out = function(*given)
    return out, *torch.autograd.grad(out.square().sum(), given)


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("features", [1, 3, MAX_COLUMNS + 1])
def test_a_sum_of_columns_is_a_product(features, biased):
    x, weight = torch.randn(2, 5, features, requires_grad=True), torch.randn(7, features, requires_grad=True)
    given = (x, weight, torch.randn(7, requires_grad=True)) if biased else (x, weight)
    torch.testing.assert_close(with_gradients(sum_of_columns, given), with_gradients(F.linear, given))


@pytest.mark.parametrize("params", [None, torch.rand(2, 3)])
def test_points_are_encoded_as_the_model_does(params):
    encoder, u0 = PointEncoder(2 + 1 + (0 if params is None else 3), 8), torch.randn(2, 3, 4, 1)
    torch.testing.assert_close(encode_points(encoder, u0, GRID, params), encoder(u0, GRID, params))


def test_coordinates_are_encoded_as_the_model_does():
    coordinates, t = LinearCoordinates(2, 8, pace=3.0), torch.rand(2, 5)
    torch.testing.assert_close(encode_space(coordinates, GRID), coordinates.encode_space(GRID))
    torch.testing.assert_close(encode_time(coordinates, t), coordinates.encode_time(t))


def test_autocasting_rounds_neither_points_nor_times():
    coordinates, t = LinearCoordinates(1, 8), torch.linspace(0.9, 0.91, 7).unsqueeze(0)
    grid = cell_centres(((0.0, 1.0),), (256,)).unsqueeze(0)
    encoder, u0 = PointEncoder(2, 8), torch.randn(1, 256, 1)

    def encode():
        return encode_space(coordinates, grid), encode_time(coordinates, t), encode_points(encoder, u0, grid, None)

    expected = encode()
    with torch.autocast("cpu", torch.bfloat16):
        assert all(torch.equal(*pair) for pair in zip(encode(), expected, strict=True))


@pytest.mark.parametrize("table", [TRAINING, inference(torch.device("cpu"), None)])
@torch.no_grad()
def test_fields_are_decoded_as_the_model_does(table):
    decoder, z = PointDecoder(8, 3), torch.randn(2, 5, 12, 8)
    torch.testing.assert_close(decode_points(decoder, z, (3, 4), table), decoder(z, (3, 4)))
