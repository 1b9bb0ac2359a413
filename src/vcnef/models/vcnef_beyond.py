"""What goes beyond the paper, as parts of a VCNeF: periodic features, clocks, stencils, waves, interleaved grids."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import reduce
from itertools import product
from math import ceil, floor, prod
from operator import add
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.models.vcnef import Latent, VCNeF
from vcnef.nn.patching import whole_sides
from vcnef.nn.waves import Waves
from vcnef.periodicity import Periodic, per_axis

FASTEST = 400.0
"""The highest initial rate of a clock, in radians from the initial state to the horizon: some 64 periods."""

Speeds = tuple[tuple[float, float, bool], ...]


class PeriodicFeatures(nn.Module):
    """x ↦ (sin 2πk x/L, cos 2πk x/L) for k = 1 … `frequencies` and every axis, of length L: smooth across the edges.

    Along axes that are not periodic x itself comes first, since their ends must be told apart.
    """

    def __init__(self, frequencies: int, lengths: tuple[float, ...], *, periodic: Periodic) -> None:
        super().__init__()
        self.frequencies, self.lengths = frequencies, lengths
        self.ending = [axis for axis, closes in enumerate(per_axis(periodic, len(lengths))) if not closes]

    @property
    def count(self) -> int:
        return len(self.lengths) * 2 * self.frequencies + len(self.ending)

    def forward(self, grid: Float[Tensor, "*x D"]) -> Float[Tensor, "*x f"]:
        parts = [grid[..., axis, None] for axis in self.ending]
        periods = torch.arange(1, self.frequencies + 1, device=grid.device, dtype=grid.dtype)
        for axis, length in enumerate(self.lengths):
            angles = grid[..., axis, None] * (2 * math.pi / length) * periods
            parts += [angles.sin(), angles.cos()]
        return torch.cat(parts, dim=-1)


class Clocks(nn.Module):
    """t, p ↦ W (sin ωⱼ sᵢ(p) t ‖ cos ωⱼ sᵢ(p) t): time that passes as fast as the parameters say, added to c.

    A parameter is often a rate, of transport or of decay, so that the solution depends on p t; and a product of two
    inputs, like the phase of a fast wave, is what networks learn last. `speeds` has (a, b, logarithmic) for each
    parameter, with s = a + b p or its exponential; the rates ωⱼ are learnt.
    """

    def __init__(self, count: int, width: int, speeds: Speeds) -> None:
        super().__init__()
        self.speeds = speeds
        self.log_rates = nn.Parameter(torch.linspace(0.0, math.log(FASTEST), count))
        self.out = nn.Linear(2 * count * len(speeds), width, bias=False)

    def forward(self, t: Float[Tensor, "b_or_1 t"], params: Float[Tensor, "b p"]) -> Float[Tensor, "b t 1 d"]:
        speeds = []
        with torch.autocast(t.device.type, enabled=False):
            for p, (a, b, logarithmic) in zip(params.unbind(-1), self.speeds, strict=True):
                speed = a + b * p
                speeds.append(speed.exp() if logarithmic else speed)
            angles = t[..., None, None] * torch.stack(speeds, -1)[:, None, :, None] * self.log_rates.exp()
            return self.out(torch.cat((angles.sin(), angles.cos()), dim=-1).flatten(-2)).unsqueeze(2)


class InitialState(nn.Module):
    """u₀ at every time: added to the decoder's answer, the network gives the change since the initial state."""

    def forward(
        self, u: Float[Tensor, "b t *x c"], u0: Float[Tensor, "b *x i"], t: Float[Tensor, "b_or_1 t"]
    ) -> Float[Tensor, "b 1 *x c"]:
        return newest(u0, u.shape[-1]).unsqueeze(1)


class MeanRate(nn.Module):
    """What makes u₀ + t v of the decoder's answer v: the network gives the mean rate of change since the initial state.

    So the answer at t = 0 is the initial state, whatever was learnt, and times before the first frame of the data lie
    between two that are known.
    """

    def forward(
        self, v: Float[Tensor, "b t *x c"], u0: Float[Tensor, "b *x i"], t: Float[Tensor, "b_or_1 t"]
    ) -> Float[Tensor, "b t *x c"]:
        t = t.view(*t.shape, *[1] * (u0.ndim - 1))
        return newest(u0, v.shape[-1]).unsqueeze(1) + (t - 1) * v


