"""Blocks of linear attention as fused kernels; `plain` has their twins.

With φ = ELU + 1, tokens X of one sample and time, and m the matrix of ones within a head, zeros between heads:

    mix        K = φ(X Wk + bk),  k̄ = mean K,  M = ((KᵀX/s Wv + k̄ bvᵀ) ∘ m) Wo
    attend     Q = φ(X Wq + bq),  Y = LN(X + (Q / (Q (k̄ ∘ m))) M + bo),  F = φ(Y Ws + bs)
    modulate   Z = LN(Y + (F ∘ C) W + b),  LN(Z + W₂ act(W₁ Z + b₁) + b₂)
    apply      attend and modulate in one, what `mix` leaves of a modulation block
    transform  the same of a transformer block, whose Z is Y
    decode     W₂ GELU(W₁ LN(X) + b₁) + b₂

k̄ and M are means where the attention has sums: the quotient is the same, and fp16 holds it for any number of tokens.
The first modulation block attends once for all times, so there `attend` and `modulate` are two.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.weights import BlockWeights, DecoderWeights, Heads, Tiling, first_for, head_maps, padded

MIX_TILINGS = (Tiling(64, 0, 8, 3, 128), Tiling(64, 0, 8, 2, 128), Tiling(64, 0, 4, 1), Tiling(128, 0, 8, 2))
APPLY_TILINGS = (
    Tiling(128, 32, 8, 3, 128),
    Tiling(128, 32, 8, 2, 128),
    Tiling(64, 64, 4, 2, 168),
    Tiling(128, 64, 8, 3),
    Tiling(64, 64, 4, 2),
)
MODULATE_TILINGS = (
    Tiling(128, 32, 8, 3, 128),
    Tiling(64, 64, 4, 2, 168),
    Tiling(128, 64, 8, 3),
    Tiling(64, 64, 4, 2),
)
DECODE_TILINGS = (Tiling(64, 0, 4, 1), Tiling(128, 0, 8, 1, 128))
"""The tilings worth trying, the one in use first; `benchmarks/kernels.py` times them."""


def mix(
    tokens: Float[Tensor, "b t s d"], weights: BlockWeights, tiling: Tiling | None = None
) -> tuple[Float[Tensor, "b t d d"], Float[Tensor, "b t d"]]:
    """What tokens need to know of each other: M in the operands' type and k̄ in fp32, per sample and time."""
    from vcnef.kernels import modulation_triton as kernels

    batch, times, points, width = tokens.shape
    tiling = tiling or first_for(width, MIX_TILINGS)
    tokens = tokens.contiguous()
    mixing = tokens.new_empty(batch, times, width, width, dtype=weights.operands)
    key_mean = tokens.new_empty(batch, times, width, dtype=torch.float32)
    with torch.cuda.device_of(tokens):
        kernels.mix[(batch * times,)](
            *(tokens, None, None, mixing, key_mean, weights.key, weights.value, weights.join.weight, points),
            HEAD=width // weights.heads,
            BLOCK_D=padded(width),
            **_sizes(width, tiling),
        )
    return mixing, key_mean


