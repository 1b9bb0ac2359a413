"""Encoders of the initial state: a token per point, or per patch at several scales."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.nn.linear import map_few
from vcnef.nn.local import Layout, TokenGrid
from vcnef.nn.patches import continue_field, continue_grid, whole_sides
from vcnef.nn.unrounded import unrounded

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


def join_inputs(u0: Tensor, grid: Tensor, params: Tensor | None) -> Float[Tensor, "b *x i"]:
    """x ‖ u₀ ‖ p at every point, in the release's order; the parameters are the same everywhere."""
    space = u0.shape[:-1]
    parts = [grid.expand(*space, -1), u0]
    if params is not None:
        parts.append(params.view(params.shape[0], *[1] * (u0.ndim - 2), -1).expand(*space, -1))
    return torch.cat(parts, dim=-1)


class PointEncoder(nn.Module):
    """z_i = W (x_i ‖ u₀(x_i) ‖ p) + b: a token per point; points in any number and order."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, width)

    def layout(self, sides: tuple[int, ...]) -> Layout:
        return (TokenGrid(sides, sides),)

    def forward(
        self, u0: Float[Tensor, "b *x c"], grid: Float[Tensor, "_ *x D"], params: Float[Tensor, "b p"] | None
    ) -> Float[Tensor, "b s d"]:
        with unrounded(u0):
            return map_few(join_inputs(u0, grid, params).flatten(1, -2), self.linear.weight, self.linear.bias)


class PatchEncoder(nn.Module):
    """A token per patch of p points a side, for each patch size p; the tokens of all sizes stand in one row.

    Two convolutions without overlap, of size p/2 and 2, with GELU between: so the parameter counts and the authors'
    release have it, where the paper's equation has one linear map. Without overlap each is one product over its cells:
    libraries are slow at the gradients of such convolutions in single precision. Sides that are not whole patches are
    continued past their far edges, fields periodically or by their last values, coordinates by their spacing.
    """

    def __init__(self, ndim: int, inputs: int, width: int, patches: tuple[int, ...], *, periodic: bool) -> None:
        super().__init__()
        conv = CONV[ndim]
        self.ndim, self.patches, self.periodic = ndim, patches, periodic
        self.scales = nn.ModuleList(
            nn.Sequential(conv(inputs, width // 2, size // 2, size // 2), nn.GELU(), conv(width // 2, width, 2, 2))
            for size in patches
        )

    def layout(self, sides: tuple[int, ...]) -> Layout:
        whole = whole_sides(sides, self.patches)
        return tuple(
            TokenGrid(tuple(side // size for side in whole), tuple(side / size for side in sides))
            for size in self.patches
        )

    def forward(
        self, u0: Float[Tensor, "b *x c"], grid: Float[Tensor, "_ *x D"], params: Float[Tensor, "b p"] | None
    ) -> Float[Tensor, "b s d"]:
        sides = whole_sides(u0.shape[1:-1], self.patches)
        inputs = join_inputs(continue_field(u0, sides, self.periodic), continue_grid(grid, sides), params)
        with unrounded(u0):
            return torch.cat([self._embed(inputs, *each) for each in zip(self.patches, self.scales, strict=True)], 1)

    def _embed(self, inputs: Tensor, size: int, scale: nn.Sequential) -> Float[Tensor, "b s d"]:
        shrink, activation, join = scale
        cells = activation(F.linear(self._cells(inputs, size), shrink.weight.flatten(1), shrink.bias))
        return F.linear(cells.flatten(-2), join.weight.movedim(1, -1).flatten(1), join.bias)

    def _cells(self, inputs: Tensor, size: int) -> Float[Tensor, "b s cells i"]:
        """Patches in a row, the cells of each, and all inputs of a cell as the first convolution takes them."""
        axes = range(self.ndim)
        for axis in axes:
            inputs = inputs.unflatten(1 + 3 * axis, (-1, 2, size // 2))
        patches, cells, points = ([1 + part + 3 * axis for axis in axes] for part in range(3))
        apart = inputs.permute(0, *patches, *cells, -1, *points)
        return apart.flatten(1 + 2 * self.ndim).flatten(1 + self.ndim, 2 * self.ndim).flatten(1, self.ndim)
