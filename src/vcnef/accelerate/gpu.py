"""Blocks and decoders by fused kernels on a GPU, in half precision; imports Triton, so only where it is installed.

A block of up to 128 features runs as kernels of whole layers: `PackedBlock` without gradients, `TrainedBlock` with
them. In wider ones the products are the library's, and `half_arithmetic` has kernels for what stands around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.accelerate.arithmetic import TRAINING, Arithmetic, inference, mixing
from vcnef.accelerate.blocks import Begun, Coordinates, LayeredBlock, OwnCoordinates, Sides
from vcnef.accelerate.kernels.activation import GELU
from vcnef.accelerate.kernels.attention import ATTENTION
from vcnef.accelerate.kernels.decoder import DECODE, DECODER
from vcnef.accelerate.kernels.inference import APPLY, ATTEND, MODULATE, TRANSFORM
from vcnef.accelerate.kernels.mix import MIX
from vcnef.accelerate.kernels.mixing import MIXING
from vcnef.accelerate.kernels.mlp import MLP
from vcnef.accelerate.kernels.modulation import MODULATION
from vcnef.accelerate.kernels.neighbours import MIX_NEIGHBOURS, NEIGHBOURS
from vcnef.accelerate.kernels.residual import RESIDUAL
from vcnef.accelerate.kernels.stencil import MOST_TAPS
from vcnef.accelerate.kernels.stencil import Stencil as GridStencil
from vcnef.accelerate.kernels.weights import BlockWeights, DecoderWeights
from vcnef.models.vcnef import LinearAttention, ModulationBlock, PointDecoder
from vcnef.models.vcnef_beyond import Stencil, token_grids

ACTIVATIONS = {nn.ReLU: "relu", nn.GELU: "gelu"}

Local = Callable[[Tensor, Sides], Tensor]


def learnt(*layers: nn.Module) -> list[Tensor]:
    """Weight, bias, weight, bias, … as the operations with gradients take them."""
    tensors = []
    for layer in layers:
        tensors += [layer.weight, layer.bias]
    return tensors


# --- Blocks up to 128 features --------------------------------------------------------------------------------------


class PackedBlock:
    """A block without gradients, in two or three kernels.

    Its weights are packed once, when they are first needed: the GPU then has the blocks before it to compute.
    """

    def __init__(self, layered: LayeredBlock, operands: torch.dtype) -> None:
        self.block, self.layered, self.local, self.operands = layered.block, layered, layered.local, operands

    @cached_property
    def weights(self) -> BlockWeights:
        block = self.block
        layers = {
            "query": block.attention.query,
            "key": block.attention.key,
            "value": block.attention.value,
            "join": block.attention.out,
            "attention_norm": block.attention_norm,
            "widen": block.mlp[0],
            "narrow": block.mlp[2],
            "mlp_norm": block.mlp_norm,
        }
        if type(block) is ModulationBlock:
            layers |= {"scale": block.scale, "out": block.out, "modulation_norm": block.modulation_norm}
        return BlockWeights.pack(
            self.operands,
            heads=block.attention.heads,
            activation=ACTIVATIONS[type(block.mlp[1])],
            eps=block.mlp_norm.eps,
            **{name: (layer.weight, layer.bias) for name, layer in layers.items()},
        )

    def transform(self, z: Float[Tensor, "b s d"], sides: Sides) -> Float[Tensor, "b s d"]:
        alone = z.unsqueeze(1)
        return TRANSFORM(alone, *MIX(alone, self.weights), self.weights, self.extra(alone, sides)).squeeze(1)

    def field(self, coordinates: Coordinates | OwnCoordinates) -> Float[Tensor, "b_or_1 t s d"]:
        return self.layered.field(coordinates)

    def begin(self, z: Float[Tensor, "b 1 s d"], sides: Sides) -> Begun:
        return Begun(*ATTEND(z, *MIX(z, self.weights), self.weights, self.extra(z, sides)))

    def finish(self, begun: Begun, field: Float[Tensor, "b_or_1 t s d"]) -> Float[Tensor, "b t s d"]:
        return MODULATE(begun.z, begun.scale, field, self.weights)

    def apply(
        self, z: Tensor, field: Float[Tensor, "b_or_1 t s d"], sides: Sides, decoder: DecoderWeights | None = None
    ) -> Float[Tensor, "b t s d_or_c"]:
        """Return the tokens after the block or, with a decoder, the fields that it makes of them."""
        return APPLY(z, *MIX(z, self.weights), field, self.weights, self.extra(z, sides), decoder)

    def extra(self, z: Tensor, sides: Sides) -> Tensor | None:
        if self.local is None:
            return None
        return self.local(z, sides)


class TrainedBlock:
    """A block with gradients, one operation per layer; an attention that is not known is called as it is."""

    def __init__(self, layered: LayeredBlock, dtype: torch.dtype) -> None:
        self.block, self.layered, self.dtype = layered.block, layered, dtype

    def transform(self, z: Float[Tensor, "b s d"], sides: Sides) -> Float[Tensor, "b s d"]:
        return self.feed(self.attend(z, sides))

    def field(self, coordinates: Coordinates | OwnCoordinates) -> Float[Tensor, "b_or_1 t s d"]:
        return self.layered.field(coordinates)

    def begin(self, z: Float[Tensor, "b 1 s d"], sides: Sides) -> Begun:
        z = self.attend(z, sides)
        return Begun(z, self.layered.arithmetic.sigma_map(z, self.block.scale))

    def finish(self, begun: Begun, field: Float[Tensor, "b_or_1 t s d"]) -> Float[Tensor, "b t s d"]:
        norm = self.block.modulation_norm
        return self.feed(MODULATION(begun.z, begun.scale, field, learnt(self.block.out, norm), norm.eps))

    def apply(self, z: Tensor, field: Float[Tensor, "b_or_1 t s d"], sides: Sides) -> Float[Tensor, "b t s d"]:
        block, norm = self.block, self.block.modulation_norm
        weights = learnt(block.scale, block.out, norm)
        return self.feed(MODULATION(self.attend(z, sides), None, field, weights, norm.eps))

    def attend(self, z: Float[Tensor, "*b s d"], sides: Sides) -> Float[Tensor, "*b s d"]:
        z = z.to(self.dtype)
        if not self.layered.linear:
            return self.layered.attend(z, sides)
        attention, norm, local = self.block.attention, self.block.attention_norm, self.layered.local
        extra = None
        if local is not None:
            extra = local(z, sides)
        weights = learnt(attention.query, attention.key, attention.value, attention.out, norm)
        return ATTENTION(z, extra, weights, attention.heads, norm.eps)

    def feed(self, z: Float[Tensor, "*b s d"]) -> Float[Tensor, "*b s d"]:
        widen, activation, narrow = self.block.mlp
        norm = self.block.mlp_norm
        return MLP(z, learnt(widen, narrow, norm), ACTIVATIONS[type(activation)], norm.eps)


# --- Decoders of points ---------------------------------------------------------------------------------------------


class PackedDecoder:
    """LN and the MLP in one kernel, which the last block's may take in."""

    def __init__(self, decoder: PointDecoder, operands: torch.dtype) -> None:
        self.decoder, self.operands = decoder, operands

    @cached_property
    def weights(self) -> DecoderWeights:
        decoder = self.decoder
        layers = {"norm": decoder.norm, "first": decoder.mlp[0], "second": decoder.mlp[2]}
        pairs = {name: (layer.weight, layer.bias) for name, layer in layers.items()}
        return DecoderWeights.pack(self.operands, eps=decoder.norm.eps, **pairs)

    def __call__(self, z: Float[Tensor, "b t s d"], sides: Sides) -> Float[Tensor, "b t *x c"]:
        return DECODE(z, self.weights).unflatten(2, sides)


