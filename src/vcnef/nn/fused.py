"""Which modules run as fused kernels, and how their weights are handed over."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vcnef.kernels.precision import operands
from vcnef.kernels.weights import Affine, BlockWeights, DecoderWeights, usable
from vcnef.nn.attention import LinearAttention

ACTIVATIONS = {nn.ReLU: "relu", nn.GELU: "gelu"}
"""Those that the kernels have."""

PARTS = {
    "query": "attention.query",
    "key": "attention.key",
    "value": "attention.value",
    "join": "attention.out",
    "attention_norm": "attention_norm",
    "scale": "scale",
    "out": "out",
    "modulation_norm": "modulation_norm",
    "widen": "mlp.0",
    "narrow": "mlp.2",
    "mlp_norm": "mlp_norm",
}
"""A kernel's weights -> a block's modules; a transformer block has not all of them."""


def pack_block(block: nn.Module, tokens: Tensor) -> BlockWeights | None:
    """The weights of a block that can run as kernels here, else None: the plain code then serves."""
    chosen = operands()
    if chosen is None:
        return None
    ours = isinstance(block.attention, LinearAttention) and getattr(block, "shift", None) is None
    still = not block.training or block.dropout.p == 0
    known = type(block.mlp[1]) in ACTIVATIONS
    return block_weights(block, chosen) if ours and still and known and usable(tokens, block.attention.heads) else None


def block_weights(block: nn.Module, dtype: torch.dtype) -> BlockWeights:
    modules = dict(block.named_modules())
    parts = {name: modules[module] for name, module in PARTS.items() if module in modules}
    return BlockWeights.pack(
        dtype,
        heads=block.attention.heads,
        activation=ACTIVATIONS[type(block.mlp[1])],
        eps=block.mlp_norm.eps,
        **{name: (part.weight, part.bias) for name, part in parts.items()},
    )


def pack_decoder(norm: nn.LayerNorm, mlp: nn.Sequential, tokens: Tensor) -> DecoderWeights | None:
    """The same for LN and an MLP with GELU."""
    chosen = operands()
    return None if chosen is None or not usable(tokens) else decoder_weights(norm, mlp, chosen)


def decoder_weights(norm: nn.LayerNorm, mlp: nn.Sequential, dtype: torch.dtype) -> DecoderWeights:
    return DecoderWeights(*(Affine.pack(dtype, each.weight, each.bias) for each in (norm, mlp[0], mlp[2])), norm.eps)
