"""The plain twins define what the kernels must give; here they are held against the block itself."""

import logging

import pytest
import torch
from torch import nn

from vcnef.kernels import plain
from vcnef.kernels.weights import _say_once, usable
from vcnef.nn.attention import LinearAttention
from vcnef.nn.blocks import TransformerBlock
from vcnef.nn.decoders import PointDecoder
from vcnef.nn.fused import block_weights, decoder_weights
from vcnef.nn.linear import positive
from vcnef.nn.local import LocalMix


def giving(extra):
    """A stencil that gives just this."""
    local = LocalMix(extra.shape[-1], 1, ((0.1,),), periodic=True)
    local.forward = lambda tokens, layout: extra
    return local


@torch.no_grad()
@pytest.mark.parametrize(("activation", "shared"), [(nn.ReLU, True), (nn.GELU, False)])
@pytest.mark.parametrize(("width", "heads", "points"), [(16, 1, 7), (48, 2, 33), (96, 8, 20), (96, 1, 5)])
def test_twins_are_the_block(make_case, width, heads, points, activation, shared):
    case = make_case(width, heads, points, activation, shared=shared)
    weights = case.weights()
    expected = case.block(case.tokens, case.field)
    found = plain.apply(case.tokens, *plain.mix(case.tokens, weights), case.field, weights)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("shared", [True, False])
def test_first_block_starts_from_attended_tokens_and_scale(make_case, shared):
    case = make_case(48, 2, 33, nn.ReLU, shared=shared)
    block, tokens = case.block, case.tokens[:, :1]
    attended = block.attention_norm(tokens + block.attention(tokens))
    weights = case.weights()
    parts = plain.attend(tokens, *plain.mix(tokens, weights), weights)
    torch.testing.assert_close(parts, (attended, positive(block.scale(attended))), rtol=1e-5, atol=1e-5)
    found = plain.modulate(*parts, case.field, weights)
    torch.testing.assert_close(found, block(tokens, case.field), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_extra_joins_the_attention(make_case):
    case = make_case(16, 2, 7, nn.ReLU)
    weights = case.weights()
    case.block.local = giving(case.extra)
    expected = case.block(case.tokens, case.field)
    mixed = plain.mix(case.tokens, weights)
    found = plain.apply(case.tokens, *mixed, case.field, weights, case.extra)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_means_fit_half_precision_however_many_tokens(make_case):
    case = make_case(16, 2, 50_000, nn.ReLU, batch=1, times=1)
    mixing, key_mean = plain.mix(case.tokens, case.weights(torch.float16))
    assert mixing.dtype == torch.float16
    assert mixing.isfinite().all()
    assert key_mean.max() < 100


@torch.no_grad()
def test_twins_of_the_other_modules():
    block = TransformerBlock(48, LinearAttention(48, 4), nn.GELU, 0.0)
    tokens, extra = torch.randn(2, 3, 1, 20, 48)
    weights = block_weights(block, torch.float32)
    mixed = plain.mix(tokens, weights)
    torch.testing.assert_close(plain.transform(tokens, *mixed, weights)[:, 0], block(tokens[:, 0]))
    block.local = giving(extra[:, 0])
    torch.testing.assert_close(plain.transform(tokens, *mixed, weights, extra)[:, 0], block(tokens[:, 0]))

    decoder = PointDecoder(48, 3)
    found = plain.decode(tokens, decoder_weights(decoder.norm, decoder.mlp, torch.float32))
    torch.testing.assert_close(found, decoder(tokens, (20,)))


def test_no_kernels_without_a_gpu(caplog):
    _say_once.cache_clear()
    with caplog.at_level(logging.DEBUG, logger="vcnef"):
        for _ in range(3):
            assert not usable(torch.zeros(1, 1, 4, 16), heads=2)
    assert [record.getMessage() for record in caplog.records] == [
        "Plain code, no fused kernels: tokens are on cpu, not on a GPU."
    ]
