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
MAPS = [F.linear, sum_of_columns]


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
    for linear in MAPS:
        torch.testing.assert_close(encode_points(encoder, linear, u0, GRID, params), encoder(u0, GRID, params))


@pytest.mark.parametrize("linear", MAPS)
def test_coordinates_are_a_sum_of_time_and_space(linear):
    coordinates, t = LinearCoordinates(2, 8, pace=3.0), torch.rand(2, 5)
    time, space = encode_time(coordinates, linear, t), encode_space(coordinates, linear, GRID)
    torch.testing.assert_close(time.unsqueeze(2) + space.unsqueeze(1), coordinates(t, GRID))


@pytest.mark.parametrize("linear", MAPS)
def test_autocasting_rounds_neither_points_nor_times(linear):
    coordinates, t = LinearCoordinates(1, 8), torch.linspace(0.9, 0.91, 7).unsqueeze(0)
    grid = cell_centres(((0.0, 1.0),), (256,)).unsqueeze(0)
    encoder, u0 = PointEncoder(2, 8), torch.randn(1, 256, 1)

    def encode():
        where = encode_space(coordinates, linear, grid), encode_time(coordinates, linear, t)
        return *where, encode_points(encoder, linear, u0, grid, None)

    expected = encode()
    with torch.autocast("cpu", torch.bfloat16):
        assert all(torch.equal(*pair) for pair in zip(encode(), expected, strict=True))


@pytest.mark.parametrize("table", [TRAINING, inference(torch.device("cpu"), None)])
@torch.no_grad()
def test_fields_are_decoded_as_the_model_does(table):
    decoder, z = PointDecoder(8, 3), torch.randn(2, 5, 12, 8)
    torch.testing.assert_close(decode_points(decoder, z, (3, 4), table), decoder(z, (3, 4)))
