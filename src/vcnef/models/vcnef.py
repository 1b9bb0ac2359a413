"""VCNeF: the only file that knows how its parts fit together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from itertools import islice
from math import prod
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.checks import check_at_least, check_choice
from vcnef.models.interface import POINTS_ON_CPU, TrajectoryModel
from vcnef.nn.attention import ATTENTION
from vcnef.nn.blocks import Transformer, TransformerBlock
from vcnef.nn.coordinates import Clocks, Coordinates, FourierCoordinates, Line, LinearCoordinates, PeriodicFeatures
from vcnef.nn.decoders import PatchDecoder, PointDecoder, decode_after
from vcnef.nn.encoders import PatchEncoder, PointEncoder
from vcnef.nn.fused import half_products
from vcnef.nn.linear import only_values_matter
from vcnef.nn.local import Layout, LocalMix
from vcnef.nn.modulation import Begun, CoordinateBranch, ModulationBlock
from vcnef.nn.patches import apart, interleaved, together

MORE_FOR_PATCHES = 4
"""So many times more points are in flight on a GPU where a token is a patch."""

FEW = 8
"""An eighth of the tokens in flight: so many rows of what samples share hardly count."""


class Latent(NamedTuple):
    """An encoded initial state: itself, its parameters and tokens, the features of the points, the tokens' grids.

    Tokens are already as far as query times do not matter, which is in the middle of the first modulation block. The
    grids that a finer one is made up of, so many along each axis, are samples here.
    """

    u0: Float[Tensor, "b *x c"]
    params: Float[Tensor, "b p"] | None
    tokens: Begun | Line
    space: Float[Tensor, "_ s d"]
    layout: Layout
    grids: tuple[int, ...]


class VCNeF(TrajectoryModel):
    """Vectorized conditional neural field (Hagnberger, Kalimuthu, Musekamp, Niepert; ICML 2024), in 1D, 2D and 3D.

    Z⁰ = encoder(u₀ ‖ x ‖ p),  Zⁿ⁺¹ = Transformer_Block(Zⁿ),  Zᵐ⁺¹ = Modulation_Block(C(t, x), Zᵐ),  u = decoder(Z)

    All query times go through one forward pass and never see each other; points do, by self-attention.
    Beyond the paper: with `change` the decoder gives u − u₀, with `clocks` C knows p as well, and patches keep their
    physical size on finer grids: one k times as fine is read as kᴰ interleaved grids of the `sides` that are known.
    """

    half_kernels = True

    def __init__(
        self,
        encoder: PointEncoder | PatchEncoder,
        coordinates: LinearCoordinates | FourierCoordinates,
        decoder: PointDecoder | PatchDecoder,
        blocks: Transformer,
        modulations: nn.ModuleList,
        *,
        ndim: int,
        channels: int,
        params: int,
        features: PeriodicFeatures | nn.Identity,
        clocks: Clocks | None = None,
        change: bool = False,
        sides: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.ndim, self.channels, self.params, self.change, self.sides = ndim, channels, params, change, sides
        self.features = features
        self.encoder = encoder
        self.coordinates = coordinates
        self.clocks = clocks
        self.blocks = blocks
        self.modulations = modulations
        self.decoder = decoder
        self.scattered = not any(isinstance(part, PatchEncoder | LocalMix) for part in self.modules())

    def points_in_flight(self, device: torch.device) -> int:
        """Where tokens stand for patches there are fewer of them, and more points keep a GPU busy; where they stand for
        points, a CPU's caches hold as many in all dimensions."""
        usual, patches = super().points_in_flight(device), isinstance(self.encoder, PatchEncoder)
        if device.type == "cuda":
            return usual * (MORE_FOR_PATCHES if patches else 1)
        return usual if patches else POINTS_ON_CPU[1]

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        """Tokens of points do not know of a spacing; patches that keep their size suit whole multiples of it."""
        if not isinstance(self.encoder, PatchEncoder) or sides == trained:
            return True
        return self.sides == trained and prod(interleaved(sides, trained)) > 1

    def encode(
        self,
        u0: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "b *x D"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> Latent:
        grid = grid if grid.ndim == u0.ndim else grid.unsqueeze(0)
        grids = interleaved(u0.shape[1:-1], self.sides)
        if (several := prod(grids)) > 1:
            u0, grid = apart(u0, grids), apart(grid.expand(u0.shape[0], *grid.shape[1:]), grids)
            params = params if params is None else params.repeat_interleave(several, 0)
        layout, points = self.encoder.layout(u0.shape[1:-1]), self.features(grid)
        tokens = self.blocks(self.encoder(u0, points, params), layout)
        space = self.coordinates.encode_space(points)
        straight = self.modulations[0].branch.straight and self.clocks is None and only_values_matter()
        coordinates = self.coordinates.line(space) if straight else None
        begun = self.modulations[0].begin(tokens.unsqueeze(1), layout, coordinates)
        return Latent(u0, params, begun, space, layout, grids)

    def query(self, latent: Latent, t: Float[Tensor, " t"] | Float[Tensor, "b t"]) -> Float[Tensor, "b t *x c"]:
        return self._answer(latent, self._fields(latent, t))

    def query_in_parts(self, latent: Latent, t: Tensor, times: int) -> Iterator[Float[Tensor, "b part *x c"]]:
        """As of every model; but what coordinates alone make is computed for many parts, where samples share it."""
        if t.ndim > 1 or len(latent.space) > 1 or self.clocks is not None:
            yield from super().query_in_parts(latent, t, times)
            return
        for some in t.split(times * max(1, len(latent.u0) // FEW)):
            fields = list(self._fields(latent, some))
            for first in range(0, len(some), times):
                yield self._answer(latent, (field[:, first : first + times] for field in fields))

    def _fields(self, latent: Latent, t: Tensor) -> Iterator[Float[Tensor, "b_or_1 t *sd"]]:
        """MLP(C) of each modulation block, one after the other; for a first one that has become a line, the times."""
        t = t.repeat_interleave(prod(latent.grids), 0) if t.ndim == 2 else t.unsqueeze(0)
        if straight := isinstance(latent.tokens, Line):
            yield t
        time = self.coordinates.encode_time(t)
        time = time if self.clocks is None else time + self.clocks(t, latent.params)
        coordinates = Coordinates(time, latent.space)
        branches = [each.branch for each in islice(self.modulations, int(straight), None)]
        shared = time.shape[0] == latent.space.shape[0] == 1
        if torch.is_grad_enabled() and shared and branches[0].residual is None:
            yield from CoordinateBranch.together(branches, coordinates)
            return
        for branch in branches:
            with half_products(latent.space):
                field = branch(coordinates)
            yield field

    def _answer(self, latent: Latent, fields: Iterator[Float[Tensor, "b_or_1 t *sd"]]) -> Float[Tensor, "b t *x c"]:
        first, *others = self.modulations
        tokens = first.finish(latent.tokens, next(fields))
        for modulation in others[:-1]:
            tokens = modulation(tokens, next(fields), latent.layout)
        u = self._end(others[-1], tokens, next(fields), latent) if others else self._decode(tokens, latent)
        u = u + latent.u0.unsqueeze(1) if self.change else u
        return u if prod(latent.grids) == 1 else together(u, latent.grids)

    def _end(self, last: ModulationBlock, tokens: Tensor, field: Tensor, latent: Latent) -> Float[Tensor, "b t *x c"]:
        """The last block and the decoder, which may be one kernel."""
        if (u := decode_after(last, self.decoder, tokens, field, latent.layout)) is not None:
            return u.unflatten(2, latent.u0.shape[1:-1])
        return self._decode(last(tokens, field, latent.layout), latent)

    def _decode(self, tokens: Tensor, latent: Latent) -> Float[Tensor, "b t *x c"]:
        # Fused kernels answer in the type of their operands; the decoder goes on in it.
        dtype = latent.u0.dtype
        half = tokens.dtype.itemsize < dtype.itemsize
        with torch.autocast(tokens.device.type, tokens.dtype) if half else nullcontext():
            return self.decoder(tokens, latent.u0.shape[1:-1]).to(dtype)


SIZES = {
    1: {"width": 96, "depth": 3, "modulations": 3, "patches": ()},
    2: {"width": 256, "depth": 1, "modulations": 6, "patches": (4, 16)},
    3: {"width": 256, "depth": 1, "modulations": 6, "patches": (4, 16)},
}
"""The paper's sizes by number of dimensions (its table of hyper-parameters)."""

POINTS_PER_PATCH = {"paper": {1: 1, 2: 1, 3: 2}, "release": {1: 2, 2: 2, 3: 2}}
"""How many points stand for a patch in its coordinates; the paper's 2D and 3D parameter counts imply different ones."""

ACTIVATIONS = {"relu": partial(nn.ReLU, inplace=True), "gelu": nn.GELU}


def vcnef(
    ndim: int,
    channels: int,
    params: int = 0,
    *,
    variant: str = "paper",
    width: int | None = None,
    heads: int = 8,
    depth: int | None = None,
    modulations: int | None = None,
    patches: tuple[int, ...] | None = None,
    attention: str = "linear",
    conditioning: str = "scale",
    periodic: bool = True,
    dropout: float = 0.0,
    frequencies: int = 0,
    lengths: tuple[float, ...] | None = None,
    pace: float = 1.0,
    clocks: int = 0,
    speeds: tuple[tuple[float, float, bool], ...] | None = None,
    local: int = 0,
    sides: tuple[int, ...] | None = None,
    activation: str | None = None,
    change: bool = False,
) -> VCNeF:
    """Vectorized conditional neural field: the whole trajectory at once; sizes left out are the paper's for that ndim.

    variant: "paper" has the published parameter counts; "release" is what the authors' code computes, with a linear map
        for the MLP on the coordinates of each modulation block and one MLP shared by the decoders of all patch sizes.
    depth, modulations: number of transformer blocks on the initial state and of modulation blocks.
    patches: patch sizes in points of the training grid, e.g. (4, 16); () makes a token of every point, and points may
        then be scattered.
    attention: "linear", "softmax", or "none" (ablation).
    conditioning: "scale", or "scale_shift" (ablation).
    periodic: how a grid is continued past its edges, by patches that are not whole and by `local`.

    Beyond the paper:
    sides: those of the training grid, in points. Patches then keep their physical size on grids that are a whole number
        of times as fine. Left out, or with the release's variant, they are as many points on every grid.
    frequencies: for tokens of points, sin and cos of so many periods of the domain, of `lengths` as the network sees
        them (1 by default), in place of x.
    pace: what t is multiplied by before it is encoded. For points, 10 makes a tenth of the horizon as large as the
        domain, and what happens within it is learnt sooner. Patches have sines of t with up to 5000 radians until the
        horizon, which tell frames apart but not what is between them; 0.02 leaves 100.
    clocks: so many sines and cosines of time, which passes as fast as each parameter says by its `speeds`, (a, b,
        logarithmic): a + b p or exp(a + b p) of the parameter p as the network sees it, p itself by default.
    local: how many neighbours each way a stencil beside every attention reaches; 0 is no stencil. It keeps its physical
        length on finer grids, which needs `sides`. N points are taken for the centres of N cells: where they lie on
        both ends of the domain, its length is off by 1/N at most.
    activation: "relu" or "gelu"; by default the release's, ReLU for points and GELU for patches.
    change: the network gives the change since the initial state, which is added to it.
    """
    check_choice("ndim", ndim, SIZES)
    check_choice("variant", variant, POINTS_PER_PATCH)
    check_choice("attention", attention, [*ATTENTION, "none"])
    check_choice("conditioning", conditioning, ["scale", "scale_shift"])
    check_choice("activation", activation, [None, *ACTIVATIONS])
    given = {"width": width, "depth": depth, "modulations": modulations, "patches": patches}
    width, depth, modulations, patches = (SIZES[ndim][name] if size is None else size for name, size in given.items())
    check_at_least(1, width=width, heads=heads, modulations=modulations)
    check_at_least(0, depth=depth)
    check_at_least(0, frequencies=frequencies, clocks=clocks, local=local)
    patches, lengths = tuple(patches), tuple(lengths or (1.0,) * ndim)
    speeds = tuple(speeds or ((0.0, 1.0, False),) * params)
    _check_space(ndim, patches, frequencies, lengths, local, sides)
    _check_time(params, pace, clocks, speeds)
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; expected a probability below 1.")
    release = variant == "release"
    features = PeriodicFeatures(frequencies, lengths, periodic=periodic) if frequencies else nn.Identity()
    inputs = channels + params + (features.count if frequencies else ndim)
    # As in the release: ReLU and a plain coordinate branch for points, GELU and a residual one for patches.
    act = ACTIVATIONS[activation or ("gelu" if patches else "relu")]

    def attend() -> nn.Module | None:
        return None if attention == "none" else ATTENTION[attention](width, heads)

    def mix() -> LocalMix | None:
        if not local:
            return None
        grids = tuple(tuple(side / size for side in sides) for size in patches or (1,))
        return LocalMix(width, local, grids, periodic=periodic)

    def modulate() -> ModulationBlock:
        branch = CoordinateBranch(width, act, nonlinear=not release, residual=bool(patches))
        shift = conditioning == "scale_shift"
        return ModulationBlock(width, attend(), branch, act, shift=shift, dropout=dropout, local=mix())

    if patches:
        encoder = PatchEncoder(ndim, inputs, width, patches, periodic=periodic)
        coordinates = FourierCoordinates(ndim, width, patches, POINTS_PER_PATCH[variant][ndim], pace)
        decoder = PatchDecoder(ndim, width, channels, patches, shared_mlp=release)
    else:
        encoder = PointEncoder(inputs, width)
        coordinates = LinearCoordinates(features.count if frequencies else ndim, width, pace)
        decoder = PointDecoder(width, channels)
    blocks = [TransformerBlock(width, attend(), act, dropout, mix()) for _ in range(depth)]
    return VCNeF(
        encoder,
        coordinates,
        decoder,
        Transformer(width, blocks),
        nn.ModuleList(modulate() for _ in range(modulations)),
        ndim=ndim,
        channels=channels,
        params=params,
        features=features,
        clocks=Clocks(clocks, width, speeds) if clocks else None,
        change=change,
        sides=tuple(sides) if sides and patches and not release else None,
    )


def _check_space(
    ndim: int,
    patches: tuple[int, ...],
    frequencies: int,
    lengths: tuple[float, ...],
    local: int,
    sides: tuple[int, ...] | None,
) -> None:
    if any(size < 2 or size % 2 for size in patches):
        raise ValueError(f"patches is {patches}; expected even sizes, e.g. (4, 16), or () for points.")
    if frequencies and (patches or len(lengths) != ndim or min(lengths) <= 0):
        raise ValueError(
            f"frequencies is {frequencies} with patches {patches} and lengths {lengths}; expected no patches, "
            f"whose coordinates have learnt frequencies already, and {ndim} lengths of the domain, all above 0."
        )
    if (local and not sides) or ((local or patches) and sides and (len(sides) != ndim or min(sides) < 1)):
        asked = f"local is {local}" if local else f"patches is {patches}"
        need = "a stencil needs" if local else "patches need"
        raise ValueError(f"{asked} with sides {sides}; {need} a regular grid. Give its {ndim} sides in points.")


def _check_time(params: int, pace: float, clocks: int, speeds: tuple[tuple[float, float, bool], ...]) -> None:
    if not pace > 0:
        raise ValueError(f"pace is {pace:g}; expected a factor above 0.")
    if clocks and (not params or len(speeds) != params):
        raise ValueError(
            f"clocks is {clocks} with {params} parameters and {len(speeds)} speeds; expected parameters that clocks go "
            "by, and a speed of each. Leave clocks out where there are none."
        )
