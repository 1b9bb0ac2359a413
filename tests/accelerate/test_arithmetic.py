"""Without gradients, products, norms and activations are those of training, in fewer passes over memory."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import forward_ad

import vcnef
from vcnef.accelerate import arithmetic, predict
from vcnef.accelerate.arithmetic import TRAINING, inference, sigma
from vcnef.accelerate.engine import inference_engine, training_engine
from vcnef.accelerate.kernels.requirements import SWITCH
from vcnef.grid import cell_centres

CPU = torch.device("cpu")


@pytest.fixture
def asked(monkeypatch):
    """What oneDNN was asked to multiply."""
    calls, real = [], arithmetic._onednn
    for dtype in (torch.float32, torch.bfloat16):
        arithmetic.has_onednn(dtype)
    monkeypatch.setattr(arithmetic, "_onednn", lambda *given: calls.append(given) or real(*given))
    return calls


@pytest.mark.parametrize("activation", [None, nn.ReLU(), nn.ReLU(inplace=True), nn.GELU(), nn.GELU("tanh"), nn.SiLU()])
@torch.no_grad()
def test_a_product_in_one_pass_is_the_ordinary_one(activation, asked):
    layer, x = nn.Linear(7, 5), torch.randn(2, 3, 4, 7).transpose(1, 2)
    expected = F.linear(x, layer.weight, layer.bias)
    expected = expected if activation is None else activation(expected)
    torch.testing.assert_close(TRAINING.linear(x, layer, activation), expected)
    assert not asked
    torch.testing.assert_close(inference(CPU, None).linear(x, layer, activation), expected)
    assert len(asked) == (arithmetic.has_onednn(torch.float32) and not isinstance(activation, nn.SiLU))


@torch.no_grad()
def test_in_bf16_it_is_one_pass_too(asked):
    layer, x = nn.Linear(7, 5), torch.randn(3, 7)
    table = inference(CPU, torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        expected = F.linear(x, layer.weight, layer.bias).relu()
        found = table.linear(x, layer, nn.ReLU())
        assert table.linear(x.bfloat16(), layer, nn.ReLU()).dtype == found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)
    assert len(asked) == 2 * arithmetic.has_onednn(torch.bfloat16)


@torch.no_grad()
def test_the_ordinary_one_serves_other_types_other_devices_and_nothing_at_all(asked):
    layer, x = nn.Linear(4, 4), torch.randn(2, 4)
    table = inference(CPU, None)
    assert table.linear(x[:0], layer, None).shape == (0, 4)
    assert inference(torch.device("cuda"), torch.float16).linear(x, layer, None).shape == (2, 4)
    assert table.linear(x.double(), layer.double(), None).dtype == torch.float64
    assert not asked


@torch.no_grad()
def test_a_torch_without_the_operator_has_the_ordinary_one(monkeypatch):
    def missing(*given):
        raise AttributeError("no such operator")

    monkeypatch.setattr(arithmetic, "_onednn", missing)
    arithmetic.has_onednn.cache_clear()
    layer, x = nn.Linear(4, 4), torch.randn(2, 4)
    assert torch.equal(inference(CPU, None).linear(x, layer, None), F.linear(x, layer.weight, layer.bias))
    arithmetic.has_onednn.cache_clear()


def test_it_serves_predictions_alone_and_nobody_who_switches_it_off(asked, monkeypatch):
    model, question = tiny()
    predict(model, *question)
    assert bool(asked) == arithmetic.has_onednn(torch.float32)
    asked.clear()
    training_engine(model, CPU, None, compiled=False).forward(*question).sum().backward()
    assert model.modulations[0].mlp[0].weight.grad.any()
    monkeypatch.setenv(SWITCH, "0")
    predict(model, *question)
    assert not asked


@torch.no_grad()
def test_what_happens_in_place_touches_no_tokens():
    layer, norm, z = nn.Linear(8, 8), nn.LayerNorm(8), torch.randn(2, 1, 5, 8)
    given, update, table = z.clone(), torch.randn(2, 3, 5, 8), inference(CPU, None)
    torch.testing.assert_close(table.sigma_map(z, layer), sigma(layer(z)))
    torch.testing.assert_close(table.add_norm(z, None, None, norm), norm(z))
    torch.testing.assert_close(table.add_norm(z, update.clone(), None, norm), norm(z + update))
    assert torch.equal(z, given)


@torch.no_grad()
def test_a_sum_of_two_types_is_in_the_finer_of_them():
    norm, z, table = nn.LayerNorm(8), torch.randn(2, 1, 5, 8), inference(CPU, torch.bfloat16)
    update = torch.full((2, 1, 5, 8), 1e-3).bfloat16()
    for one, other in ((z, update), (update, z)):
        assert torch.equal(table.add_norm(one, other.clone(), None, norm), norm(z + update))


def test_derivatives_of_a_prediction_are_derivatives_still():
    """Taken forwards, without gradients: oneDNN's product has none, and would not say so."""
    model, (u0, grid, t) = tiny()
    rate, expected = torch.ones_like(t), model.encode(u0, grid)
    expected = torch.func.jvp(lambda t: model.query(expected, t), (t,), (rate,))
    assert expected[1].any()

    @torch.no_grad()
    def answer(t):
        engine = inference_engine(model, CPU, "fp16")
        (part,) = engine.query_in_parts(engine.encode(u0, grid, None), t, len(t))
        return part

    torch.testing.assert_close(torch.func.jvp(answer, (t,), (rate,)), expected)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(answer(forward_ad.make_dual(t, rate)))
    torch.testing.assert_close(tuple(found), expected)


def tiny():
    """A model and a question to it."""
    model = vcnef.build("vcnef", ndim=1, channels=1, width=8, heads=2, depth=1, modulations=2).eval()
    return model, (torch.randn(2, 6, 1), cell_centres(((0.0, 1.0),), (6,)), torch.rand(3))
