"""Latent representations of query times and points, kept as separable sums until they must meet."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.nn.blocks import FeedForward
from vcnef.nn.linear import map_few
from vcnef.nn.patches import continue_grid, patch_points, whole_sides
from vcnef.nn.unrounded import unrounded

FASTEST = 400.0
"""Of the clocks' rates at first, in radians from the initial state to the horizon: some 64 periods."""


class Coordinates(NamedTuple):
    """Space-time features c[t, s] = time[t] + space[s], stored as t + s rows instead of t · s.

    The leading axis has size 1 where all samples share times or points, which is the usual case, and b otherwise.
    """

    time: Float[Tensor, "b_or_1 t d"]
    space: Float[Tensor, "b_or_1 s d"]


class Line(NamedTuple):
    """What is a straight line in t: start + t · slope."""

    start: Float[Tensor, "*b s d"]
    slope: Float[Tensor, "*b d"]


class PeriodicFeatures(nn.Module):
    """x ↦ (sin 2πk x/L, cos 2πk x/L) for k = 1 … `frequencies` and every axis, of length L: smooth across the edges.

    In a domain that is not periodic x itself comes first, since its ends must be told apart.
    """

    def __init__(self, frequencies: int, lengths: tuple[float, ...], *, periodic: bool) -> None:
        super().__init__()
        self.frequencies, self.lengths, self.periodic = frequencies, lengths, periodic

    @property
    def count(self) -> int:
        return len(self.lengths) * (2 * self.frequencies + (not self.periodic))

    def forward(self, grid: Float[Tensor, "*x D"]) -> Float[Tensor, "*x f"]:
        parts = [] if self.periodic else [grid]
        periods = torch.arange(1, self.frequencies + 1, device=grid.device, dtype=grid.dtype)
        for axis, length in enumerate(self.lengths):
            angles = grid[..., axis, None] * (2 * math.pi / length) * periods
            parts += [angles.sin(), angles.cos()]
        return torch.cat(parts, dim=-1)


class LinearCoordinates(nn.Module):
    """c = W (t ‖ x) + b, the paper's encoding of points; W has one column for t and the others for x.

    `features` is the number of columns for x, or for what stands in its place. t is multiplied by `pace` before.
    """

    def __init__(self, features: int, width: int, pace: float = 1.0) -> None:
        super().__init__()
        self.linear, self.pace = nn.Linear(1 + features, width), pace

    def encode_space(self, grid: Float[Tensor, "b *x D"]) -> Float[Tensor, "b s d"]:
        with unrounded(grid):
            return map_few(grid.flatten(1, -2), self.linear.weight[:, 1:], self.linear.bias)

    def encode_time(self, t: Float[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        with unrounded(t):
            return map_few(self.pace * t.unsqueeze(-1), self.linear.weight[:, :1])

    def line(self, space: Float[Tensor, "b s d"]) -> Line:
        """c as a function of t."""
        return Line(space, self.pace * self.linear.weight[:, 0])


class Clocks(nn.Module):
    """t, p ↦ W (sin ωⱼ sᵢ(p) t ‖ cos ωⱼ sᵢ(p) t): time that passes as fast as the parameters say, to be added to c.

    A parameter is often a rate, of transport or of decay, so that what happens depends on p t; and a product of two
    inputs, as the phase of a fast wave, is what networks learn last. `speeds` has (a, b, logarithmic) for each
    parameter, with s = a + b p, or its exponential; the rates ωⱼ are learnt.
    """

    def __init__(self, count: int, width: int, speeds: tuple[tuple[float, float, bool], ...]) -> None:
        super().__init__()
        self.speeds = speeds
        self.log_rates = nn.Parameter(torch.linspace(0.0, math.log(FASTEST), count))
        self.out = nn.Linear(2 * count * len(speeds), width, bias=False)

    def forward(self, t: Float[Tensor, "b_or_1 t"], params: Float[Tensor, "b p"]) -> Float[Tensor, "b t d"]:
        with unrounded(t):
            columns = zip(params.unbind(-1), self.speeds, strict=True)
            speeds = [(a + b * each).exp() if log else a + b * each for each, (a, b, log) in columns]
            angles = t[..., None, None] * torch.stack(speeds, -1)[:, None, :, None] * self.log_rates.exp()
            return self.out(torch.cat((angles.sin(), angles.cos()), dim=-1).flatten(-2))


class FourierCoordinates(nn.Module):
    """c = PE(t) ‖ LFF(x₁) ‖ … ‖ LFF(x_g) for patches, half of the width for time and half for space.

    The paper encodes every point of a patch; its parameter counts and the authors' release leave room for g = 1 or 2:
    `points` = 1 is the patch's centre, 2 its first and last corner. Each patch size has its own LFF. t is multiplied by
    `pace` before.
    """

    def __init__(self, ndim: int, width: int, patches: tuple[int, ...], points: int, pace: float = 1.0) -> None:
        super().__init__()
        if width % (4 * points):
            raise ValueError(
                f"Width {width} cannot hold a time and {points} points per patch. Choose a multiple of {4 * points}."
            )
        self.half, self.patches, self.points, self.pace = width // 2, patches, points, pace
        self.fourier = nn.ModuleList(LearnableFourier(ndim, self.half, self.half // points) for _ in patches)

    def encode_space(self, grid: Float[Tensor, "b *x D"]) -> Float[Tensor, "b s d"]:
        grid = continue_grid(grid, whole_sides(grid.shape[1:-1], self.patches))
        rows = [
            fourier(patch_points(grid, size, self.points)).flatten(-2)
            for fourier, size in zip(self.fourier, self.patches, strict=True)
        ]
        # Zeros where time stands: a concatenation is a sum of padded vectors, so it is separable too.
        return F.pad(torch.cat(rows, dim=1), (self.half, 0))

    def encode_time(self, t: Float[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        return F.pad(sinusoidal(self.pace * t, self.half), (0, self.half))

    def line(self, space: Float[Tensor, "b s d"]) -> None:
        """c is none: it has sines of t."""


class LearnableFourier(nn.Module):
    """LFF(x) = MLP((cos(x W) ‖ sin(x W)) / √F) with F/2 learnable frequencies W (Li et al. 2021)."""

    def __init__(self, ndim: int, features: int, out: int) -> None:
        super().__init__()
        self.frequencies = nn.Linear(ndim, features // 2, bias=False)
        self.mlp = FeedForward(features, 32, nn.GELU, out)
        # About one period over a domain of length one; the paper gives no scale.
        nn.init.normal_(self.frequencies.weight, std=2 * math.pi)

    def forward(self, x: Float[Tensor, "*b D"]) -> Float[Tensor, "*b f"]:
        with unrounded(x):
            angles = self.frequencies(x)
            waves = torch.cat((angles.cos(), angles.sin()), dim=-1)
            return self.mlp(waves / math.sqrt(waves.shape[-1]))


def sinusoidal(t: Float[Tensor, "*b"], width: int, scale: float = 5000.0) -> Float[Tensor, "*b d"]:
    """PE(t) of Vaswani et al., sin and cos in turn, at the position `scale` · t: (0, 1] is spread over thousands.

    Angles are in single precision at least: half precision has no numbers between 4096 and 4100.
    """
    exact = t if t.dtype == torch.float64 else t.float()
    rates = torch.exp(torch.arange(0, width, 2, device=t.device, dtype=exact.dtype) * (-math.log(10000.0) / width))
    angles = exact.unsqueeze(-1) * scale * rates
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).to(t.dtype)