def attend(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
    tiling: Tiling | None = None,
) -> tuple[Float[Tensor, "b t s d"], Float[Tensor, "b t s d"]]:
    """Y and F in the operands' type; `extra` joins the attention's output."""
    from vcnef.kernels import modulation_triton as kernels

    batch, times, points, width = tokens.shape
    tiling = tiling or first_for(width, APPLY_TILINGS, points)
    tokens = tokens.contiguous()
    attended, factor = (torch.empty_like(tokens, dtype=weights.operands) for _ in range(2))
    with torch.cuda.device_of(tokens):
        kernels.attend[(batch * times * -(-points // tiling.tokens),)](
            *(tokens, mixing, key_mean, None if extra is None else extra.contiguous(), attended, factor),
            *(weights.query, _heads(tokens, weights), weights.join.bias, weights.attention_norm),
            *(weights.scale, points, weights.eps),
            HEADS=weights.heads,
            **_sizes(width, tiling),
        )
    return attended, factor


def apply(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    field: Float[Tensor, "b_or_1 t s d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
    decoder: DecoderWeights | None = None,
    tiling: Tiling | None = None,
) -> Float[Tensor, "b t s d_or_c"]:
    """What `mix` leaves of a modulation block, in the operands' type, or what a decoder makes of it, in fp32; `field`
    is MLP(C)."""
    return _launch(tokens, mixing, key_mean, extra, field, weights, tiling, decoder)


def modulate(
    attended: Float[Tensor, "b t_or_1 s d"],
    scale: Float[Tensor, "b t_or_1 s d"],
    field: Float[Tensor, "b_or_1 t s d"],
    weights: BlockWeights,
    tiling: Tiling | None = None,
) -> Float[Tensor, "b t s d"]:
    """The part of a block after attention and scale, in the operands' type."""
    return _launch(attended, None, scale, None, field, weights, tiling)


def transform(
    tokens: Float[Tensor, "b t s d"],
    mixing: Float[Tensor, "b t d d"],
    key_mean: Float[Tensor, "b t d"],
    weights: BlockWeights,
    extra: Float[Tensor, "b t s d"] | None = None,
    tiling: Tiling | None = None,
) -> Float[Tensor, "b t s d"]:
    """The rest of a transformer block, in the operands' type."""
    return _launch(tokens, mixing, key_mean, extra, None, weights, tiling)


def decode(
    tokens: Float[Tensor, "*b d"], weights: DecoderWeights, tiling: Tiling | None = None
) -> Float[Tensor, "*b c"]:
    """Fields in fp32."""
    from vcnef.kernels import modulation_triton as kernels

    width, channels = tokens.shape[-1], weights.channels
    tiling = tiling or first_for(width, DECODE_TILINGS)
    rows = tokens.reshape(-1, width)
    out = rows.new_empty(len(rows), channels, dtype=torch.float32)
    with torch.cuda.device_of(rows):
        kernels.decode[(-(-len(rows) // tiling.tokens),)](
            *(rows, out, weights, len(rows)),
            CHANNELS=channels,
            D=width,
            BLOCK_S=tiling.tokens,
            **tiling.launch,
        )
    return out.view(*tokens.shape[:-1], channels)


def _launch(
    tokens: Tensor,
    mixing: Tensor | None,
    key_mean_or_scale: Tensor,
    extra: Tensor | None,
    field: Tensor | None,
    weights: BlockWeights,
    tiling: Tiling | None,
    decoder: DecoderWeights | None = None,
) -> Tensor:
    from vcnef.kernels import modulation_triton as kernels

    batch, own_times, points, width = tokens.shape
    times, hidden = own_times if field is None else field.shape[1], len(weights.widen.bias)
    tiling = tiling or first_for(width, MODULATE_TILINGS if mixing is None else APPLY_TILINGS, points)
    tokens, key_mean_or_scale = tokens.contiguous(), key_mean_or_scale.contiguous()
    field = field if field is None else field.to(weights.operands).contiguous()
    extra = extra if extra is None else extra.contiguous()
    channels, dtype = (width, weights.operands) if decoder is None else (decoder.channels, torch.float32)
    out = tokens.new_empty(batch, times, points, channels, dtype=dtype)
    with torch.cuda.device_of(tokens):
        kernels.apply[(batch * times * -(-points // tiling.tokens),)](
            *(tokens, mixing, key_mean_or_scale, extra, field, out),
            *(weights.query, _heads(tokens, weights), weights.join.bias, weights.attention_norm),
            *(weights.scale, weights.out, weights.modulation_norm),
            *(weights.widen, weights.narrow, weights.mlp_norm),
            *(decoder, times, points, weights.eps),
            CHANNELS=channels,
            HEADS=weights.heads,
            HIDDEN=hidden,
            GELU=weights.activation == "gelu",
            ATTEND=mixing is not None,
            MODULATE=field is not None,
            ONE_TIME=own_times == 1,
            SHARED_FIELD=field is not None and field.shape[0] == 1,
            BLOCK_H=min(tiling.hidden, padded(hidden)),
            **_sizes(width, tiling),
        )
    return out


def _heads(tokens: Tensor, weights: BlockWeights) -> Heads:
    return head_maps(tokens.shape[-1], weights.heads, weights.operands, tokens.device)


def _sizes(width: int, tiling: Tiling) -> dict[str, Any]:
    return {"D": width, "BLOCK_S": tiling.tokens, **tiling.launch}
