"""Blocks computed layer by layer with an `Arithmetic`, or by the reference where a part of them is unknown.

All ways to compute a block have the same methods: `transform` for a transformer block, and for a modulation block
`field` (MLP(C)), `begin` (as far as no query time matters), `finish`, and `apply`, which is both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.accelerate.arithmetic import Arithmetic
from vcnef.accelerate.attention import joined_softmax_attention, membership, unbiased_linear_attention
from vcnef.accelerate.numbers import full_precision
from vcnef.accelerate.patches import feed_forward
from vcnef.models.vcnef import CoordinateBranch, LinearAttention, Nothing, SoftmaxAttention

Sides = tuple[int, ...]


class Coordinates(NamedTuple):
    """c[t, s] = time[t] + space[s], kept as t + s rows; the first axis has size 1 where all samples share them."""

    time: Float[Tensor, "b_or_1 t d"]
    space: Float[Tensor, "b_or_1 s d"]

    def joined(self) -> Float[Tensor, "b_or_1 t s d"]:
        return self.time.unsqueeze(2) + self.space.unsqueeze(1)


class OwnCoordinates(NamedTuple):
    """c as a model's own part gives it, of which no sum is known."""

    c: Float[Tensor, "b_or_1 t s d"]

    def joined(self) -> Float[Tensor, "b_or_1 t s d"]:
        return self.c


class Begun(NamedTuple):
    """A modulation block as far as no query time matters: z after its attention, σ(W' z), and the shift if any."""

    z: Float[Tensor, "b t_or_1 s d"]
    scale: Float[Tensor, "b t_or_1 s d"]
    shift: Float[Tensor, "b t_or_1 s d"] | None = None


class ReferenceBlock:
    """The block itself."""

    def __init__(self, block: nn.Module) -> None:
        self.block = block

    def transform(self, z: Tensor, sides: Sides) -> Tensor:
        return self.block(z, sides)

    def field(self, coordinates: Coordinates | OwnCoordinates) -> Tensor:
        """C itself: the block has a branch of its own."""
        return coordinates.joined()

    def begin(self, z: Tensor, sides: Sides) -> tuple[Tensor, Sides]:
        return z, sides

    def finish(self, begun: tuple[Tensor, Sides], field: Tensor) -> Tensor:
        z, sides = begun
        return self.block(z, field, sides)

    def apply(self, z: Tensor, field: Tensor, sides: Sides) -> Tensor:
        return self.block(z, field, sides)


