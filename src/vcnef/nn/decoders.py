"""Decoders: from tokens of the solution back to fields on the grid."""

from __future__ import annotations

from math import prod

import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.kernels import layers
from vcnef.kernels import modulation as kernels
from vcnef.nn.blocks import FeedForward
from vcnef.nn.fused import decoder_operands, gelu_of_map, learnt, pack_decoder
from vcnef.nn.local import Layout
from vcnef.nn.modulation import ModulationBlock
from vcnef.nn.norms import ResidualNorm
from vcnef.nn.patches import whole_sides
from vcnef.nn.unrounded import unrounded

CONV_TRANSPOSE = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}


class PointDecoder(nn.Module):
    """u_i = MLP(LN(z_i)), shared by all points."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.norm = ResidualNorm(width)
        self.mlp = FeedForward(width, width, nn.GELU, channels)

    def forward(self, tokens: Float[Tensor, "b t s d"], sides: tuple[int, ...]) -> Float[Tensor, "b t *x c"]:
        if (weights := pack_decoder(self.norm, self.mlp, tokens)) is not None:
            return kernels.decode(tokens, weights).unflatten(2, sides)
        if (dtype := decoder_operands(self.mlp, tokens)) is not None:
            learning = learnt(self.norm, self.mlp[0], self.mlp[2])
            return layers.decoder(tokens.to(dtype), learning, self.norm.eps).unflatten(2, sides)
        first, activation, last = self.mlp
        features = first(self.norm(tokens), activation)
        with unrounded(tokens):
            return last(features.to(last.weight.dtype)).unflatten(2, sides)


def decode_after(
    block: ModulationBlock,
    decoder: nn.Module,
    tokens: Float[Tensor, "b t_or_1 s d"],
    field: Float[Tensor, "b_or_1 t s d"],
    layout: Layout,
) -> Float[Tensor, "b t s c"] | None:
    """What a decoder of points makes of a block's answer, by one kernel for the end of both; None where none serves."""
    if not isinstance(decoder, PointDecoder) or (weights := pack_decoder(decoder.norm, decoder.mlp, tokens)) is None:
        return None
    return block.apply_packed(tokens, field, layout, weights)


class PatchDecoder(nn.Module):
    """u = Σ_p W_p up_p(MLP_p(LN(z_p))) + b: patches of each size p in a weighted sum over sizes and channels.

    up_p is two transposed convolutions without overlap, of size p/2 and 2, with GELU between. The weighted sum is
    linear, so it is folded into the second of them: the weights stay those of both layers, but no field of every size
    is stored. Without overlap each convolution is one product over tokens, and its pixels are put in place at the end.
    `shared_mlp` uses one MLP for all sizes, as the authors' release does; the paper's counts have one each.
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

        field = self.mix.bias
        for k, (row, shape) in enumerate(zip(rows, shapes, strict=True)):
            cells = self._grow(self.mlps[k % len(self.mlps)](row), self.grow[k])
            pixels = self._paint(cells, self.paint[k], mixing[k])
            field = field + self._arrange(pixels, shape, self.patches[k] // 2)
        inside = tuple(slice(side) for side in sides)
        return field[(..., *inside, slice(None))]

    def _grow(self, patches: Float[Tensor, "b t s d"], grow: nn.Module) -> Float[Tensor, "b t s cells e"]:
        weight = grow.weight.flatten(2).permute(2, 1, 0)
        cells = gelu_of_map(patches, weight.flatten(0, 1), grow.bias.repeat(len(weight)))
        return cells.unflatten(-1, weight.shape[:2])

    def _paint(self, cells: Tensor, paint: nn.Module, mixing: Tensor) -> Float[Tensor, "b t s cells pixels"]:
        weight = einsum(paint.weight, mixing, "e c ..., o c -> ... o e").flatten(0, -2)
        return F.linear(cells, weight, (mixing @ paint.bias).repeat(2**self.ndim))

    def _arrange(self, pixels: Tensor, shape: tuple[int, ...], cells: int) -> Float[Tensor, "b t *x c"]:
        """Pixels of cells of patches, axis by axis, to their places on the grid."""
        axes = range(self.ndim)
        apart = pixels.flatten(2).unflatten(2, (*shape, *(cells for _ in axes), *(2 for _ in axes), -1))
        order = [2 + axis + part * self.ndim for axis in axes for part in range(3)]
        together = apart.permute(0, 1, *order, -1)
        return together.reshape(*pixels.shape[:2], *(side * cells * 2 for side in shape), -1)
