"""Modulation block: the initial state's tokens scale the features of the queried coordinates."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.kernels import layers
from vcnef.kernels import modulation as kernels
from vcnef.kernels.weights import BlockWeights
from vcnef.nn.attention import positive
from vcnef.nn.blocks import Activation, FeedForward, attend
from vcnef.nn.coordinates import Coordinates
from vcnef.nn.fused import (
    attend_and_norm,
    half_products,
    learnt,
    mix_local,
    pack_block,
    training_operands,
    widen_and_norm,
)
from vcnef.nn.local import Layout, LocalMix
from vcnef.nn.norms import ResidualNorm


class CoordinateBranch(nn.Module):
    """MLP(C) of the modulation: g = W₂ act(W₁ c) and, if `residual`, g + MLP(GELU(g)).

    `nonlinear=False` is W₁ c alone, as the authors' release has it. c[t, s] = time[t] + space[s] and W₁ is linear, so
    W₁ sees t + s rows, not t · s; everything after it runs once per (time, point), shared by all samples of a batch.
    """

    def __init__(self, width: int, activation: Activation, *, nonlinear: bool, residual: bool) -> None:
        super().__init__()
        self.lift = nn.Linear(width, width)
        self.project = nn.Sequential(activation(), nn.Linear(width, width)) if nonlinear else nn.Identity()
        self.residual = FeedForward(width, 2 * width, nn.GELU) if residual else None

    def forward(self, coordinates: Coordinates) -> Float[Tensor, "b_or_1 t s d"]:
        time = F.linear(coordinates.time, self.lift.weight)
        space = self.lift(coordinates.space)
        field = self.project(time.unsqueeze(-2) + space.unsqueeze(-3))
        return field if self.residual is None else field + self.residual(F.gelu(field))


class ModulationBlock(nn.Module):
    """z ← LN(z + Attn(z)); z ← LN(z + W (σ(z W') ∘ MLP(C))); z ← LN(z + MLP(z)), σ = ELU + 1 (the paper's eq. 7).

    Scale only, no shift: the paper's ablation finds that shifting hurts (0.0945 against 0.0824 nRMSE on Burgers);
    `shift=True` adds it. `local`, which the paper does not have, adds a mixing of neighbours to the attention.

    The time axis of `tokens` may have size one, as it has before the first block: attention and scale are then computed
    once, not once per query time, and meet the times where they multiply the coordinates.

    Where a GPU is there, fused kernels do all of it when `predict` has chosen a precision or when the block trains in
    half precision; tokens then come out in the type of their operands.
    """

    def __init__(
        self,
        width: int,
        attention: nn.Module | None,
        branch: CoordinateBranch,
        activation: Activation,
        *,
        shift: bool,
        dropout: float,
        local: LocalMix | None = None,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.local = local
        self.attention_norm = ResidualNorm(width)
        self.branch = branch
        self.scale = nn.Linear(width, width)
        self.shift = nn.Linear(width, width) if shift else None
        self.out = nn.Linear(width, width)
        self.modulation_norm = ResidualNorm(width)
        self.mlp = FeedForward(width, 4 * width, activation)
        self.mlp_norm = ResidualNorm(width)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(
        self, tokens: Float[Tensor, "b t_or_1 s d"], coordinates: Coordinates, layout: Layout = ()
    ) -> Float[Tensor, "b t s d"]:
        if (weights := pack_block(self, tokens)) is not None:
            return self._fused(tokens, coordinates, layout, weights)
        if (dtype := training_operands(self, tokens)) is not None:
            return self._trained(tokens.to(dtype), coordinates, layout)
        with half_products(tokens):
            return self._plain(tokens, coordinates, layout)

    def _plain(self, tokens: Tensor, coordinates: Coordinates, layout: Layout) -> Tensor:
        attended = attend(self, tokens, layout)

        modulated = positive(self.scale(attended)) * self.branch(coordinates)
        if self.shift is not None:
            modulated = modulated + self.shift(attended)
        modulated = self.modulation_norm(attended, self.dropout(self.out(modulated)))

        return self.mlp_norm(modulated, self.dropout(self.mlp(modulated)))

    def _fused(self, tokens: Tensor, coordinates: Coordinates, layout: Layout, weights: BlockWeights) -> Tensor:
        field, mixed = self.branch(coordinates), kernels.mix(tokens, weights)
        extra = mix_local(self.local, tokens, layout, weights)
        if tokens.shape[1] == field.shape[1]:
            return kernels.apply(tokens, *mixed, field, weights, extra)
        return kernels.modulate(*kernels.attend(tokens, *mixed, weights, extra), field, weights)

    def _trained(self, tokens: Tensor, coordinates: Coordinates, layout: Layout) -> Tensor:
        eps, field = self.mlp_norm.eps, self.branch(coordinates)
        attended = attend_and_norm(self, tokens, layout)
        modulate = learnt(self.out, self.modulation_norm)
        if tokens.shape[1] == field.shape[1]:
            modulated = layers.modulation(attended, None, field, learnt(self.scale) + modulate, eps)
        else:
            modulated = layers.modulation(attended, positive(self.scale(attended)), field, modulate, eps)
        return widen_and_norm(self, modulated)
