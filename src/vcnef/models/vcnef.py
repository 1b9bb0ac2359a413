"""VCNeF as the paper states it: vectorized conditional neural fields (Hagnberger et al., ICML 2024), section 4.

Z⁽⁰⁾ = encoder(u₀ ‖ X ‖ p), Z⁽ⁿ⁺¹⁾ = Transformer_Block(Z⁽ⁿ⁾), Z⁽ᵐ⁺¹⁾ = Modulation_Block(C, Z⁽ᵐ⁾), u(t, X) = decoder(Z)

The paper's symbols and ours: u(0, X) `u0`, X `grid`, p `params`, t `t`; Z `z` are the tokens, C `c` the features of the
coordinates. Letters in shapes: b samples, t query times, *x points, s tokens, d width, h heads of e features.

This file is plain PyTorch and defines what is right. What goes beyond the paper is in `vcnef_beyond.py`, as parts that
are passed in; `vcnef_builder.py` puts the parts together; what makes them fast is in `accelerate/`.

Where autocasting is switched off, inputs or outputs would be rounded: in bf16, neighbouring points of a grid of 256
coincide. What is computed from coordinates and initial states alone costs little.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.models.interface import TrajectoryModel
from vcnef.nn.layer_norm import LayerNorm
from vcnef.nn.layers import (
    CONV,
    CONV_TRANSPOSE,
    Activation,
    FeedForward,
    check_heads,
    join_inputs,
    sinusoidal,
)
from vcnef.nn.patching import continue_field, continue_grid, patch_points, whole_sides
from vcnef.periodicity import Periodic, per_axis

Field = Float[Tensor, "b *x c"]
Grid = Float[Tensor, "_ *x D"]
Params = Float[Tensor, "b p"] | None
Tokens = Float[Tensor, "*b s d"]
Coordinates = Float[Tensor, "_ t s d"]
Trajectory = Float[Tensor, "b t *x c"]
Sides = tuple[int, ...]
"""Numbers of points along the axes of a grid."""


class Nothing(nn.Module):
    """0, in place of a term that is left out: attention or shift in the ablations, and all that the paper lacks."""

    def forward(self, x: Tensor, *_: object) -> Float[Tensor, ""]:
        return x.new_zeros(())


# --- Attention ------------------------------------------------------------------------------------------------------


class Attention(nn.Module):
    """The maps of multi-head self-attention; every head has features of its own."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        check_heads(width, heads)
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)


class LinearAttention(Attention):
    """out_i = φ(q_i)ᵀ S / φ(q_i)ᵀ k̄ with S = Σ_j φ(k_j) v_jᵀ and k̄ = Σ_j φ(k_j) (appendix B.3): linear in tokens."""

    def forward(self, z: Tokens) -> Tokens:
        q = rearrange(self.feature_map(self.query(z)), "... s (h e) -> ... h s e", h=self.heads)
        k = rearrange(self.feature_map(self.key(z)), "... s (h e) -> ... h s e", h=self.heads)
        v = rearrange(self.value(z), "... s (h e) -> ... h s e", h=self.heads)
        # Means in place of sums: the quotient is the same, and half precision holds them for any number of tokens.
        share = 1 / max(z.shape[-2], 1)
        k = k * share
        mixed = q @ (k.mT @ v) / (q @ k.sum(-2).unsqueeze(-1) + 1e-6 * share)
        return self.out(rearrange(mixed, "... h s e -> ... s (h e)"))

    def feature_map(self, x: Tokens) -> Tokens:
        """φ(x) = ELU(x) + 1, feature by feature; any other must be positive, too."""
        return F.elu(x) + 1


class SoftmaxAttention(Attention):
    """softmax(Q Kᵀ / √e) V: the paper's "vanilla" attention, quadratic in tokens."""

    def forward(self, z: Tokens) -> Tokens:
        q = rearrange(self.query(z), "... s (h e) -> ... h s e", h=self.heads)
        k = rearrange(self.key(z), "... s (h e) -> ... h s e", h=self.heads)
        v = rearrange(self.value(z), "... s (h e) -> ... h s e", h=self.heads)
        mixed = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v
        return self.out(rearrange(mixed, "... h s e -> ... s (h e)"))


# --- Blocks ---------------------------------------------------------------------------------------------------------


class TransformerBlock(nn.Module):
    """z ← LN(z + Attn(z)),  z ← LN(z + MLP(z)).

    `local` is a term beside the attention that the paper does not have; it alone looks at the grid's `sides`.
    """

    def __init__(
        self, width: int, attention: nn.Module, activation: Activation, dropout: float, local: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.attention = attention
        self.local = local or Nothing()
        self.attention_norm = LayerNorm(width)
        self.mlp = FeedForward(width, 4 * width, activation)
        self.mlp_norm = LayerNorm(width)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, z: Tokens, sides: Sides = ()) -> Tokens:
        z = self.attention_norm(z + self.dropout(self.attention(z)) + self.local(z, sides))
        return self.mlp_norm(z + self.dropout(self.mlp(z)))


