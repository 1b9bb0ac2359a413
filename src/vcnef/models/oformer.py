"""Operator Transformer: from one frame to the next."""

from __future__ import annotations

from functools import partial
from math import pi

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.checks import check_at_least
from vcnef.models.interface import Stepper
from vcnef.models.rollout import Rollout
from vcnef.nn.layer_norm import LayerNorm, layer_norm
from vcnef.nn.layers import join_inputs


def rotate(tokens: Float[Tensor, "*b s e"], angles: Float[Tensor, "*#b s f"]) -> Float[Tensor, "*b s e"]:
    """Turn each pair (z_j, z_{j + e/2}) by the angle θ_j; ⟨rotate(q, θ), rotate(k, θ′)⟩ depends on θ − θ′ alone."""
    cos, sin = angles.cos(), angles.sin()
    first, second = tokens.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def attend(
    queries: Float[Tensor, "*#b s e"],
    keys: Float[Tensor, "*b n e"],
    values: Float[Tensor, "*b n e"],
    angles: Float[Tensor, "*#b n f"],
) -> Float[Tensor, "*b s e"]:
    """out_i = 1/n Σ_j ⟨R(x_i) q̂_i, R(x_j) k̂_j⟩ v_j, no softmax, so at linear cost as q (kᵀ v) / n.

    The hats are a quirk of the authors' code, kept here: their instance norm takes tokens for channels, and so gives
    each token mean 0 and variance 1 over its features, where their paper normalises each feature over the domain.
    """
    queries, keys = (rotate(layer_norm(each, each.shape[-1:]), angles) for each in (queries, keys))
    return queries @ (keys.mT @ values / keys.shape[-2])


@torch.no_grad()
def start_small(weight: Tensor) -> None:
    """Make each square block (orthogonal + identity) / width."""
    width = weight.shape[1]
    for block in weight.split(width):
        nn.init.orthogonal_(block, gain=1 / width)
        block.diagonal().add_(1 / width)


class GatedFeedForward(nn.Module):
    """z ↦ W (GELU(a) ⊙ b) with (a, b) = V z."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate, self.out = nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, tokens: Float[Tensor, "*b s d"]) -> Float[Tensor, "*b s d"]:
        opening, content = self.gate(tokens).chunk(2, dim=-1)
        return self.out(F.gelu(opening) * content)


class EncoderLayer(nn.Module):
    """z ↦ n + attention(n) with n = norm(z), then the same with a feed-forward: sums start from the *normed* tokens.

    One head as wide as the tokens and no projection after it. Without norms, n = z.
    """

    def __init__(self, width: int, *, norms: bool) -> None:
        super().__init__()
        self.project = nn.Linear(width, 3 * width, bias=False)
        self.feed_forward = GatedFeedForward(width)
        self.norms = nn.ModuleList(LayerNorm(width) if norms else nn.Identity() for _ in range(2))
        start_small(self.project.weight[2 * width :])

    def forward(self, tokens: Float[Tensor, "b s d"], angles: Float[Tensor, "*_ s f"]) -> Float[Tensor, "b s d"]:
        normed = self.norms[0](tokens)
        queries, keys, values = self.project(normed).chunk(3, dim=-1)
        normed = self.norms[1](normed + attend(queries, keys, values, angles))
        return normed + self.feed_forward(normed)


class CrossAttention(nn.Module):
    """From the tokens of the input to those of the query points, with heads as wide as the tokens."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, heads * width, bias=False)
        self.key_value = nn.Linear(width, 2 * heads * width, bias=False)
        self.out = nn.Linear(heads * width, width)
        start_small(self.query.weight)
        start_small(self.key_value.weight)

    def forward(
        self, points: Float[Tensor, "*_ s d"], tokens: Float[Tensor, "b s d"], angles: Float[Tensor, "*_ s f"]
    ) -> Float[Tensor, "b s d"]:
        keys, values = self.key_value(tokens).chunk(2, dim=-1)
        queries = self.query(points)
        by_head = partial(rearrange, pattern="... s (h e) -> ... h s e", h=self.heads)
        answers = attend(by_head(queries), by_head(keys), by_head(values), angles.unsqueeze(-3))
        return self.out(rearrange(answers, "b h s e -> b s (h e)"))


