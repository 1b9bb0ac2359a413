"""Mixing of neighbours on regular grids, by a stencil that keeps its physical length at every resolution."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from math import ceil, floor, gcd, prod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.kernels.local import MOST_TAPS, Stencil


class TokenGrid(NamedTuple):
    """A grid's sides in tokens, and how many of these the domain takes: fewer, or parts, where patches go beyond it."""

    sides: tuple[int, ...]
    extent: tuple[int | float, ...]


Layout = tuple[TokenGrid, ...]
"""The grids whose tokens stand in one row."""

Taps = dict[tuple[int, ...], list[tuple[int, float]]]
"""Offsets in tokens -> which taps of the stencil act there, and with which share of their weight."""


class LocalMix(nn.Module):
    """out_i = Σ_k w_k ∘ z(x_i + k h), |k| ≤ reach along every axis: a depth-wise convolution, zero at first.

    h is the spacing of the `grids` it is made for, given by their extents in tokens: on a grid twice as fine the
    stencil takes every second token, and between tokens it interpolates linearly. So a model meets a finer grid with
    the stencil it has learnt. There is one for each of the grids whose tokens stand in one row.
    """

    def __init__(self, width: int, reach: int, grids: tuple[tuple[int | float, ...], ...], *, periodic: bool) -> None:
        super().__init__()
        self.reach, self.grids, self.periodic, self.ndim = reach, grids, periodic, len(grids[0])
        self.weight = nn.Parameter(torch.zeros(len(grids), (2 * reach + 1) ** self.ndim, width))

    def forward(self, tokens: Float[Tensor, "*b s d"], layout: Layout) -> Float[Tensor, "*b s d"]:
        rows = tokens.split([prod(here.sides) for here in layout], dim=-2)
        fields = [row.unflatten(-2, here.sides) for row, here in zip(rows, layout, strict=True)]
        extents = [here.extent for here in layout]
        mixed = [self._mix(*each) for each in zip(fields, extents, self.weight.unbind(), self.grids, strict=True)]
        return torch.cat([field.flatten(-1 - self.ndim, -2) for field in mixed], dim=-2)

    def stencils(self, layout: Layout) -> list[Stencil] | None:
        """Those of these grids as kernels take them, or None where they would not serve: where tokens go beyond the
        domain, or there are very many taps."""
        stencils = []
        for (sides, extent), grid, weight in zip(layout, self.grids, self.weight, strict=True):
            taps = spread_taps(self.reach, _ratios(extent, grid))
            if sides != extent or len(taps) > MOST_TAPS:
                return None
            stencils.append(Stencil(sides, tuple(taps), _shared(weight, taps).float(), self.periodic))
        return stencils

    def _mix(
        self,
        field: Tensor,
        extent: tuple[int | float, ...],
        weight: Float[Tensor, "taps d"],
        grid: tuple[int | float, ...],
    ) -> Tensor:
        sides = field.shape[-1 - self.ndim : -1]
        taps = spread_taps(self.reach, _ratios(extent, grid))
        margins = [max([abs(offset[axis]) for offset in taps]) for axis in range(self.ndim)]
        wide = field
        for axis, margin in enumerate(margins):
            wide = continue_both_ways(wide, axis - self.ndim - 1, margin, extent[axis], self.periodic)
        weight = _shared(weight, taps)
        if field.device.type == "cpu" and field.dtype == weight.dtype and not torch.compiler.is_compiling():
            return convolve(wide, list(taps), weight, margins)
        # A sum of shifted copies: compilers fuse it with what stands around it, unlike a convolution.
        total = None
        for offset, factor in zip(taps, weight, strict=True):
            window = [slice(m + o, m + o + side) for m, o, side in zip(margins, offset, sides, strict=True)]
            term = wide[(..., *window, slice(None))] * factor
            total = term if total is None else total + term
        return total


def convolve(
    wide: Float[Tensor, "*b d"], offsets: list[tuple[int, ...]], weights: Float[Tensor, "k d"], margins: list[int]
) -> Float[Tensor, "*c d"]:
    """Σ_o w_o ∘ z(x_i + o) as a convolution: on a processor three to eight times as fast as the sum.

    `wide` has `margins` more points at the ends of its axes. Taps that stand apart make a dilated kernel.
    """
    width, ndim, axes = wide.shape[-1], len(margins), list(zip(*offsets, strict=True))
    steps = [gcd(*along) or 1 for along in axes]
    places = [
        torch.tensor([(margin + offset) // step for offset in along])
        for margin, step, along in zip(margins, steps, axes, strict=True)
    ]
    sizes = [2 * margin // step + 1 for margin, step in zip(margins, steps, strict=True)]
    kernel = weights.new_zeros(*sizes, width).index_put(places, weights).movedim(-1, 0).unsqueeze(1)
    # Features stay last in memory, where the processor wants them. Of one axis it makes two by itself, but slowly.
    field = wide.reshape(-1, *wide.shape[-1 - ndim :]).movedim(-1, 1)
    if ndim == 1:
        field, kernel, steps = field.unsqueeze(2), kernel.unsqueeze(2), [1, *steps]
    out = (F.conv3d if ndim == 3 else F.conv2d)(field, kernel, dilation=steps, groups=width).movedim(1, -1)
    sides = [side - 2 * margin for side, margin in zip(wide.shape[-1 - ndim : -1], margins, strict=True)]
    return out.reshape(*wide.shape[: -1 - ndim], *sides, width)


def spread_taps(reach: int, ratios: tuple[float, ...]) -> Taps:
    """A tap k stands k · ratio points away; what falls between points is shared by its neighbours, linearly."""
    spread = defaultdict(list)
    for tap, steps in enumerate(product(range(-reach, reach + 1), repeat=len(ratios))):
        places = [step * ratio for step, ratio in zip(steps, ratios, strict=True)]
        ends = [[(floor(x), 1 - (x - floor(x))), (floor(x) + 1, x - floor(x))] for x in places]
        for corner in product(*ends):
            if share := prod([part for _, part in corner]):
                spread[tuple(offset for offset, _ in corner)].append((tap, share))
    return dict(spread)


def _ratios(extent: tuple[int | float, ...], grid: tuple[int | float, ...]) -> tuple[float, ...]:
    """How much finer a grid is than the one that the stencil is made for."""
    return tuple(here / made_for for here, made_for in zip(extent, grid, strict=True))


def _shared(weight: Float[Tensor, "taps d"], taps: Taps) -> Float[Tensor, "k d"]:
    """The weight at every offset."""
    if list(taps.values()) == [[(tap, 1)] for tap in range(len(weight))]:
        return weight
    return torch.stack([sum([share * weight[tap] for tap, share in shares]) for shares in taps.values()])


def continue_both_ways(field: Tensor, axis: int, margin: int, extent: int | float, periodic: bool) -> Tensor:
    """The field with `margin` more points at both ends of an axis: from its other end if periodic, else its last.

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