class CoordinateBranch(nn.Module):
    """MLP(C) of eq. 7: g = W₂ act(W₁ c), and for patches g + MLP(GELU(g)).

    `nonlinear=False` is W₁ c in place of W₂ act(W₁ c), as the authors' release has it.
    """

    def __init__(self, width: int, activation: Activation, *, nonlinear: bool, residual: bool) -> None:
        super().__init__()
        self.lift = nn.Linear(width, width)
        self.project = nn.Sequential(activation(), nn.Linear(width, width)) if nonlinear else nn.Identity()
        self.residual = FeedForward(width, 2 * width, nn.GELU) if residual else Nothing()

    def forward(self, c: Tokens) -> Tokens:
        with torch.autocast(c.device.type, enabled=False):
            lifted = self.lift(c)
        g = self.project(lifted)
        return g + self.residual(F.gelu(g))


class ModulationBlock(nn.Module):
    """z ← LN(z + Attn(z)),  z ← LN(z + W (σ(W' z) ∘ MLP(C))),  z ← LN(z + MLP(z))   (eq. 7).

    Scale only, no shift: the paper's ablation finds that shifting hurts (0.0945 against 0.0824 nRMSE on Burgers);
    `shift=True` adds it. The time axis of `z` has size one before the first block and is broadcast there.
    """

    def __init__(
        self,
        width: int,
        attention: nn.Module,
        branch: nn.Module,
        activation: Activation,
        *,
        shift: bool = False,
        dropout: float = 0.0,
        local: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.local = local or Nothing()
        self.attention_norm = LayerNorm(width)
        self.branch = branch
        self.scale = nn.Linear(width, width)
        self.shift = nn.Linear(width, width) if shift else Nothing()
        self.out = nn.Linear(width, width)
        self.modulation_norm = LayerNorm(width)
        self.mlp = FeedForward(width, 4 * width, activation)
        self.mlp_norm = LayerNorm(width)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(
        self, z: Float[Tensor, "b t_or_1 s d"], c: Float[Tensor, "b_or_1 t s d"], sides: Sides = ()
    ) -> Float[Tensor, "b t s d"]:
        z = self.attention_norm(z + self.dropout(self.attention(z)) + self.local(z, sides))
        z = self.modulation_norm(z + self.modulate(z, c))
        return self.mlp_norm(z + self.dropout(self.mlp(z)))

    def modulate(self, z: Float[Tensor, "b t_or_1 s d"], c: Float[Tensor, "b_or_1 t s d"]) -> Float[Tensor, "b t s d"]:
        """W (σ(W' z) ∘ MLP(C)) with σ(x) = ELU(x) + 1, and with the shift inside the bracket where there is one."""
        scale = F.elu(self.scale(z)) + 1
        return self.out(scale * self.branch(c) + self.shift(z))


# --- Encoders of the initial state ----------------------------------------------------------------------------------


class PointEncoder(nn.Module):
    """z_i = (x_i ‖ u₀(x_i) ‖ p) W + b (eq. 5, 1D): a token per point; points in any number and order."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, width)

    def forward(self, u0: Field, grid: Grid, params: Params) -> Float[Tensor, "b s d"]:
        with torch.autocast(u0.device.type, enabled=False):
            return self.linear(join_inputs(u0, grid, params)).flatten(1, -2)


class PatchEncoder(nn.Module):
    """A token per patch of p points a side, for each patch size p (eq. 5, 2D and 3D); all tokens stand in one row.

    Two convolutions without overlap, of size p/2 and 2, with GELU between: so the parameter counts and the authors'
    release have it, where the paper's equation has one linear map. Sides that are not whole patches are continued past
    their far edges, fields along each axis periodically or by their last values, coordinates by their spacing.
    """

    scattered = False

    def __init__(self, ndim: int, inputs: int, width: int, patches: Sides, *, periodic: Periodic) -> None:
        super().__init__()
        conv, half = CONV[ndim], width // 2
        self.patches, self.closes = patches, per_axis(periodic, ndim)
        self.scales = nn.ModuleList(
            nn.Sequential(conv(inputs, half, size // 2, size // 2), nn.GELU(), conv(half, width, 2, 2))
            for size in patches
        )

    def forward(self, u0: Field, grid: Grid, params: Params) -> Float[Tensor, "b s d"]:
        sides = whole_sides(tuple(u0.shape[1:-1]), self.patches)
        inputs = join_inputs(continue_field(u0, sides, self.closes), continue_grid(grid, sides), params)
        with torch.autocast(u0.device.type, enabled=False):
            tokens = [scale(inputs.movedim(-1, 1)).flatten(2).mT for scale in self.scales]
        return torch.cat(tokens, dim=1)


# --- Features of the query coordinates ------------------------------------------------------------------------------


class LinearCoordinates(nn.Module):
    """c_i = (t ‖ x_i) W + b (eq. 4, 1D); t is multiplied by `pace` before, which the paper does not do.

    `features` is the number of columns for x, or for what stands in its place.
    """

    def __init__(self, features: int, width: int, pace: float = 1.0) -> None:
        super().__init__()
        self.linear, self.pace = nn.Linear(1 + features, width), pace

    def forward(self, t: Float[Tensor, "b_or_1 t"], grid: Grid) -> Coordinates:
        t, x = self.pace * t[:, :, None, None], grid.flatten(1, -2).unsqueeze(1)
        shape = torch.broadcast_shapes(t.shape[:-1], x.shape[:-1])
        with torch.autocast(t.device.type, enabled=False):
            return self.linear(torch.cat((t.expand(*shape, -1), x.expand(*shape, -1)), dim=-1))


class FourierCoordinates(nn.Module):
    """c_i = PE(t) ‖ LFF(x₁) ‖ … ‖ LFF(x_g) for patches (eq. 4, 2D and 3D), half of the width for time.

    The paper encodes every point of a patch; its parameter counts and the authors' release leave room for g = 1 or 2:
    `points` = 1 is the patch's centre, 2 its first and last corner. Each patch size has its own LFF.
    """

    def __init__(self, ndim: int, width: int, patches: Sides, points: int, pace: float = 1.0) -> None:
        super().__init__()
        if width % (4 * points):
            raise ValueError(
                f"Width {width} cannot hold a time and {points} points per patch. Choose a multiple of {4 * points}."
            )
        half = width // 2
        self.half_width, self.patches, self.points, self.pace = half, patches, points, pace
        self.fourier = nn.ModuleList(LearnableFourier(ndim, half, half // points) for _ in patches)

    def forward(self, t: Float[Tensor, "b_or_1 t"], grid: Grid) -> Coordinates:
        grid = continue_grid(grid, whole_sides(tuple(grid.shape[1:-1]), self.patches))
        rows = []
        for fourier, size in zip(self.fourier, self.patches, strict=True):
            rows.append(fourier(patch_points(grid, size, self.points)).flatten(-2))
        time, space = sinusoidal(self.pace * t, self.half_width).unsqueeze(2), torch.cat(rows, dim=1).unsqueeze(1)
        return torch.cat(torch.broadcast_tensors(time, space), dim=-1)


class LearnableFourier(nn.Module):
    """LFF(x) = MLP((cos(x W) ‖ sin(x W)) / √F) with F/2 learnable frequencies W (Li et al. 2021)."""

    def __init__(self, ndim: int, features: int, out: int) -> None:
        super().__init__()
        self.frequencies = nn.Linear(ndim, features // 2, bias=False)
        self.mlp = FeedForward(features, 32, nn.GELU, out)
        # About one period over a domain of length one; the paper gives no scale.
        nn.init.normal_(self.frequencies.weight, std=2 * math.pi)

    def forward(self, x: Float[Tensor, "*b D"]) -> Float[Tensor, "*b f"]:
        with torch.autocast(x.device.type, enabled=False):
            angles = self.frequencies(x)
            waves = torch.cat((angles.cos(), angles.sin()), dim=-1)
            return self.mlp(waves / math.sqrt(waves.shape[-1]))


# --- Decoders -------------------------------------------------------------------------------------------------------


class PointDecoder(nn.Module):
    """u_i = MLP(LN(z_i)), shared by all points."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.norm = LayerNorm(width)
        self.mlp = FeedForward(width, width, nn.GELU, channels)

    def forward(self, z: Float[Tensor, "b t s d"], sides: Sides) -> Trajectory:
        first, activation, last = self.mlp
        hidden = activation(first(self.norm(z)))
        with torch.autocast(z.device.type, enabled=False):
            return last(hidden.to(last.weight.dtype)).unflatten(2, sides)


class PatchDecoder(nn.Module):
    """u = W (‖_p up_p(MLP_p(LN(z_p)))) + b: a weighted sum of the fields that patches of each size p give.

    up_p is two transposed convolutions without overlap, of size p/2 and 2, with GELU between. `shared_mlp` uses one MLP
    for all sizes, as the authors' release does; the paper's counts have one each.
    """

    def __init__(self, ndim: int, width: int, channels: int, patches: Sides, *, shared_mlp: bool) -> None:
        super().__init__()
        conv, half = CONV_TRANSPOSE[ndim], width // 2
        self.patches = patches
        self.norm = LayerNorm(width)
        self.mlps = nn.ModuleList(FeedForward(width, 2 * width, nn.GELU) for _ in patches[: 1 if shared_mlp else None])
        self.grow = nn.ModuleList(conv(width, half, size // 2, size // 2) for size in patches)
        self.paint = nn.ModuleList(conv(half, channels, 2, 2) for _ in patches)
        self.mix = nn.Linear(len(patches) * channels, channels)

    def forward(self, z: Float[Tensor, "b t s d"], sides: Sides) -> Trajectory:
        whole = whole_sides(sides, self.patches)
        shapes = [tuple(side // size for side in whole) for size in self.patches]
        rows = self.norm(z).flatten(0, 1).split(list(map(math.prod, shapes)), dim=1)
        fields = []
        for k, (row, shape) in enumerate(zip(rows, shapes, strict=True)):
            patches = self.mlps[k % len(self.mlps)](row).mT.unflatten(-1, shape)
            fields.append(self.paint[k](F.gelu(self.grow[k](patches))))
        with torch.autocast(z.device.type, enabled=False):
            u = self.mix(torch.cat(fields, dim=1).movedim(1, -1).to(self.mix.weight.dtype))
        inside = tuple(slice(side) for side in sides)
        return u.unflatten(0, z.shape[:2])[(..., *inside, slice(None))]


# --- The model ------------------------------------------------------------------------------------------------------


class Latent(NamedTuple):
    """All of a question that no query time changes: the initial state, its points, parameters and tokens."""

    u0: Field
    x: Grid
    params: Params
    z: Float[Tensor, "b s d"]


class VCNeF(TrajectoryModel):
    """u(t, X | u₀, p) for all query times in one forward pass, in 1D, 2D and 3D (eq. 3 and figure 2).

    Query times never see each other; points do, by self-attention. `features`, `clocks` and `start` are parts that the
    paper does not have: what stands in place of x, what is added to C for p, and what is added to the answer.
    """

    def __init__(
        self,
        encoder: nn.Module,
        coordinates: nn.Module,
        decoder: nn.Module,
        blocks: Iterable[nn.Module],
        modulations: Iterable[nn.Module],
        sizes: tuple[int, int, int],
        *,
        features: nn.Module | None = None,
        clocks: nn.Module | None = None,
        start: nn.Module | None = None,
    ) -> None:
        """`blocks` end with a norm; `sizes` are the numbers of dimensions, channels and PDE parameters."""
        super().__init__()
        self.ndim, self.channels, self.params = sizes
        self.features = features or nn.Identity()
        self.encoder = encoder
        self.coordinates = coordinates
        self.clocks = clocks or Nothing()
        self.blocks = nn.ModuleList(blocks)
        self.modulations = nn.ModuleList(modulations)
        self.decoder = decoder
        self.start = start or Nothing()
        self.scattered = all(getattr(part, "scattered", True) for part in self.modules() if part is not self)

    def suits(self, sides: Sides, trained: Sides) -> bool:
        """Return whether sizes suit: points do not know of a spacing, patches have a fixed number of points."""
        return sides == trained or not isinstance(self.encoder, PatchEncoder)

    def encode(self, u0: Field, grid: Float[Tensor, "*x D"] | Grid, params: Params = None) -> Latent:
        x = self.features(grid if grid.ndim == u0.ndim else grid.unsqueeze(0))
        z, sides = self.encoder(u0, x, params), tuple(u0.shape[1:-1])
        *blocks, norm = self.blocks
        for block in blocks:
            z = block(z, sides)
        return Latent(u0, x, params, norm(z))

    def query(self, latent: Latent, t: Float[Tensor, " t"] | Float[Tensor, "b t"]) -> Trajectory:
        t = t if t.ndim == 2 else t.unsqueeze(0)
        u = self.decode(latent, t)
        return u + self.start(u, latent.u0, t)

    def decode(self, latent: Latent, t: Float[Tensor, "b_or_1 t"]) -> Trajectory:
        """Return what the network itself gives at these times, to which `start` is added."""
        sides = tuple(latent.u0.shape[1:-1])
        c = self.coordinates(t, latent.x) + self.clocks(t, latent.params)
        z = latent.z.unsqueeze(1)
        for modulation in self.modulations:
            z = modulation(z, c, sides)
        return self.decoder(z, sides)
