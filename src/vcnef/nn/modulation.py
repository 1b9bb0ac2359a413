"""Modulation block: the initial state's tokens scale the features of the queried coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.kernels import layers
from vcnef.kernels import modulation as kernels
from vcnef.kernels.weights import DecoderWeights
from vcnef.nn.blocks import Activation, FeedForward, attend, feed, update_of
from vcnef.nn.coordinates import Coordinates, Line
from vcnef.nn.fused import drops, half_products, learnt, mix_local, pack_block, training_operands
from vcnef.nn.linear import Linear, positive_map
from vcnef.nn.local import Layout, LocalMix
from vcnef.nn.norms import ResidualNorm
from vcnef.nn.unrounded import unrounded


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
        time, space = coordinates
        with unrounded(time):
            # As one product: for a few times alone, the GPU's libraries have a slow one.
            rows = F.linear(torch.cat((time.flatten(0, 1), space.flatten(0, 1))), self.lift.weight)
        times = time.shape[0] * time.shape[1]
        time, space = rows[:times].view_as(time), rows[times:].view_as(space) + self.lift.bias
        field = self.project(time.unsqueeze(-2) + space.unsqueeze(-3))
        return field if self.residual is None else field + self.residual(F.gelu(field))

    @staticmethod
    def together(branches: Sequence[CoordinateBranch], coordinates: Coordinates) -> Float[Tensor, "k 1 t s d"]:
        """MLP(C) of several such branches of one kind, without `residual`, where all samples share the coordinates.

        By the same few products for all: of so few rows, it is the number of kernels that takes time.
        """
        (time,), (space,) = coordinates
        lifts, width = [each.lift for each in branches], space.shape[-1]
        with unrounded(time):
            rows = F.linear(torch.cat((time, space)), torch.cat([each.weight for each in lifts]))
        rows = rows.view(-1, len(branches), width).transpose(0, 1)
        times, bias = time.shape[0], torch.stack([each.bias for each in lifts]).unsqueeze(1)
        field = rows[:, :times].unsqueeze(2) + (rows[:, times:] + bias).unsqueeze(1)
        if not branches[0].straight:
            act, last = branches[0].project[0], [each.project[1] for each in branches]
            weight, bias = (torch.stack([getattr(each, name) for each in last]) for name in ("weight", "bias"))
            hidden = act(field).flatten(1, 2)
            field = torch.baddbmm(bias.unsqueeze(1), hidden, weight.mT).view_as(field)
        return field.unsqueeze(1)

    @property
    def straight(self) -> bool:
        """Whether a straight line C stays one."""
        return self.residual is None and isinstance(self.project, nn.Identity)

    def along(self, coordinates: Line) -> Line:
        """MLP(C) of a straight line C that stays one."""
        with unrounded(coordinates.start):
            return Line(self.lift(coordinates.start), F.linear(coordinates.slope, self.lift.weight))


class Begun(NamedTuple):
    """A modulation block as far as no query time matters: z after its attention, σ(z W'), and the shift if any."""

    tokens: Float[Tensor, "b t_or_1 s d"]
    scale: Float[Tensor, "b t_or_1 s d"]
    shift: Float[Tensor, "b t_or_1 s d"] | None = None


class ModulationBlock(nn.Module):
    """z ← LN(z + Attn(z)); z ← LN(z + W (σ(z W') ∘ MLP(C))); z ← LN(z + MLP(z)), σ = ELU + 1 (the paper's eq. 7).

    Scale only, no shift: the paper's ablation finds that shifting hurts (0.0945 against 0.0824 nRMSE on Burgers);
    `shift=True` adds it. `local`, which the paper does not have, adds a mixing of neighbours to the attention.

    The time axis of `tokens` may have size one, as it has before the first block: `begin` then computes attention and
    scale once, not once per query time, and `finish` lets them meet the times where they multiply the coordinates. What
    `branch` makes of these, MLP(C), is given as `field`, since many calls may share it. Where MLP(C) is a straight line
    in t, as in the authors' release in 1D, so is z + W (σ(z W') ∘ MLP(C)): `begin` computes that line then, and the
    times are all that `finish` needs to follow it.

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
        self.scale = Linear(width, width)
        self.shift = nn.Linear(width, width) if shift else None
        self.out = Linear(width, width)
        self.modulation_norm = ResidualNorm(width)
        self.mlp = FeedForward(width, 4 * width, activation)
        self.mlp_norm = ResidualNorm(width)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(
        self, tokens: Float[Tensor, "b t_or_1 s d"], field: Float[Tensor, "b_or_1 t s d"], layout: Layout = ()
    ) -> Float[Tensor, "b t s d"]:
        if (done := self.apply_packed(tokens, field, layout)) is not None:
            return done
        if tokens.shape[1] > 1 and training_operands(self, tokens) is not None:
            return self._train(attend(self, tokens, layout), None, field, self.scale)
        return self.finish(self.begin(tokens, layout), field)

    def apply_packed(
        self,
        tokens: Float[Tensor, "b t_or_1 s d"],
        field: Float[Tensor, "b_or_1 t s d"],
        layout: Layout,
        decoder: DecoderWeights | None = None,
    ) -> Float[Tensor, "b t s d_or_c"] | None:
        """All of it as kernels where they serve, else None; with a decoder, the last of them gives the fields."""
        if tokens.shape[1] == 1 or (weights := pack_block(self, tokens)) is None:
            return None
        extra = mix_local(self.local, tokens, layout, weights)
        return kernels.apply(tokens, *kernels.mix(tokens, weights), field, weights, extra, decoder)

    def begin(
        self, tokens: Float[Tensor, "b t_or_1 s d"], layout: Layout = (), coordinates: Line | None = None
    ) -> Begun | Line:
        """`coordinates` are C if that and MLP(C) are straight lines in t, from those who will not differentiate."""
        if (weights := pack_block(self, tokens)) is not None:
            # No line: a kernel that follows it is no faster, and to make it takes time as well.
            extra = mix_local(self.local, tokens, layout, weights)
            return Begun(*kernels.attend(tokens, *kernels.mix(tokens, weights), weights, extra))
        with half_products(tokens):
            attended = attend(self, tokens, layout)
            shift = None if self.shift is None else self.shift(attended)
            begun = Begun(attended, positive_map(self.scale, attended), shift)
            # What dropout leaves out is another part at every time.
            return begun if coordinates is None or drops(self) else self._straighten(begun, coordinates)

    def _straighten(self, begun: Begun, coordinates: Line) -> Line:
        (tokens, scale, shift), line = begun, self.branch.along(coordinates)
        modulated = scale * line.start.unsqueeze(1)
        modulated = modulated if shift is None else modulated + shift
        return Line(tokens + self.out(modulated), self.out.unbiased(scale * line.slope))

    def finish(
        self, begun: Begun | Line, field: Float[Tensor, "b_or_1 t s d"] | Float[Tensor, "b_or_1 t"]
    ) -> Float[Tensor, "b t s d"]:
        """`field` is MLP(C), or the times alone where `begun` is a line."""
        if isinstance(begun, Line):
            with half_products(begun.start):
                return feed(self, self.modulation_norm(begun.start, field[..., None, None] * begun.slope))
        tokens, scale, shift = begun
        if (weights := pack_block(self, tokens)) is not None:
            return kernels.modulate(tokens, scale, field, weights)
        if training_operands(self, tokens) is not None:
            return self._train(tokens, scale, field)
        with half_products(tokens):
            modulated = scale * field
            modulated = modulated if shift is None else modulated + shift
            return feed(self, self.modulation_norm(tokens, *update_of(self, self.out, modulated)))

    def _train(self, tokens: Tensor, scale: Tensor | None, field: Tensor, *own: nn.Module) -> Tensor:
        """What comes after attention, as kernels; `own` computes the scale there if it is not given."""
        weights, eps = learnt(*own, self.out, self.modulation_norm), self.modulation_norm.eps
        return feed(self, layers.modulation(tokens, scale, field, weights, eps))