def newest(u0: Float[Tensor, "b *x i"], channels: int) -> Float[Tensor, "b *x c"]:
    """Return the initial state of a history of frames, which stand in channels one after the other."""
    if u0.shape[-1] == channels:
        return u0
    return u0[..., -channels:]


class ConservedMeans(nn.Module):
    """What `start` adds to û, and mean u₀ − mean(û + start) of some channels: their means over the points stay.

    Of a grid whose points are the centres of equal cells, that is the integral over the domain: mass, momentum, energy.
    A constant is added to the field, which is the smallest change that does it. Units of fields must be linear in
    physical ones. `channels` are numbers, `count` is how many channels there are.
    """

    def __init__(self, start: nn.Module, channels: tuple[int, ...], count: int) -> None:
        super().__init__()
        self.start = start
        kept = torch.zeros(count)
        kept[list(channels)] = 1.0
        self.register_buffer("kept", kept, persistent=False)

    def forward(
        self, u: Float[Tensor, "b t *x c"], u0: Float[Tensor, "b *x i"], t: Float[Tensor, "b_or_1 t"]
    ) -> Float[Tensor, "b t ... c"]:
        added = self.start(u, u0, t)
        missing = (newest(u0, u.shape[-1]).unsqueeze(1) - u - added).mean(dim=tuple(range(2, u.ndim - 1)), keepdim=True)
        return added + self.kept * missing


# --- A stencil beside the attention ---------------------------------------------------------------------------------


class TokenGrid(NamedTuple):
    """A grid of tokens: how many there are along each axis, and how many of them the domain takes (fewer, or a part of
    one, where patches reach beyond it)."""

    sides: tuple[int, ...]
    extent: tuple[int | float, ...]


Taps = dict[tuple[int, ...], list[tuple[int, float]]]
"""Offsets in tokens -> which taps of the stencil act there, and with which share of their weight."""


