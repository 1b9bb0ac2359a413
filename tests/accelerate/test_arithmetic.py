"""Linear maps in one pass are the ordinary ones, and leave alone what is not theirs."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import forward_ad
from vcnef.nn.attention import LinearAttention
from vcnef.nn.blocks import TransformerBlock
from vcnef.nn.linear import FEW, Linear, map_few, positive, positive_map
from vcnef.nn.norms import ResidualNorm

from vcnef.kernels.weights import SWITCH
from vcnef.nn import linear as module


@pytest.fixture
def asked(monkeypatch):
    """How often oneDNN was asked."""
    calls, real = [], module._linear_onednn
    monkeypatch.setattr(module, "_linear_onednn", lambda *given: calls.append(given) or real(*given))
    for dtype in (torch.float32, torch.bfloat16):
        module._has_onednn(dtype)
    calls.clear()
    return calls


@pytest.mark.parametrize("activation", [None, nn.ReLU(), nn.ReLU(inplace=True), nn.GELU(), nn.GELU("tanh"), nn.SiLU()])
def test_a_map_in_one_pass_is_the_ordinary_one(activation, asked):
    torch.manual_seed(0)
    linear, x = Linear(7, 5), torch.randn(2, 3, 4, 7).transpose(1, 2)
    expected = nn.functional.linear(x, linear.weight, linear.bias)
    expected = expected if activation is None else activation(expected)
    assert not asked
    with torch.no_grad():
        torch.testing.assert_close(linear(x, activation), expected)
    served = module._has_onednn(torch.float32) and not isinstance(activation, nn.SiLU)
    assert len(asked) == served


def test_autocasting_to_bf16_is_one_pass_too(asked):
    torch.manual_seed(0)
    linear, x = Linear(7, 5), torch.randn(3, 7)
    with torch.autocast("cpu", torch.bfloat16):
        expected = nn.functional.relu(nn.functional.linear(x, linear.weight, linear.bias))
        with torch.no_grad():
            found = linear(x, nn.ReLU())
            assert linear(x.bfloat16(), nn.ReLU()).dtype == found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)
    assert len(asked) == 2 * module._has_onednn(torch.bfloat16)


def test_the_ordinary_one_serves_gradients_other_types_and_those_who_ask_for_it(asked, monkeypatch):
    linear, x = Linear(4, 4), torch.randn(2, 4)
    linear(x, nn.ReLU()).sum().backward()
    assert linear.weight.grad.any()
    with torch.no_grad():
        Linear(4, 4).double()(x.double())
        assert linear(x[:0]).shape == (0, 4)
        with torch.autocast("cpu", torch.float16):
            assert linear(x).dtype == torch.float16
        monkeypatch.setenv(SWITCH, "0")
        linear(x)
    assert not asked


def test_a_torch_without_the_operator_has_the_ordinary_one(monkeypatch):
    def missing(*given):
        raise AttributeError("no such operator")

    monkeypatch.setattr(module, "_linear_onednn", missing)
    module._has_onednn.cache_clear()
    linear, x = Linear(4, 4), torch.randn(2, 4)
    with torch.no_grad():
        assert torch.equal(linear(x), nn.functional.linear(x, linear.weight, linear.bias))
    module._has_onednn.cache_clear()


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("features", [1, 3, FEW + 1])
def test_a_few_features_are_to_compilers_what_many_are(features, biased, monkeypatch):
    x, weight = torch.randn(2, 5, features, requires_grad=True), torch.randn(7, features, requires_grad=True)
    given = (x, weight, torch.randn(7, requires_grad=True)) if biased else (x, weight)
    expected = with_gradients(F.linear, given)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.testing.assert_close(with_gradients(map_few, given), expected)


def with_gradients(function, given):
    out = function(*given)
    return out, *torch.autograd.grad(out.square().sum(), given)


def test_what_happens_in_place_touches_nothing_that_was_given():
    torch.manual_seed(0)
    linear, norm, tokens = Linear(8, 8), ResidualNorm(8), torch.randn(2, 1, 5, 8)
    given = tokens.clone()
    expected = positive(linear(tokens)), norm(tokens, torch.ones(2, 3, 5, 8))
    with torch.no_grad():
        found = positive_map(linear, tokens), norm(tokens, torch.ones(2, 3, 5, 8))
    torch.testing.assert_close(found, expected)
    assert torch.equal(tokens, given)
    # A sum of two types is in the finer of them.
    half = torch.full((2, 1, 5, 8), 1e-3).bfloat16()
    with torch.no_grad():
        torch.testing.assert_close(norm(tokens, half), norm(tokens, half.float()), rtol=0, atol=0)


@torch.no_grad()
def test_derivatives_without_gradients_are_derivatives_still():
    torch.manual_seed(0)
    block = TransformerBlock(8, LinearAttention(8, 2), nn.GELU, dropout=0.0)
    tokens, direction = torch.randn(2, 2, 5, 8)
    with torch.enable_grad():
        expected = torch.func.jvp(block, (tokens,), (direction,))
    torch.testing.assert_close(torch.func.jvp(block, (tokens,), (direction,)), expected)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(block(forward_ad.make_dual(tokens, direction)))
    torch.testing.assert_close(tuple(found), expected)
    assert expected[1].any()
