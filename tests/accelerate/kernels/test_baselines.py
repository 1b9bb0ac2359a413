"""The baselines define what is right; here they are held against equations of another form and against torch."""

from math import prod

import pytest
import torch
import torch.nn.functional as F

pytest.importorskip("triton")
from vcnef.accelerate.kernels import formulas
from vcnef.accelerate.kernels.operation import EPS, Sizes
from vcnef.accelerate.kernels.registry import OPERATIONS
from vcnef.accelerate.kernels.stencil import Stencil

SIZES = Sizes(16, 2, 7, batch=2, times=2)


def examples(name, sizes=SIZES):
    return {each.label.removeprefix(name).strip(): each for each in OPERATIONS[name].examples(sizes)}


@pytest.mark.parametrize("label", ["alone", "with extra"])
def test_attention_is_that_of_its_kernel_matrix(label):
    example = examples("attention")[label]
    tokens, extra, weights, heads, eps = example.arrange(*example.inputs)
    query, key, value, join, norm = formulas.pairs(weights)
    maps = [formulas.affine(tokens, each).unflatten(-1, (heads, -1)).transpose(-2, -3) for each in (query, key, value)]
    queries, keys, values = F.elu(maps[0]) + 1, F.elu(maps[1]) + 1, maps[2]
    shares = queries @ keys.mT
    mixed = (shares / shares.sum(-1, keepdim=True)) @ values
    total = tokens + formulas.affine(mixed.transpose(-2, -3).flatten(-2), join) + (0 if extra is None else extra)
    expected = F.layer_norm(total, (16,), norm.weight, norm.bias, eps)
    torch.testing.assert_close(example.baseline(*example.inputs), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_block_in_parts_is_the_layers_one_after_the_other(activation):
    """What inference computes and what training computes are one and the same."""
    example = examples("apply", Sizes(16, 2, 7, activation=activation))["with extra and a decoder"]
    tokens, _, _, field, weights, extra, decoder = example.arrange(*example.inputs)
    training = {name: operation.baseline for name, operation in OPERATIONS.items()}

    def stored(*parts):
        pairs = ((part.weight.mT if part.weight.ndim == 2 else part.weight, part.bias) for part in parts)
        return [tensor for pair in pairs for tensor in pair]

    projections = stored(weights.query, weights.key, weights.value, weights.join, weights.attention_norm)
    attended = training["attention"](tokens, extra, projections, weights.heads, EPS)
    modulating = stored(weights.scale, weights.out, weights.modulation_norm)
    modulated = training["modulation"](attended, None, field, modulating, EPS)
    widened = training["mlp"](modulated, stored(weights.widen, weights.narrow, weights.mlp_norm), activation, EPS)
    fields = training["decoder"](widened, stored(decoder.norm, decoder.first, decoder.second), EPS)

    mixed = training["mix"](tokens, weights)
    found = training["apply"](tokens, *mixed, field, weights, extra)
    torch.testing.assert_close(found, widened, rtol=1e-4, atol=1e-5)
    found = training["apply"](tokens, *mixed, field, weights, extra, decoder)
    torch.testing.assert_close(found, fields, rtol=1e-4, atol=1e-5)
    parts = training["attend"](tokens, *mixed, weights, extra)
    torch.testing.assert_close(training["modulate"](*parts, field, weights), widened, rtol=1e-4, atol=1e-5)
    found = training["transform"](tokens, *mixed, weights, extra)
    expected = training["mlp"](attended, stored(weights.widen, weights.narrow, weights.mlp_norm), activation, EPS)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_means_fit_half_precision_however_many_tokens():
    example = examples("mix", Sizes(16, 2, 50_000, batch=1, times=1, dtype=torch.float16))[""]
    mixing, key_mean = example.baseline(*example.inputs)
    assert mixing.dtype == torch.float16
    assert mixing.isfinite().all()
    assert key_mean.max() < 100


@pytest.mark.parametrize("periodic", [True, False])
def test_neighbours_are_a_convolution(periodic):
    sides, offsets = (5, 6), tuple((x, y) for x in (-1, 0, 1) for y in (-1, 0, 1))
    tokens, weight = torch.randn(2, prod(sides), 4), torch.randn(9, 4)
    found = OPERATIONS["neighbours"].baseline(tokens, [Stencil(sides, offsets, weight, periodic)])
    field = tokens.mT.unflatten(-1, sides)
    wide = F.pad(field, (1, 1, 1, 1), mode="circular" if periodic else "replicate")
    expected = F.conv2d(wide, weight.mT.reshape(4, 1, 3, 3), groups=4).flatten(-2).mT
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("kind", "decoupled"), [(torch.optim.Adam, False), (torch.optim.AdamW, True)])
def test_a_step_of_adam_is_that_of_torch(kind, decoupled):
    start = [torch.randn(5, 3), torch.randn(4, dtype=torch.complex64)]
    theirs = [torch.nn.Parameter(each.clone()) for each in start]
    optimiser = kind(theirs, lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.3)
    states = [(each, torch.zeros_like(each), torch.zeros_like(each)) for each in start]
    for count in range(1, 5):
        gradients = [torch.randn_like(each) for each in start]
        for weight, gradient in zip(theirs, gradients, strict=True):
            weight.grad = gradient.clone()
        optimiser.step()
        counted = [(*state, torch.tensor(float(count))) for state in states]
        found = OPERATIONS["adam"].baseline(counted, gradients, 0.1, (0.8, 0.95), 1e-3, 0.3, decoupled)
        states = [tuple(found[place : place + 3]) for place in range(0, len(found), 3)]
        for weight, state in zip(theirs, states, strict=True):
            torch.testing.assert_close(state[0], weight.detach(), rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(state[2], optimiser.state[weight]["exp_avg_sq"], rtol=1e-5, atol=1e-6)
