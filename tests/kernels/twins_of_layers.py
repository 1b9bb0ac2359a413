"""What the layers with gradients must give: the same in plain PyTorch, differentiated by autograd."""

from itertools import product
from math import prod

import torch
import torch.nn.functional as F

from vcnef.kernels import layers
from vcnef.kernels.local import Stencil

EPS = 1e-5


def positive(x):
    return x.clamp(max=0).exp() + F.relu(x)


def attention(tokens, extra, weights, heads):
    *maps, scale, shift = weights
    query, key, value, join = zip(maps[::2], maps[1::2], strict=True)
    q, k, v = (F.linear(tokens, *each).unflatten(-1, (heads, -1)) for each in (query, key, value))
    q, k = positive(q), positive(k)
    state = torch.einsum("...she,...shf->...hef", k, v)
    normaliser = torch.einsum("...she,...he->...sh", q, k.sum(-3)) + 1e-6
    mixed = torch.einsum("...she,...hef->...shf", q, state) / normaliser.unsqueeze(-1)
    total = tokens + F.linear(mixed.flatten(-2), *join) + (0 if extra is None else extra)
    return F.layer_norm(total, tokens.shape[-1:], scale, shift, EPS)


def modulation(tokens, factor, field, weights):
    *scaling, weight, bias, scale, shift = weights
    factor = positive(F.linear(tokens, *scaling)) if factor is None else factor
    return F.layer_norm(tokens + F.linear(factor * field, weight, bias), tokens.shape[-1:], scale, shift, EPS)


def mlp(tokens, weights, activation):
    widen, widen_bias, narrow, narrow_bias, scale, shift = weights
    hidden = getattr(F, activation)(F.linear(tokens, widen, widen_bias))
    return F.layer_norm(tokens + F.linear(hidden, narrow, narrow_bias), tokens.shape[-1:], scale, shift, EPS)


def residual(tokens, update, bias, weights):
    total = tokens + sum(each for each in (update, bias) if each is not None)
    return F.layer_norm(total, tokens.shape[-1:], *weights, EPS)


def decoder(tokens, weights):
    scale, shift, first, first_bias, last, last_bias = weights
    normed = F.layer_norm(tokens, tokens.shape[-1:], scale, shift, EPS)
    return F.linear(F.gelu(F.linear(normed, first, first_bias)), last, last_bias)


