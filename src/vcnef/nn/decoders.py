"""Decoders: from tokens of the solution back to fields on the grid."""

from __future__ import annotations

from math import prod

import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.kernels import modulation as kernels
from vcnef.nn.blocks import FeedForward
from vcnef.nn.fused import pack_decoder
from vcnef.nn.norms import ResidualNorm
from vcnef.nn.patches import whole_sides

CONV_TRANSPOSE = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
CONV_TRANSPOSE_FUNCTION = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


class PointDecoder(nn.Module):
    """u_i = MLP(LN(z_i)), shared by all points."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.norm = ResidualNorm(width)
        self.mlp = FeedForward(width, width, nn.GELU, channels)

    def forward(self, tokens: Float[Tensor, "b t s d"], sides: tuple[int, ...]) -> Float[Tensor, "b t *x c"]:
        if (weights := pack_decoder(self.norm, self.mlp, tokens)) is not None:
            return kernels.decode(tokens, weights).unflatten(2, sides)
        return self.mlp(self.norm(tokens)).unflatten(2, sides)


class PatchDecoder(nn.Module):
    """u = Σ_p W_p up_p(MLP_p(LN(z_p))) + b: patches of each size p in a weighted sum over sizes and channels.

    up_p is two transposed convolutions without overlap. The weighted sum is linear, so it is folded into the second of
    them: the weights stay those of both layers, but no field of every size is stored. `shared_mlp` uses one MLP for all
    sizes, as the authors' release does; the paper's counts have one each.
    """

    def __init__(self, ndim: int, width: int, channels: int, patches: tuple[int, ...], *, shared_mlp: bool) -> None:
        super().__init__()
        conv = CONV_TRANSPOSE[ndim]
        self.ndim, self.patches = ndim, patches
        self.norm = ResidualNorm(width)
        self.mlps = nn.ModuleList(FeedForward(width, 2 * width, nn.GELU) for _ in patches[: 1 if shared_mlp else None])
        self.grow = nn.ModuleList(conv(width, width // 2, size // 2, size // 2) for size in patches)
        self.paint = nn.ModuleList(conv(width // 2, channels, 2, 2) for _ in patches)
        self.mix = nn.Linear(len(patches) * channels, channels)

    def forward(self, tokens: Float[Tensor, "b t s d"], sides: tuple[int, ...]) -> Float[Tensor, "b t *x c"]:
        whole = whole_sides(sides, self.patches)
        shapes = [tuple(side // size for side in whole) for size in self.patches]
        rows = self.norm(tokens).split([prod(shape) for shape in shapes], dim=2)
        mixing = rearrange(self.mix.weight, "o (k c) -> k o c", k=len(self.patches))

        field = self.mix.bias.view(-1, *[1] * self.ndim)
        for k, (row, shape) in enumerate(zip(rows, shapes, strict=True)):
            patches = rearrange(self.mlps[k % len(self.mlps)](row), "b t s d -> (b t) d s").unflatten(-1, shape)
            field = field + self._paint(F.gelu(self.grow[k](patches)), self.paint[k], mixing[k])

        inside = tuple(slice(side) for side in sides)
        return field[(..., *inside)].movedim(1, -1).unflatten(0, tokens.shape[:2])

    def _paint(self, patches: Tensor, paint: nn.Module, weights: Tensor) -> Tensor:
        kernel = einsum(paint.weight, weights, "i c ..., o c -> i o ...")
        return CONV_TRANSPOSE_FUNCTION[self.ndim](patches, kernel, weights @ paint.bias, stride=2)
