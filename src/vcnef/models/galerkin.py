"""Galerkin Transformer: attention without softmax and a spectral decoder, from one frame to the next."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.checks import check_at_least
from vcnef.models.interface import Stepper, with_samples
from vcnef.models.rollout import Rollout
from vcnef.nn.layer_norm import layer_norm
from vcnef.nn.layers import CONV, FeedForward, check_heads, join_inputs
from vcnef.nn.spectral_conv import SpectralConv

SIZES = {
    1: {"width": 96, "heads": 1, "depth": 4, "hidden": 192, "coarse": False}
    | {"modes": 16, "spectral_width": 48, "spectral_depth": 2},
    2: {"width": 256, "heads": 4, "depth": 6, "hidden": 1024, "coarse": True}
    | {"modes": 12, "spectral_width": 32, "spectral_depth": 4},
}
"""The sizes that give the paper's parameter counts; those of its 2D table (width 384, 1 head, 6+2 layers) do not."""

HEAD = {1: 1, 2: 4}
"""How much wider than the spectral layers the last hidden layer is."""

EPSILON = {1: 1e-5, 2: 1e-7}
"""Of the norms in the attention, as in Cao's examples; his small initial keys make it matter."""

INTERPOLATION = {1: "linear", 2: "bilinear"}


class GalerkinTransformer(Stepper):
    """u(t + Δt) = P(S_L … S_1 ↑(A_M … A_1 ↓(u ‖ p))) (Cao 2021), in 1D and 2D.

    A_i is Galerkin attention with a feed-forward network, S_i v = SiLU(W v + F⁻¹ R F v). In 2D ↓ and ↑ are `Shrink` and
    `Grow`, so that fewer points attend; in 1D ↓ is a linear map at every point, and ↑ is left out. The coordinates
    enter in the attention and in `Grow`. The published model has no PDE parameters: p are further inputs.
    """

    def __init__(
        self,
        embed: nn.Module,
        layers: nn.ModuleList,
        grow: Grow | None,
        decode: nn.Sequential,
        *,
        ndim: int,
        channels: int,
        params: int,
    ) -> None:
        super().__init__()
        self.ndim, self.channels, self.params = ndim, channels, params
        self.embed, self.layers, self.grow, self.decode = embed, layers, grow, decode

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        """Attention and modes do not know of a spacing; the convolutions of `Shrink` and `Grow` take so many points."""
        return self.grow is None or sides == trained

    def forward(
        self,
        u: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "_ *x D"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> Float[Tensor, "b *x c"]:
        fine = with_samples(grid, u)
        # No coordinates among these inputs.
        field = self.embed(join_inputs(u, fine[..., :0], params))
        sides = field.shape[1:-1]
        tokens, points = field.flatten(1, -2), resize(fine, sides).flatten(1, -2)
        for layer in self.layers:
            tokens = layer(tokens, points)
        attended = tokens.unflatten(1, sides)
        if self.grow is not None:
            attended = self.grow(attended, fine)
        return self.decode(attended)


class GalerkinAttention(nn.Module):
    """Per head, out_i = q̂_iᵀ (Σ_j k̂_j v̂_jᵀ) / n: a Petrov–Galerkin projection on learnt basis functions.

    The keys and values of a head are normalised, then the coordinates are put before q, k and v: q̂ = x ‖ q,
    k̂ = x ‖ LN(k), v̂ = x ‖ LN(v). Cao's code drops half of the sum at random, in evaluation too; here nothing is.
    """

    def __init__(self, ndim: int, width: int, heads: int) -> None:
        super().__init__()
        check_heads(width, heads)
        self.heads, self.epsilon = heads, EPSILON[ndim]
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        for linear in (self.query, self.key, self.value):
            # Nearly a hundredth of the identity: from weights of the usual size the rollout diverges.
            nn.init.xavier_uniform_(linear.weight, gain=0.01)
            nn.init.zeros_(linear.bias)
            with torch.no_grad():
                linear.weight += 0.01 * torch.eye(width)
        self.gain = nn.Parameter(torch.ones(2, heads, 1, width // heads))
        self.shift = nn.Parameter(torch.zeros(2, heads, 1, width // heads))
        self.out = nn.Linear(width + heads * ndim, width)

    def forward(self, tokens: Float[Tensor, "b s d"], points: Float[Tensor, "_ s D"]) -> Float[Tensor, "b s d"]:
        queries, keys, values = map(self._by_head, (self.query(tokens), self.key(tokens), self.value(tokens)))
        normed = layer_norm(torch.stack((keys, values), dim=1), keys.shape[-1:], eps=self.epsilon)
        normed_keys, normed_values = (normed * self.gain + self.shift).unbind(dim=1)
        placed = points[:, None].expand(*queries.shape[:-1], -1)
        q, k, v = (torch.cat((placed, each), dim=-1) for each in (queries, normed_keys, normed_values))
        mixed = q @ (k.mT @ v / tokens.shape[1])
        return self.out(rearrange(mixed, "b h s e -> b s (h e)"))

    def _by_head(self, features: Float[Tensor, "b s d"]) -> Float[Tensor, "b h s e"]:
        return rearrange(features, "b s (h e) -> b h s e", h=self.heads)


class Layer(nn.Module):
    """z ← z + Attn(z, x); z ← z + MLP(z), without further norms."""

    def __init__(self, ndim: int, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.attention = GalerkinAttention(ndim, width, heads)
        self.mlp = FeedForward(width, hidden, nn.ReLU)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Float[Tensor, "b s d"], points: Float[Tensor, "_ s D"]) -> Float[Tensor, "b s d"]:
        attended = tokens + self.dropout(self.attention(tokens, points))
        return attended + self.dropout(self.mlp(attended))


class Shrink(nn.Module):
    """Half the points a side, by way of sizes in between: a convolution, then three whose answers are joined."""

    def __init__(self, ndim: int, inputs: int, width: int) -> None:
        super().__init__()
        third = width // 3
        sizes = [(inputs, width), (width, third), (third, third), (third, width - 2 * third)]
        self.convs = nn.ModuleList(CONV[ndim](before, after, 3, padding=1, bias=False) for before, after in sizes)

    def forward(self, field: Float[Tensor, "b *x i"]) -> Float[Tensor, "b *y d"]:
        between, coarse = zip(*map(coarsen, field.shape[1:-1]), strict=True)
        first, *others = self.convs
        state = resize(F.relu(first(field.movedim(-1, 1))).movedim(1, -1), between).movedim(-1, 1)
        parts = []
        for conv in others:
            state = F.relu(conv(state))
            parts.append(state)
        # What interpolates positive values is positive: the activations after it in Cao's code do nothing.
        return resize(torch.cat(parts, dim=1).movedim(1, -1), coarse)


class Grow(nn.Module):
    """Back to the points of the grid by way of sizes in between, with a convolution there; then W (x ‖ v) + b.

    Cao's code applies the activation after the convolution twice; here it is once.
    """

    def __init__(self, ndim: int, width: int, out: int) -> None:
        super().__init__()
        self.conv = CONV[ndim](width, width, 3, padding=1, bias=False)
        self.linear = nn.Linear(ndim + width, out)

    def forward(self, field: Float[Tensor, "b *y d"], grid: Float[Tensor, "_ *x D"]) -> Float[Tensor, "b *x o"]:
        sides = grid.shape[1:-1]
        between = resize(field, tuple(coarsen(side)[0] for side in sides)).movedim(-1, 1)
        fine = resize(F.silu(self.conv(between)).movedim(1, -1), sides)
        return self.linear(join_inputs(fine, grid, None))


class SpectralLayer(nn.Module):
    """v ↦ SiLU(W v + b + F⁻¹ R F v)."""

    def __init__(self, ndim: int, width: int, modes: int, out: int) -> None:
        super().__init__()
        self.spectral = SpectralConv(ndim, width, modes, out)
        self.linear = nn.Linear(width, out)
        # Cao's scale, so small that the layer begins as its linear part.
        nn.init.normal_(self.spectral.weight, std=1 / (width * out * ((width + out) * modes**ndim) ** 0.5))

    def forward(self, field: Float[Tensor, "b *x i"]) -> Float[Tensor, "b *x o"]:
        return F.silu(self.linear(field) + self.spectral(field.movedim(-1, 1)).movedim(1, -1))


def coarsen(side: int) -> tuple[int, int]:
    """Return a size in between, and half of the points; of 64 points 44 and 32, by the rule of Cao's 2D example."""
    coarse = (side + 1) // 2
    return max(int((side * coarse) ** 0.5) - 1, coarse), coarse


def resize(field: Float[Tensor, "b *x d"], sides: tuple[int, ...]) -> Float[Tensor, "b *y d"]:
    """Linear interpolation at as many points as `sides` says, ends on ends; a grid stays the field's grid."""
    if field.shape[1:-1] == tuple(sides):
        return field
    mode = INTERPOLATION[len(sides)]
    return F.interpolate(field.movedim(-1, 1), tuple(sides), mode=mode, align_corners=True).movedim(1, -1)


def galerkin(
    ndim: int,
    channels: int,
    params: int = 0,
    *,
    steps: int = 40,
    width: int | None = None,
    heads: int | None = None,
    depth: int | None = None,
    hidden: int | None = None,
    modes: int | None = None,
    spectral_width: int | None = None,
    spectral_depth: int | None = None,
    coarse: bool | None = None,
    dropout: float = 0.0,
) -> Rollout:
    """Galerkin Transformer, rolled out: autoregressive, `steps` steps to the training horizon; sizes as in the paper.

    steps: applications of the network to the training horizon, one per frame.
    width: features of a token in the attention layers.
    heads: attention heads, which share the width.
    depth: number of attention layers.
    hidden: features inside the feed-forward network of an attention layer.
    modes: wave numbers along each axis that the decoder's layers in Fourier space keep.
    spectral_width: channels of those layers.
    spectral_depth: number of those layers.
    coarse: whether half of the points a side attend; by default in 2D.
    dropout: share of the features that are left out at random in training.
    """
    if ndim not in SIZES:
        raise ValueError(f"ndim is {ndim!r}; expected 1 or 2.")
    given = {"width": width, "heads": heads, "depth": depth, "hidden": hidden, "coarse": coarse}
    given |= {"modes": modes, "spectral_width": spectral_width, "spectral_depth": spectral_depth}
    sizes = SIZES[ndim] | {name: size for name, size in given.items() if size is not None}
    check_at_least(1, **{name: size for name, size in sizes.items() if name != "coarse"})
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; expected a probability below 1.")
    tokens, inner, inputs = sizes["width"], sizes["spectral_width"], channels + params
    if sizes["coarse"] and tokens < 3:
        raise ValueError(f"width is {tokens} where half of the points attend; expected at least 3, for as many parts.")
    layers = [Layer(ndim, tokens, sizes["heads"], sizes["hidden"], dropout) for _ in range(sizes["depth"])]
    widths = [inner] * sizes["spectral_depth"]
    if not sizes["coarse"]:
        widths[0] = tokens
    spectral = [SpectralLayer(ndim, each, sizes["modes"], inner) for each in widths]
    embed, grow = nn.Linear, None
    if sizes["coarse"]:
        embed = partial(Shrink, ndim)
    embedding = embed(inputs, tokens)
    if sizes["coarse"]:
        grow = Grow(ndim, tokens, inner)
    stepper = GalerkinTransformer(
        embedding,
        nn.ModuleList(layers),
        grow,
        nn.Sequential(*spectral, FeedForward(inner, HEAD[ndim] * inner, nn.SiLU, channels)),
        ndim=ndim,
        channels=channels,
        params=params,
    )
    return Rollout(stepper, steps)