def mixing(gram, key_sum, weights, heads):
    value, bias, join = weights
    within = torch.block_diag(*[torch.ones(len(value) // heads, len(value) // heads)] * heads).to(gram)
    return ((gram @ value.mT + key_sum.unsqueeze(-1) * bias) * within) @ join.mT


def neighbours(tokens, stencils):
    rows = tokens.split([prod(each.sides) for each in stencils], -2)
    return torch.cat([neighbours_on_grid(*each) for each in zip(rows, stencils, strict=True)], -2)


def neighbours_on_grid(tokens, stencil):
    field, axes = tokens.unflatten(-2, stencil.sides), tuple(range(-1 - len(stencil.sides), -1))
    moved = [field.roll([-step for step in offset], axes) for offset in stencil.offsets]
    return sum(each * tap for each, tap in zip(moved, stencil.weight, strict=True)).flatten(axes[0], -2)


def cases(width, heads, points, activation, *, shared=True, batch=2, times=3, device="cpu"):
    """Name, layer, twin and inputs of every layer, in every way that it may be asked."""

    def draw(*shape):
        return torch.randn(*shape, device=device)

    def linear(inputs, outputs):
        return [draw(outputs, inputs) / inputs**0.5, 0.3 * draw(outputs)]

    norm = [1 + 0.2 * draw(width), 0.2 * draw(width)]
    tokens, extra = draw(2, batch, times, points, width)
    once, factor = draw(batch, 1, points, width), draw(batch, 1, points, width).abs()
    field = draw(1 if shared else batch, times, points, width)
    square = linear(width, width)
    attended = [*square, *linear(width, width), *linear(width, width), *linear(width, width), *norm]
    modulated = [*square, *linear(width, width), *norm]
    widened = [*linear(width, 4 * width), *linear(4 * width, width), *norm]

    yield (
        "attention",
        lambda x, *w: layers.attention(x, None, list(w), heads, EPS),
        lambda x, *w: attention(x, None, w, heads),
        [tokens, *attended],
    )
    yield (
        "attention with extra",
        lambda x, e, *w: layers.attention(x, e, list(w), heads, EPS),
        lambda x, e, *w: attention(x, e, w, heads),
        [tokens, extra, *attended],
    )
    yield (
        "modulation",
        lambda x, c, *w: layers.modulation(x, None, c, list(w), EPS),
        lambda x, c, *w: modulation(x, None, c, w),
        [tokens, field, *modulated],
    )
    yield (
        "modulation with a factor",
        lambda x, f, c, *w: layers.modulation(x, f, c, list(w), EPS),
        lambda x, f, c, *w: modulation(x, f, c, w),
        [once, factor, field, *modulated[2:]],
    )
    yield (
        "mlp",
        lambda x, *w: layers.mlp(x, list(w), activation, EPS),
        lambda x, *w: mlp(x, w, activation),
        [tokens, *widened],
    )
    yield (
        "residual",
        lambda x, u, *w: layers.residual(x, u, None, list(w), EPS),
        lambda x, u, *w: residual(x, u, None, w),
        [tokens, extra, *norm],
    )
    yield (
        "residual with a bias",
        lambda x, u, b, *w: layers.residual(x, u, b, list(w), EPS),
        lambda x, u, b, *w: residual(x, u, b, w),
        [tokens, extra, square[1], *norm],
    )
    yield (
        "residual without an update",
        lambda x, *w: layers.residual(x, None, None, list(w), EPS),
        lambda x, *w: residual(x, None, None, w),
        [tokens, *norm],
    )
    yield (
        "gelu",
        layers.gelu,
        lambda x, b: F.gelu(x + b),
        [draw(batch, times, points, 5 * width), draw(5 * width)],
    )
    for channels in (1, 3):
        yield (
            f"decoder to {channels} channels",
            lambda x, *w: layers.decoder(x, list(w), EPS),
            lambda x, *w: decoder(x, w),
            [tokens, *norm, *square, *linear(width, channels)],
        )
    plane, volume = list(product((-2, 0, 2), (-1, 0, 1))), list(product((-1, 1), repeat=3))
    for grids in (
        [((points,), [(offset,) for offset in (-3, -2, -1, 0, 1, 2, 3)])],
        [((points,), [(-2 * points - 1,), (0,), (points,)])],
        [((points,), [(4,)])],
        [((3, 5), plane)],
        [((4, 3, 2), volume), ((1, 2, 3), volume[:5])],
    ):
        rows = draw(batch, times, sum(prod(sides) for sides, _ in grids), width)
        counts = [len(offsets) for _, offsets in grids]

        def stencils(weight, grids=grids, counts=counts):
            parts = zip(grids, weight.split(counts), strict=True)
            return [Stencil(sides, tuple(offsets), part, True) for (sides, offsets), part in parts]

        yield (
            f"neighbours {grids}",
            lambda x, w, stencils=stencils: layers.neighbours(x, stencils(w)),
            lambda x, w, stencils=stencils: neighbours(x, stencils(w)),
            [rows, draw(sum(counts), width)],
        )


def mixing_cases(width, heads, batch=3, times=3, device="cpu"):
    """The same of the layer whose heads have to be of certain widths."""

    def draw(*shape):
        return torch.randn(*shape, device=device)

    weights = [draw(width, width) / width**0.5, 0.3 * draw(width), draw(width, width) / width**0.5]
    yield (
        f"mixing {width // heads}",
        lambda g, k, *w: layers.mixing(g, k, list(w), heads),
        lambda g, k, *w: mixing(g, k, w, heads),
        [draw(batch, times, width, width), draw(batch, times, width).abs(), *weights],
    )


def values_and_gradients(function, inputs, dtype=None):
    """The output and the gradients of all inputs; `dtype` is that of the first input inside the function."""
    leaves = [each.detach().clone().requires_grad_() for each in inputs]
    out = function(leaves[0].to(dtype or leaves[0].dtype), *leaves[1:])
    upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out)
    return [out.detach(), *torch.autograd.grad(out, leaves, upstream)]


def change(found, expected):
    assert found.shape == expected.shape
    return float((found.double() - expected.double()).norm() / expected.double().norm())