class Propagator(nn.Sequential):
    """z ↦ z + three linear maps with GELU between: a step in time, taken at every point for itself."""

    def __init__(self, width: int) -> None:
        maps = [nn.Linear(width, width, bias=False) for _ in range(3)]
        super().__init__(maps[0], nn.GELU(), maps[1], nn.GELU(), maps[2])
        for each in maps:
            start_small(each.weight)

    def forward(self, tokens: Float[Tensor, "b s d"]) -> Float[Tensor, "b s d"]:
        return tokens + super().forward(tokens)


class OFormer(Stepper):
    """u(t + Δt, x) = head(P₃ P₂ P₁ cross(γ(x), E₄ … E₁ (W (x ‖ u ‖ p) ‖ x))) in 1D (Li, Meidani & Farimani 2023).

    γ(x) = V GELU(sin 2πBx ‖ cos 2πBx), with B drawn from N(0, 2²) once and never trained. Positions enter attention as
    angles θ_j(x) = x · resolution · scale · 10000^(−2j/width).

    x is as it is given: in lengths of the domain where data are normalised, physical in the presets, as the paper's
    runs seem to have it. `resolution` is that of training, 256 in the paper, and stays on finer grids.
    The parameters p are inputs, so this is the paper's cOFormer too.
    """

    uneven = True
    frequencies: Tensor
    turns: Tensor

    def __init__(
        self,
        channels: int,
        params: int,
        *,
        width: int,
        scales: tuple[int, ...],
        heads: int,
        propagators: int,
        resolution: int | float,
        norms: bool,
    ) -> None:
        super().__init__()
        self.ndim, self.channels, self.params, self.scales = 1, channels, params, scales
        self.lift = nn.Linear(channels + 1 + params, width - 1, bias=False)
        self.encoder = nn.ModuleList(EncoderLayer(width, norms=norms) for _ in scales)
        self.latent = nn.Linear(width, width, bias=False)
        self.register_buffer("frequencies", 2 * torch.randn(width))
        self.points = nn.Linear(2 * width, width, bias=False)
        self.cross, self.feed_forward = CrossAttention(width, heads), GatedFeedForward(width)
        self.propagate = nn.Sequential(*(Propagator(width) for _ in range(propagators)))
        self.head = nn.Sequential(nn.Linear(width, width // 2, bias=False), nn.GELU(), nn.Linear(width // 2, channels))
        turns = resolution * 10_000 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("turns", turns, persistent=False)

    def forward(
        self,
        u: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "_ *x D"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> Float[Tensor, "b *x c"]:
        # Not a matrix product, which would round the angles where training is in half precision.
        angles, phases = grid * self.turns, 2 * pi * grid * self.frequencies
        tokens = torch.cat([self.lift(join_inputs(u, grid, params)), grid.expand(*u.shape[:-1], 1)], dim=-1)
        for layer, scale in zip(self.encoder, self.scales, strict=True):
            tokens = layer(tokens, scale * angles)
        points = self.points(F.gelu(torch.cat([phases.sin(), phases.cos()], dim=-1)))
        answers = points + self.cross(points, self.latent(tokens), angles)
        return self.head(self.propagate(answers + self.feed_forward(answers)))


def oformer(
    ndim: int,
    channels: int,
    params: int = 0,
    *,
    steps: int = 40,
    width: int = 96,
    scales: tuple[int, ...] = (8, 4, 4, 1),
    heads: int = 8,
    propagators: int = 3,
    resolution: int | float = 256,
    norms: bool | None = None,
) -> Rollout:
    """Operator Transformer in 1D, rolled out: autoregressive, `steps` steps to the training horizon.

    steps: applications of the network to the training horizon, one per frame.
    width: features of a token.
    scales: factors of the coordinate in the rotary embedding, one per encoder layer.
    heads: those of the cross-attention; self-attention has one.
    propagators: number of networks that are applied one after the other to go on by one step.
    resolution: points per unit length in training; where data are normalised, the domain's longest side is the unit.
    norms: layer norms in the encoder; by default only with several channels, as the paper's counts have it.
    """
    if ndim != 1:
        raise ValueError(f"ndim is {ndim!r}; expected 1, since OFormer is here for 1D only.")
    if width < 2 or width % 2:
        raise ValueError(f"width is {width}; expected an even number, since features are turned in pairs.")
    check_at_least(1, heads=heads, propagators=propagators)
    sizes = {"width": width, "scales": tuple(scales), "heads": heads, "propagators": propagators}
    norms = channels > 1 if norms is None else norms
    return Rollout(OFormer(channels, params, **sizes, resolution=resolution, norms=norms), steps)