def token_grids(sides: tuple[int, ...], patches: tuple[int, ...]) -> list[TokenGrid]:
    """Return the grids whose tokens stand in one row: one for each patch size, or that of the points."""
    if not patches:
        return [TokenGrid(sides, sides)]
    whole = whole_sides(sides, patches)
    grids = []
    for size in patches:
        tokens = tuple(side // size for side in whole)
        extent = tuple(side / size for side in sides)
        grids.append(TokenGrid(tokens, extent))
    return grids


class Stencil(nn.Module):
    """out_i = Σ_k w_k ∘ z(x_i + k h), |k| ≤ reach along every axis: a depth-wise convolution, zero at first.

    h is the spacing of the tokens on the training grid, which has these `sides` in points: on a grid twice as fine the
    stencil takes every second token, and between tokens it interpolates linearly. So a model meets a finer grid with
    the stencil that it has learnt. There is one for each patch size.
    """

    scattered = False

    def __init__(
        self, width: int, reach: int, sides: tuple[int, ...], patches: tuple[int, ...] = (), *, periodic: Periodic
    ) -> None:
        super().__init__()
        self.reach, self.patches, self.closes = reach, patches, per_axis(periodic, len(sides))
        self.extents = [grid.extent for grid in token_grids(sides, patches)]
        self.weight = nn.Parameter(torch.zeros(len(self.extents), (2 * reach + 1) ** len(sides), width))

    def forward(self, z: Float[Tensor, "*b s d"], sides: tuple[int, ...]) -> Float[Tensor, "*b s d"]:
        grids = token_grids(sides, self.patches)
        rows = z.split([prod(grid.sides) for grid in grids], dim=-2)
        mixed = []
        for which, (row, grid) in enumerate(zip(rows, grids, strict=True)):
            mixed.append(self.mix(row, which, grid))
        return torch.cat(mixed, dim=-2)

    def mix(self, row: Float[Tensor, "*b s d"], which: int, grid: TokenGrid) -> Float[Tensor, "*b s d"]:
        """Return the tokens of one of the grids, mixed by its stencil: a sum of shifted copies."""
        offsets, weights = self.taps(which, grid)
        field, margins = self.widen(row, offsets, grid)
        total = torch.zeros((), dtype=row.dtype, device=row.device)
        for offset, weight in zip(offsets, weights, strict=True):
            window = [slice(m + o, m + o + side) for m, o, side in zip(margins, offset, grid.sides, strict=True)]
            total = total + field[(..., *window, slice(None))] * weight
        return total.flatten(-1 - len(margins), -2)

    def taps(self, which: int, grid: TokenGrid) -> tuple[list[tuple[int, ...]], Float[Tensor, "k d"]]:
        """Return offsets in tokens of this grid, and the weight at each."""
        finer = [here / trained for here, trained in zip(grid.extent, self.extents[which], strict=True)]
        taps = spread_taps(self.reach, tuple(finer))
        if list(taps.values()) == [[(tap, 1)] for tap in range(self.weight.shape[1])]:
            return list(taps), self.weight[which]
        weights = []
        for shares in taps.values():
            parts = [share * self.weight[which, tap] for tap, share in shares]
            weights.append(reduce(add, parts))
        return list(taps), torch.stack(weights)

    def widen(
        self, row: Float[Tensor, "*b s d"], offsets: list[tuple[int, ...]], grid: TokenGrid
    ) -> tuple[Tensor, list[int]]:
        """Return the field of a row with margins as wide as the offsets reach, and these margins."""
        field, ndim = row.unflatten(-2, grid.sides), len(grid.sides)
        # The largest offset along each axis.
        margins = [max(map(abs, along)) for along in zip(*offsets, strict=True)]
        for axis, margin in enumerate(margins):
            field = continue_both_ways(field, axis - ndim - 1, margin, grid.extent[axis], self.closes[axis])
        return field, margins


def spread_taps(reach: int, ratios: tuple[float, ...]) -> Taps:
    """Return the taps on this grid: k stands k · ratio points away, and shares between points linearly."""
    spread = defaultdict(list)
    for tap, steps in enumerate(product(range(-reach, reach + 1), repeat=len(ratios))):
        ends = []
        for step, ratio in zip(steps, ratios, strict=True):
            x = step * ratio
            ends.append([(floor(x), 1 - (x - floor(x))), (floor(x) + 1, x - floor(x))])
        for corner in product(*ends):
            offsets, parts = zip(*corner, strict=True)
            share = prod(parts)
            if share:
                spread[offsets].append((tap, share))
    return dict(spread)


def continue_both_ways(field: Tensor, axis: int, margin: int, extent: int | float, periodic: bool) -> Tensor:
    """Return the field with `margin` more points at both ends of an axis: of its other end if periodic, else its last.

    Only its first `extent` points count: those behind them are replaced too. Where that is no whole number, a period
    away from a point is a place between two, and the field there is interpolated linearly.
    """
    length = field.shape[axis]
    if not margin:
        return field
    if periodic and margin <= length == extent:
        before, after = field.narrow(axis, length - margin, margin), field.narrow(axis, 0, margin)
        return torch.cat((before, field, after), dim=axis)
    index, points = torch.arange(-margin, length + margin, device=field.device), ceil(extent)
    if not periodic:
        return field.index_select(axis, index.clamp(0, points - 1))
    places = index % extent
    near = places.long()
    # From the last point to the seam, where the first one stands again, is less than a step.
    # A tensor comes first in the difference, for exporters to ONNX know it so only.
    share = (places - near) / near.neg().add(extent).clamp(max=1)
    share = share.to(field.dtype).view(-1, *[1] * (-1 - axis))
    return field.index_select(axis, near).lerp(field.index_select(axis, (near + 1) % points), share)


# --- Waves beside the attention --------------------------------------------------------------------------------------


class SpectralMixing(nn.Module):
    """out = F⁻¹(w_k ∘ (F z)_k) for wave numbers |k| ≤ `modes` along every axis, zero at first; w_k is complex.

    A convolution of each feature with a kernel as long as the domain: waves of every length travel and decay in one
    block, which stencils need many for and attention has no natural way to say. A mode is the same wave on every grid.
    Along axes that are not periodic, tokens are mirrored at the ends. There is one set of weights for each patch size.
    """

    scattered = False

    def __init__(self, ndim: int, width: int, modes: int, patches: tuple[int, ...] = (), *, periodic: Periodic) -> None:
        super().__init__()
        self.modes, self.patches, self.closes = modes, patches, per_axis(periodic, ndim)
        # Of a real field, the last axis has no negative wave numbers.
        numbers = (2 * modes + 1,) * (ndim - 1) + (modes + 1,)
        # Real and imaginary parts apart: optimisers and file formats need not know complex numbers.
        self.weight = nn.Parameter(torch.zeros(max(len(patches), 1), *numbers, width, 2))

    def forward(self, z: Float[Tensor, "*b s d"], sides: tuple[int, ...]) -> Float[Tensor, "*b s d"]:
        grids = token_grids(sides, self.patches)
        rows = z.split([prod(grid.sides) for grid in grids], dim=-2)
        with torch.autocast(z.device.type, enabled=False):
            mixed = [self.mix(*each) for each in zip(rows, self.weight, grids, strict=True)]
        return torch.cat(mixed, dim=-2)

    def mix(self, row: Float[Tensor, "*b s d"], weight: Tensor, grid: TokenGrid) -> Float[Tensor, "*b s d"]:
        """Return the tokens of one grid, filtered by its weights."""
        field = row.to(weight.dtype).reshape(-1, *grid.sides, row.shape[-1])
        waves = Waves(grid.sides, self.closes, self.modes, field)
        real, imaginary = waves.to_spectrum(field)
        w_real, w_imaginary = waves.choose(weight).unbind(-1)
        mixed = waves.to_points(
            real * w_real - imaginary * w_imaginary,
            real * w_imaginary + imaginary * w_real,
        )
        return mixed.view(row.shape)


# --- Patches of fixed physical size ---------------------------------------------------------------------------------


class FineLatent(NamedTuple):
    """The initial state on a fine grid, the latent of the coarse grids that make it, and how many of these there are
    along each axis."""

    u0: Float[Tensor, "b *x c"]
    coarse: Latent
    counts: tuple[int, ...]


class InterleavedVCNeF(VCNeF):
    """A VCNeF whose patches keep their physical size on finer grids.

    A grid that is k times as fine as that of training is read as kᴰ interleaved grids of its `sides`, which are samples
    of one batch. So at the points of the training grid the answer is the one that is given there.
    """

    def __init__(self, *parts: Any, training_sides: tuple[int, ...], **extras: Any) -> None:
        super().__init__(*parts, **extras)
        self.training_sides = training_sides

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        whole_times = self.training_sides == trained and prod(interleaved(sides, trained)) > 1
        return super().suits(sides, trained) or whole_times

    def encode(
        self,
        u0: Float[Tensor, "b *x i"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "b *x D"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> FineLatent:
        counts = interleaved(tuple(u0.shape[1:-1]), self.training_sides)
        return FineLatent(u0, super().encode(*take_apart(u0, grid, params, counts)), counts)

    def query(self, latent: FineLatent, t: Float[Tensor, " t"] | Float[Tensor, "b t"]) -> Float[Tensor, "b t *x c"]:
        shared = t.ndim == 1
        t = t.unsqueeze(0) if shared else t
        own = t if shared else t.repeat_interleave(prod(latent.counts), 0)
        u = together(self.decode(latent.coarse, own), latent.counts)
        return u + self.start(u, latent.u0, t)


def interleaved(sides: tuple[int, ...], coarse: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many grids of `coarse` sides make up this one along each axis; one where they do not."""
    if any(side % few for side, few in zip(sides, coarse, strict=True)):
        return (1,) * len(sides)
    return tuple(side // few for side, few in zip(sides, coarse, strict=True))


def take_apart(
    u0: Tensor, grid: Tensor, params: Tensor | None, counts: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return a question on a fine grid as one on each of its coarse grids."""
    several = prod(counts)
    if several == 1:
        return u0, grid, params
    grid = grid.expand(*u0.shape[:-1], grid.shape[-1])
    params = None if params is None else params.repeat_interleave(several, 0)
    return apart(u0, counts), apart(grid, counts), params


def apart(field: Float[Tensor, "b *x c"], counts: tuple[int, ...]) -> Float[Tensor, "_ *y c"]:
    """Return the interleaved grids of a field as samples, `counts` along each axis."""
    axes = range(len(counts))
    for axis in axes:
        field = field.unflatten(1 + 2 * axis, (-1, counts[axis]))
    grids_first = field.permute(0, *(2 + 2 * axis for axis in axes), *(1 + 2 * axis for axis in axes), -1)
    return grids_first.flatten(0, len(counts))


def together(fields: Float[Tensor, "_ t *y c"], counts: tuple[int, ...]) -> Float[Tensor, "b t *x c"]:
    """Return the inverse of `apart`, of trajectories."""
    if prod(counts) == 1:
        return fields
    order, time = [], 1 + len(counts)
    for axis in range(len(counts)):
        order += [time + 1 + axis, 1 + axis]
    field = fields.unflatten(0, (-1, *counts)).permute(0, time, *order, -1)
    for axis in range(len(counts)):
        field = field.flatten(2 + axis, 3 + axis)
    return field