def trained_decoder(decoder: PointDecoder, dtype: torch.dtype) -> Callable[[Tensor, Sides], Tensor]:
    def decode(z: Float[Tensor, "b t s d"], sides: Sides) -> Float[Tensor, "b t *x c"]:
        weights = learnt(decoder.norm, decoder.mlp[0], decoder.mlp[2])
        return DECODER(z.to(dtype), weights, decoder.norm.eps).unflatten(2, sides)

    return decode


# --- Wider blocks ---------------------------------------------------------------------------------------------------


def half_arithmetic(
    device: torch.device, dtype: torch.dtype, attentions: Iterable[LinearAttention], *, training: bool
) -> Arithmetic:
    """Norms, GELU and the mixing matrix as kernels, under autocasting to `dtype`: compilers make several of each, and
    keep tokens in single precision between them.

    Which of the `attentions` a kernel mixes is asked here: asked while a step is compiled, the answer would cut the
    step in pieces, and gradients be added up between them.
    """
    sizes = {(each.out.out_features, each.heads) for each in attentions}
    mixed = {size for size in sizes if MIXING.obstacle(device, dtype, *size) is None}

    def add_norm(z: Tensor, update: Tensor | None, bias: Tensor | None, norm: nn.LayerNorm) -> Tensor:
        if update is not None:
            z = z.expand_as(update)
        return RESIDUAL(z.to(dtype), update, bias, learnt(norm), norm.eps)

    def gelu_map(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return GELU(F.linear(x, weight), bias)

    def linear(x: Tensor, layer: nn.Linear, activation: nn.Module | None = None) -> Tensor:
        if type(activation) is nn.GELU:
            return gelu_map(x, layer.weight, layer.bias)
        return TRAINING.linear(x, layer, activation)

    def mixing_matrix(gram: Tensor, key_sum: Tensor, attention: LinearAttention) -> Tensor:
        if (gram.shape[-1], attention.heads) not in mixed:
            return mixing(gram, key_sum, attention)
        weights = [attention.value.weight, attention.value.bias, attention.out.weight]
        return MIXING(gram, key_sum, weights, attention.heads)

    own = {"add_norm": add_norm, "mixing": mixing_matrix, "norm_adds_bias": True}
    if training:
        return replace(TRAINING, linear=linear, gelu_map=gelu_map, **own)
    return replace(inference(device, dtype), **own)


# --- Stencils -------------------------------------------------------------------------------------------------------


def grid_stencils(stencil: Stencil, sides: Sides) -> list[GridStencil] | None:
    """Return the stencil on each grid of tokens as kernels take it; None where tokens reach beyond the domain, or there
    are very many taps."""
    stencils = []
    for which, grid in enumerate(token_grids(sides, stencil.patches)):
        offsets, weights = stencil.taps(which, grid)
        if grid.sides != grid.extent or len(offsets) > MOST_TAPS:
            return None
        stencils.append(GridStencil(grid.sides, tuple(offsets), weights.float(), stencil.closes))
    return stencils


def trained_local(stencil: Stencil) -> Local:
    def local(z: Tensor, sides: Sides) -> Tensor:
        stencils = None
        if all(stencil.closes):
            stencils = grid_stencils(stencil, sides)
        if stencils is None:
            return stencil(z, sides)
        return NEIGHBOURS(z, stencils)

    return local


def packed_local(stencil: Stencil, operands: torch.dtype) -> Local:
    """Return the stencil as a kernel; its weights on each grid are found once."""
    known: dict[Sides, list[GridStencil] | None] = {}

    def local(z: Tensor, sides: Sides) -> Tensor:
        if sides not in known:
            known[sides] = grid_stencils(stencil, sides)
        stencils = known[sides]
        if stencils is None:
            return stencil(z, sides)
        return MIX_NEIGHBOURS(z, stencils, operands)

    return local
