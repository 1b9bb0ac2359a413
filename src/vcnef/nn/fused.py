"""Which modules run as fused kernels, and how their weights are handed over."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from operator import attrgetter

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcnef.kernels import layers
from vcnef.kernels.autocast import half_precision, training_precision
from vcnef.kernels.local import mix_neighbours
from vcnef.kernels.precision import operands, packed_once
from vcnef.kernels.weights import WIDEST_NORM, BlockWeights, DecoderWeights, switched_off, usable
from vcnef.nn.attention import LinearAttention
from vcnef.nn.local import Layout, LocalMix

ACTIVATIONS = {nn.ReLU: "relu", nn.GELU: "gelu"}
"""Those that the kernels have."""

MOST_CHANNELS = 8
"""Of a decoder that trains as kernels, whose last map is one sum after the other."""

PARTS = {
    "query": attrgetter("attention.query"),
    "key": attrgetter("attention.key"),
    "value": attrgetter("attention.value"),
    "join": attrgetter("attention.out"),
    "attention_norm": attrgetter("attention_norm"),
    "widen": attrgetter("mlp.0"),
    "narrow": attrgetter("mlp.2"),
    "mlp_norm": attrgetter("mlp_norm"),
}
"""A kernel's weights -> a block's modules."""

MODULATING = {name: attrgetter(name) for name in ("scale", "out", "modulation_norm")}
"""Those that a transformer block does not have."""


def pack_block(block: nn.Module, tokens: Tensor) -> BlockWeights | None:
    """The weights of a block that can run as kernels here, else None: the plain code then serves."""
    chosen = operands()
    if chosen is None:
        return None
    return packed_once(block, lambda: block_weights(block, chosen)) if _served(block, tokens) else None


def training_operands(block: nn.Module, tokens: Tensor) -> torch.dtype | None:
    """The type of tokens in a block that trains as kernels here, else None: half precision under autocast only."""
    return training_precision() if _served(block, tokens) else None


def gelu_of_map(tokens: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """GELU(x W + b). In half precision, bias and activation train as one kernel: compilers make two of their gradients,
    and compute the activation again for those of the next map."""
    if torch.is_grad_enabled() and half_precision(tokens) is not None:
        return layers.gelu(F.linear(tokens, weight), bias)
    return F.gelu(F.linear(tokens, weight, bias))


def half_products(tokens: Tensor) -> AbstractContextManager:
    """Products with the operands that `predict` was asked for, in a block that does not run as kernels."""
    chosen = operands()
    if chosen is None:
        return nullcontext()
    if tokens.device.type == "cpu":
        served = chosen in cpu_operands() and not switched_off()
    else:
        served = usable(tokens, widest=WIDEST_NORM)
    return torch.autocast(tokens.device.type, chosen) if served else nullcontext()


@cache
def cpu_operands() -> tuple[torch.dtype, ...]:
    """The types below single precision that this processor has instructions for; it would be slow at others."""
    able = getattr(torch.cpu, "get_capabilities", dict)()
    return (torch.bfloat16,) if able.get("avx512_bf16") or able.get("amx_bf16") else ()


def _served(block: nn.Module, tokens: Tensor) -> bool:
    ours = isinstance(block.attention, LinearAttention) and getattr(block, "shift", None) is None
    return ours and not drops(block) and type(block.mlp[1]) in ACTIVATIONS and usable(tokens, block.attention.heads)


def drops(block: nn.Module) -> bool:
    """Whether a part of what layers add to tokens is left out at random."""
    return block.training and not isinstance(block.dropout, nn.Identity)


def learnt(*modules: nn.Module) -> list[Tensor]:
    """Weight, bias, weight, bias, … as the layers with gradients take them."""
    return [tensor for module in modules for tensor in (module.weight, module.bias)]


def block_weights(block: nn.Module, dtype: torch.dtype) -> BlockWeights:
    finders = PARTS | MODULATING if hasattr(block, "scale") else PARTS
    parts = {name: find(block) for name, find in finders.items()}
    return BlockWeights.pack(
        dtype,
        heads=block.attention.heads,
        activation=ACTIVATIONS[type(block.mlp[1])],
        eps=block.mlp_norm.eps,
        **{name: (part.weight, part.bias) for name, part in parts.items()},
    )


def attend_and_norm(block: nn.Module, tokens: Tensor, layout: Layout) -> Tensor:
    """The first layer of a block that trains as kernels."""
    attention, norm = block.attention, block.attention_norm
    extra = None if block.local is None else learn_local(block.local, tokens, layout)
    weights = learnt(attention.query, attention.key, attention.value, attention.out, norm)
    return layers.attention(tokens, extra, weights, attention.heads, norm.eps)


def widen_and_norm(block: nn.Module, tokens: Tensor) -> Tensor:
    """The last layer of a block that trains as kernels."""
    widen, activation, narrow = block.mlp
    weights = learnt(widen, narrow, block.mlp_norm)
    return layers.mlp(tokens, weights, ACTIVATIONS[type(activation)], block.mlp_norm.eps)


def learn_local(local: LocalMix, tokens: Tensor, layout: Layout) -> Tensor:
    """A stencil where kernels serve: one itself on periodic grids, else the plain code."""
    stencils = local.stencils(layout) if local.periodic else None
    return local(tokens, layout) if stencils is None else layers.neighbours(tokens, stencils)


def mix_alone(local: LocalMix, tokens: Tensor, layout: Layout) -> Tensor:
    """The stencil of a block whose layers are no kernels: it may still be one itself."""
    return local(tokens, layout) if half_precision(tokens) is None else learn_local(local, tokens, layout)


def mix_local(local: LocalMix | None, tokens: Tensor, layout: Layout, weights: BlockWeights) -> Tensor | None:
    """What a packed block's stencil adds to its attention."""
    if local is None:
        return None
    stencils = packed_once((local, layout), lambda: local.stencils(layout))
    return local(tokens, layout) if stencils is None else mix_neighbours(tokens, stencils, weights.operands)


def pack_decoder(norm: nn.LayerNorm, mlp: nn.Sequential, tokens: Tensor) -> DecoderWeights | None:
    """The same for LN and an MLP with GELU."""
    chosen = operands()
    if chosen is None or not usable(tokens):
        return None
    return packed_once(mlp, lambda: decoder_weights(norm, mlp, chosen))


def decoder_operands(mlp: nn.Sequential, tokens: Tensor) -> torch.dtype | None:
    """The type of tokens in a decoder that trains as kernels here, else None."""
    return training_precision() if usable(tokens) and mlp[-1].out_features <= MOST_CHANNELS else None


def decoder_weights(norm: nn.LayerNorm, mlp: nn.Sequential, dtype: torch.dtype) -> DecoderWeights:
    parts = {"norm": norm, "first": mlp[0], "second": mlp[2]}
    return DecoderWeights.pack(dtype, eps=norm.eps, **{name: (each.weight, each.bias) for name, each in parts.items()})
