"""UNet: convolutions from fine to coarse and back, from one frame to the next."""

from __future__ import annotations

from functools import partial
from itertools import accumulate, pairwise, starmap
from math import gcd
from operator import mul
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.models.interface import Stepper
from vcnef.models.rollout import Rollout
from vcnef.nn.ends import conv_of_three, widen
from vcnef.nn.layers import CONV, CONV_TRANSPOSE, FeedForward, sinusoidal
from vcnef.nn.patching import continue_field, whole_sides
from vcnef.periodicity import Periodic, per_axis

MULTIPLIERS = {1: (1, 2, 3), 2: (1, 2, 2, 4), 3: (1, 2, 2, 4)}
"""How much wider each level is than the one above; in 1D and 2D those that give the paper's parameter counts."""

STEP = 0.3
"""The network's answer is scaled by this, as in PDE-Refiner and the paper."""


class UNet(Stepper):
    """u(t + Δt) = u + 0.3 · net(u, e), e = MLP₀(γ(0)) + Σ_k MLP_k(γ(s · p_k)), in 1D, 2D and 3D.

    PDEArena's modern UNet with conditioning (Gupta and Brandstetter 2023): residual blocks on every level, half the
    points and more channels from one level to the next, and what each block gave on the way down joined to the input
    of its partner on the way up. γ are sines and cosines, s is `parameter_scale`. Untrained, it is the identity.

    The published count includes an MLP for the time, which no one feeds: here it is given 0, so that it has a gradient
    and merely learns a constant. A grid whose sides the coarsest cells do not divide is continued past its far edges
    and the answer there is dropped, which leaves a seam where a periodic domain closes.
    """

    def __init__(
        self,
        ndim: int,
        channels: int,
        params: int,
        *,
        width: int,
        multipliers: tuple[int, ...],
        blocks: int,
        periodic: Periodic,
        parameter_scale: float,
    ) -> None:
        super().__init__()
        self.ndim, self.channels, self.params = ndim, channels, params
        self.width, self.closes, self.parameter_scale = width, per_axis(periodic, ndim), parameter_scale
        self.coarsest = 2 ** (len(multipliers) - 1)
        embedding = 4 * width
        self.time = FeedForward(width, embedding, nn.GELU, embedding)
        self.embed = nn.ModuleList(FeedForward(width, embedding, nn.GELU, embedding) for _ in range(params))

        conv = partial(conv_of_three, self.closes)
        block = partial(Residual, self.closes, embedding=embedding)
        widths = list(accumulate(multipliers, mul, initial=width))
        levels = list(pairwise(widths))
        # The stem enters the finest level, the head leaves it; halving and doubling do so for the others.
        self.enter = nn.ModuleList([conv(channels, width), *(conv(above, above, stride=2) for above, _ in levels[1:])])
        self.down = nn.ModuleList()
        for above, here in levels:
            pairs = [(above, here), *[(here, here)] * (blocks - 1)]
            self.down.append(nn.ModuleList(starmap(block, pairs)))
        self.middle = nn.ModuleList(block(widths[-1], widths[-1]) for _ in range(2))
        self.up = nn.ModuleList()
        for above, here in reversed(levels):
            pairs = [*[(2 * here, here)] * blocks, (here + above, above)]
            self.up.append(nn.ModuleList(starmap(block, pairs)))
        head = nn.Sequential(nn.GroupNorm(gcd(8, width), width), nn.GELU(), zeroed(conv(width, channels)))
        self.leave = nn.ModuleList([*(Double(self.closes, above) for above, _ in reversed(levels[1:])), head])

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        """Convolutions take so many points, whatever their distance."""
        return sides == trained

    def forward(
        self,
        u: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "_ *x D"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> Float[Tensor, "b *x c"]:
        sides = u.shape[1:-1]
        whole = continue_field(u, whole_sides(sides, (self.coarsest,)), self.closes)
        change = self._net(whole.movedim(-1, 1), self._embedding(u, params)).movedim(1, -1)
        inside = tuple(slice(side) for side in sides)
        return u + STEP * change[(slice(None), *inside)]

    def _net(self, field: Float[Tensor, "b c *x"], embedding: Float[Tensor, "b e"]) -> Float[Tensor, "b c *x"]:
        skips = []
        for enter, blocks in zip(self.enter, self.down, strict=True):
            field = enter(field)
            skips.append(field)
            for block in cast(nn.ModuleList, blocks):
                field = block(field, embedding)
                skips.append(field)
        for block in self.middle:
            field = block(field, embedding)
        for blocks, leave in zip(self.up, self.leave, strict=True):
            for block in cast(nn.ModuleList, blocks):
                field = block(torch.cat((field, skips.pop()), dim=1), embedding)
            field = leave(field)
        return field

    def _embedding(self, u: Tensor, params: Tensor | None) -> Float[Tensor, "b e"]:
        embedding = self.time(sinusoidal(u.new_zeros(len(u)), self.width))
        if params is None:
            return embedding
        for number, embed in enumerate(self.embed):
            embedding = embedding + embed(sinusoidal(params[:, number], self.width, self.parameter_scale))
        return embedding


class Residual(nn.Module):
    """v ↦ shortcut(v) + conv₂(act(norm(conv₁(act(norm(v))) + W e))), with conv₂ zero at first."""

    def __init__(self, closes: tuple[bool, ...], inputs: int, out: int, *, embedding: int) -> None:
        super().__init__()
        conv = partial(conv_of_three, closes)
        self.first = nn.Sequential(nn.GroupNorm(1, inputs), nn.GELU(), conv(inputs, out))
        self.condition = nn.Linear(embedding, out)
        self.second = nn.Sequential(nn.GroupNorm(1, out), nn.GELU(), zeroed(conv(out, out)))
        self.shortcut = nn.Identity() if inputs == out else CONV[len(closes)](inputs, out, 1)

    def forward(self, field: Float[Tensor, "b i *x"], embedding: Float[Tensor, "b e"]) -> Float[Tensor, "b o *x"]:
        condition = self.condition(embedding)
        condition = condition.view(*condition.shape, *[1] * (field.ndim - 2))
        return self.shortcut(field) + self.second(self.first(field) + condition)


class Double(nn.Module):
    """Twice the points along every axis: a transposed convolution of 4 points, 2 apart."""

    def __init__(self, closes: tuple[bool, ...], width: int) -> None:
        super().__init__()
        # Torch has no circular transposed convolution: one more coarse point at either end, three fine ones off.
        self.border = [int(each) for each in closes]
        padding = [1 + 2 * border for border in self.border]
        self.conv = CONV_TRANSPOSE[len(closes)](width, width, 4, stride=2, padding=padding)

    def forward(self, field: Float[Tensor, "b d *x"]) -> Float[Tensor, "b d *y"]:
        if any(self.border):
            field = widen(field, self.border, mode="circular")
        return self.conv(field)


def zeroed(conv: nn.Module) -> nn.Module:
    """Return the same module with all weights 0: what it belongs to begins as if it were not there."""
    for weight in conv.parameters():
        nn.init.zeros_(weight)
    return conv


def unet(
    ndim: int,
    channels: int,
    params: int = 0,
    *,
    steps: int = 40,
    width: int = 16,
    multipliers: tuple[int, ...] | None = None,
    blocks: int = 2,
    periodic: Periodic = True,
    parameter_scale: float = 1.0,
) -> Rollout:
    """UNet of PDEArena, rolled out: autoregressive, `steps` steps to the training horizon, each a residual.

    steps: applications of the network to the training horizon, one per frame.
    width: channels on the finest level, an even number.
    multipliers: how much wider each level is than the one above; there are half the points from one to the next.
    blocks: residual blocks per level on the way down; there is one more on the way up.
    periodic: whether convolutions go on at the other end of the domain, or meet zeros beyond its ends: true or false,
        or one of them for each axis.
    parameter_scale: factor before the sines of the parameters: 1 for normalised ones, since larger factors generalise
        badly between the values of training; 1000 for raw ones such as 0.001, not told from 0 otherwise.
    """
    if ndim not in MULTIPLIERS:
        raise ValueError(f"ndim is {ndim!r}; expected 1, 2 or 3.")
    if width < 2 or width % 2:
        raise ValueError(f"width is {width}; expected an even number, as many sines as cosines.")
    factors = MULTIPLIERS[ndim]
    if multipliers is not None:
        factors = tuple(multipliers)
    if blocks < 1 or not factors or min(factors) < 1:
        raise ValueError(f"blocks is {blocks} and multipliers {factors}; expected numbers of at least 1.")
    sizes = {"width": width, "multipliers": factors, "blocks": blocks}
    return Rollout(UNet(ndim, channels, params, **sizes, periodic=periodic, parameter_scale=parameter_scale), steps)
