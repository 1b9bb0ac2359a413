"""The kernels against their twins and against the model's own forward, on a GPU."""

from itertools import product
from math import prod

import pytest
import torch
from torch import nn

import vcnef
from vcnef.grid import cell_centres
from vcnef.kernels import modulation as kernels
from vcnef.kernels import plain
from vcnef.kernels.local import Stencil, mix_neighbours
from vcnef.kernels.precision import precision
from vcnef.kernels.weights import usable
from vcnef.nn.decoders import PointDecoder
from vcnef.nn.fused import decoder_weights
from vcnef.nn.linear import positive

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]

TOLERANCE = {torch.float16: 1e-3, torch.bfloat16: 8e-3}
"""Of ‖found − twin‖ / ‖twin‖."""
SHAPES = [(16, 2, 7), (40, 4, 50), (48, 8, 100), (96, 8, 256), (96, 1, 300), (100, 10, 129), (128, 8, 1000)]


def change(found, expected):
    assert found.shape == expected.shape
    return float((found.double() - expected.double()).norm() / expected.double().norm())


@torch.no_grad()
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("between", ["operands", "fp32"])
@pytest.mark.parametrize(("width", "heads", "points"), SHAPES)
def test_kernels_agree_with_their_twins(make_case, width, heads, points, dtype, between):
    activation = nn.GELU if heads == 1 else nn.ReLU
    case = make_case(width, heads, points, activation, shared=points != 100, device="cuda")
    weights, field = case.weights(dtype), case.field
    tokens, extra = (x.to(dtype if between == "operands" else torch.float32) for x in (case.tokens, case.extra))
    assert usable(tokens, heads)

    mixed = plain.mix(tokens, weights)
    for found, expected in zip(kernels.mix(tokens, weights), mixed, strict=True):
        assert change(found, expected) < TOLERANCE[dtype]
    decoder = PointDecoder(width, 2).cuda()
    decoding = decoder_weights(decoder.norm, decoder.mlp, dtype)
    for given in (tokens, *mixed, field, weights), (tokens, *mixed, field, weights, extra):
        assert change(kernels.apply(*given), plain.apply(*given)) < TOLERANCE[dtype]
        fields = kernels.apply(*given, decoder=decoding)
        assert change(fields, plain.apply(*given, decoder=decoding)) < TOLERANCE[dtype]
        assert (
            change(kernels.transform(*given[:3], *given[4:]), plain.transform(*given[:3], *given[4:]))
            < TOLERANCE[dtype]
        )
        parts = zip(kernels.attend(*given[:3], *given[4:]), plain.attend(*given[:3], *given[4:]), strict=True)
        assert all(change(found, expected) < TOLERANCE[dtype] for found, expected in parts)
    given = tokens[:, :1], positive(extra[:, :1]), field, weights
    assert change(kernels.modulate(*given), plain.modulate(*given)) < TOLERANCE[dtype]


@torch.no_grad()
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_every_tiling_gives_the_same(make_case, dtype):
    case = make_case(96, 8, 200, nn.ReLU, device="cuda")
    weights = case.weights(dtype)
    mixed = plain.mix(case.tokens, weights)
    for tiling in kernels.MIX_TILINGS:
        assert change(kernels.mix(case.tokens, weights, tiling)[0], mixed[0]) < TOLERANCE[dtype]
    given = case.tokens, *mixed, case.field, weights
    expected = plain.apply(*given)
    for tiling in kernels.APPLY_TILINGS:
        assert change(kernels.apply(*given, tiling=tiling), expected) < TOLERANCE[dtype]
    given = case.tokens[:, :1], positive(case.extra[:, :1]), case.field, weights
    expected = plain.modulate(*given)
    for tiling in kernels.MODULATE_TILINGS:
        assert change(kernels.modulate(*given, tiling), expected) < TOLERANCE[dtype]


@torch.no_grad()
@pytest.mark.parametrize("channels", [1, 20])
@pytest.mark.parametrize("width", [48, 96, 128])
def test_decoding_agrees_with_its_twin(width, channels):
    decoder = PointDecoder(width, channels).cuda()
    weights, tokens = decoder_weights(decoder.norm, decoder.mlp, torch.float16), torch.randn(5, 77, width).cuda()
    for tiling in kernels.DECODE_TILINGS:
        assert change(kernels.decode(tokens, weights, tiling), plain.decode(tokens, weights)) < 1e-3


@torch.no_grad()
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize(
    ("width", "sides"), [(40, (3,)), (96, (256,)), (96, (300,)), (256, (16, 15)), (128, (8, 7, 6)), (128, (16, 16, 16))]
)
def test_neighbours_agree_with_their_twin(width, sides, periodic):
    offsets = tuple(product((-5, 0, 1), repeat=len(sides)))
    stencils = [
        Stencil(each, offsets, torch.randn(len(offsets), width).cuda(), periodic) for each in (sides, sides[::-1])
    ]
    tokens = torch.randn(2, 3, 2 * prod(sides), width).cuda().half()
    expected = plain.mix_neighbours(tokens, stencils, torch.float16)
    assert change(mix_neighbours(tokens, stencils, torch.float16), expected) < 1e-3


@torch.no_grad()
def test_a_block_uses_them_only_in_a_context_of_precision(make_case, monkeypatch):
    case = make_case(96, 8, 256, nn.ReLU, device="cuda")
    calls, launch = [], kernels.apply
    monkeypatch.setattr(kernels, "apply", lambda *given: calls.append(1) or launch(*given))
    expected = case.block(case.tokens, case.field)
    assert not calls
    with precision("fp16"):
        found = case.block(case.tokens, case.field)
        assert calls
        with torch.enable_grad():
            assert torch.equal(case.block(case.tokens, case.field), expected)
    assert len(calls) == 1
    assert found.dtype == torch.float16
    assert change(found, expected) < 1e-3


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp16", 1e-3), ("tf32", 2e-3), ("bf16", 1e-2), ("fp32", 1e-6)])
def test_predict_agrees_with_forward(precision, tolerance, shared):
    model = vcnef.build("vcnef", ndim=1, channels=2, params=1).cuda()
    grid = cell_centres(((0.0, 1.0),), (256,)).cuda()
    times = torch.rand(10) if shared else torch.rand(8, 10)
    inputs = torch.randn(8, 256, 2).cuda(), grid, times.cuda(), torch.rand(8, 1).cuda()
    found = model.predict(*inputs, precision=precision, points_per_chunk=256 * 7)
    assert found.dtype == torch.float32
    assert change(found, model(*inputs).detach()) < tolerance


def test_numbers_too_large_for_fp16_are_answered_in_bf16():
    model = vcnef.build("vcnef", ndim=1, channels=1).cuda()
    grid = cell_centres(((0.0, 1.0),), (256,)).cuda()
    inputs = 1e8 * torch.randn(2, 256, 1).cuda(), grid, torch.rand(3).cuda()
    with torch.no_grad(), precision("fp16"):
        assert not model.query(model.encode(*inputs[:2]), inputs[2]).isfinite().all()
    found = model.predict(*inputs)
    assert found.isfinite().all()
    assert torch.equal(found, model.predict(*inputs, precision="bf16"))