class LayeredBlock:
    """A block layer by layer. Parts that are not `known` (attention, local, branch) are called as they are."""

    def __init__(self, block: nn.Module, arithmetic: Arithmetic, known: set[str]) -> None:
        self.block, self.arithmetic, self.known = block, arithmetic, known
        self.local: Callable[[Tensor, Sides], Tensor] | None = None
        kind = None
        if "attention" in known:
            kind = type(block.attention)
        self.linear = kind is LinearAttention
        self.softmax = kind is SoftmaxAttention
        self.alone = kind is Nothing
        self.member: Tensor | None = None

    def prepare(self) -> LayeredBlock:
        """Make it ready to attend by itself, which the kernels of a whole block do otherwise."""
        self.member = None
        if self.linear:
            self.member = membership(self.block.attention)
        return self

    def transform(self, z: Float[Tensor, "b s d"], sides: Sides) -> Float[Tensor, "b s d"]:
        return self.feed(self.attend(z, sides))

    def field(self, coordinates: Coordinates | OwnCoordinates) -> Float[Tensor, "b_or_1 t s d"]:
        branch = self.block.branch
        if "branch" not in self.known or type(coordinates) is OwnCoordinates:
            return branch(coordinates.joined())
        return branch_of_sums(branch, coordinates, self.arithmetic)

    def begin(self, z: Float[Tensor, "b t_or_1 s d"], sides: Sides) -> Begun:
        z = self.attend(z, sides)
        shift = None
        if type(self.block.shift) is not Nothing:
            shift = self.arithmetic.linear(z, self.block.shift, None)
        return Begun(z, self.arithmetic.sigma_map(z, self.block.scale), shift)

    def finish(self, begun: Begun, field: Float[Tensor, "b_or_1 t s d"]) -> Float[Tensor, "b t s d"]:
        modulated = begun.scale * field
        if begun.shift is not None:
            modulated = modulated + begun.shift
        update, bias = self.map_last(modulated, self.block.out)
        return self.feed(self.arithmetic.add_norm(begun.z, update, bias, self.block.modulation_norm))

    def apply(
        self, z: Float[Tensor, "b t s d"], field: Float[Tensor, "b_or_1 t s d"], sides: Sides
    ) -> Float[Tensor, "b t s d"]:
        return self.finish(self.begin(z, sides), field)

    def attend(self, z: Float[Tensor, "*b s d"], sides: Sides) -> Float[Tensor, "*b s d"]:
        """Return LN(z + Attn(z) + Local(z)), of which a block may have neither."""
        update, bias = self.attention_update(z)
        if self.local is not None:
            mixed = self.local(z, sides)
            if update is not None:
                mixed = update + mixed
            update = mixed
        return self.arithmetic.add_norm(z, update, bias, self.block.attention_norm)

    def attention_update(self, z: Float[Tensor, "*b s d"]) -> tuple[Tensor | None, Tensor | None]:
        attention = self.block.attention
        if self.alone:
            return None, None
        if self.linear:
            update = unbiased_linear_attention(attention, z, self.arithmetic, self.member)
            bias = attention.out.bias
            if self.arithmetic.norm_adds_bias:
                return update, bias
            return update + bias, None
        if self.softmax:
            return self.map_last(joined_softmax_attention(attention, z), attention.out)
        # A copy: the norm may take the memory of an update, and this one could be z itself.
        return attention(z).clone(), None

    def feed(self, z: Float[Tensor, "*b s d"]) -> Float[Tensor, "*b s d"]:
        """LN(z + MLP(z))."""
        widen, activation, narrow = self.block.mlp
        update, bias = self.map_last(self.arithmetic.linear(z, widen, activation), narrow)
        return self.arithmetic.add_norm(z, update, bias, self.block.mlp_norm)

    def map_last(self, x: Tensor, layer: nn.Linear) -> tuple[Tensor, Tensor | None]:
        """x W, and b where the norm adds that; otherwise x W + b."""
        if self.arithmetic.norm_adds_bias:
            return F.linear(x, layer.weight), layer.bias
        return self.arithmetic.linear(x, layer, None), None


def branch_of_sums(
    branch: CoordinateBranch, coordinates: Coordinates, arithmetic: Arithmetic
) -> Float[Tensor, "b_or_1 t s d"]:
    """MLP(C): since C is a sum and W₁ is linear, W₁ sees t + s rows, not t · s."""
    time, space = coordinates
    with full_precision(time):
        # As one product: for a few times alone, the GPU's libraries have a slow one.
        rows = F.linear(torch.cat((time.flatten(0, 1), space.flatten(0, 1))), branch.lift.weight)
    times = time.shape[0] * time.shape[1]
    time, space = rows[:times].view_as(time), rows[times:].view_as(space) + branch.lift.bias
    g = time.unsqueeze(2) + space.unsqueeze(1)
    if type(branch.project) is not nn.Identity:
        activation, last = branch.project
        g = arithmetic.linear(activation(g), last, None)
    if type(branch.residual) is Nothing:
        return g
    return g + feed_forward(branch.residual, F.gelu(g), arithmetic)


def branches_together(branches: list[CoordinateBranch], coordinates: Coordinates) -> Float[Tensor, "k 1 t s d"]:
    """MLP(C) of several branches without `residual`, where all samples share the coordinates.

    By the same few products for all: with so few rows, it is the number of kernels that takes time.
    """
    (time,), (space,) = coordinates
    lifts, width = [branch.lift for branch in branches], space.shape[-1]
    with full_precision(time):
        rows = F.linear(torch.cat((time, space)), torch.cat([lift.weight for lift in lifts]))
    rows = rows.view(-1, len(branches), width).transpose(0, 1)
    times, bias = time.shape[0], torch.stack([lift.bias for lift in lifts]).unsqueeze(1)
    g = rows[:, :times].unsqueeze(2) + (rows[:, times:] + bias).unsqueeze(1)
    if type(branches[0].project) is nn.Identity:
        return g.unsqueeze(1)
    activation, lasts = branches[0].project[0], [branch.project[1] for branch in branches]
    weight = torch.stack([last.weight for last in lasts])
    bias = torch.stack([last.bias for last in lasts])
    hidden = activation(g).flatten(1, 2)
    return torch.baddbmm(bias.unsqueeze(1), hidden, weight.mT).view_as(g).unsqueeze(1)
