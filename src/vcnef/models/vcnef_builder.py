"""The builder of VCNeF: its options, what they default to, and the parts that they stand for."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from torch import nn

from vcnef.checks import check_at_least, check_choice
from vcnef.models.vcnef import (
    CoordinateBranch,
    FourierCoordinates,
    LinearAttention,
    LinearCoordinates,
    ModulationBlock,
    Nothing,
    PatchDecoder,
    PatchEncoder,
    PointDecoder,
    PointEncoder,
    SoftmaxAttention,
    TransformerBlock,
    VCNeF,
)
from vcnef.models.vcnef_beyond import (
    Clocks,
    ConservedMeans,
    InitialState,
    InterleavedVCNeF,
    MeanRate,
    PeriodicFeatures,
    SpectralMixing,
    Speeds,
    Stencil,
)
from vcnef.nn.layer_norm import LayerNorm
from vcnef.periodicity import Periodic

ATTENTION = {"linear": LinearAttention, "softmax": SoftmaxAttention}


class NetworkSizes(NamedTuple):
    """NetworkSizes that follow the paper's where they are left out."""

    width: int
    depth: int
    modulations: int
    patches: tuple[int, ...]


SIZES: dict[int, dict[str, Any]] = {
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
    periodic: Periodic = True,
    dropout: float = 0.0,
    frequencies: int = 0,
    lengths: tuple[float, ...] | None = None,
    pace: float = 1.0,
    clocks: int = 0,
    speeds: Speeds | None = None,
    local: int = 0,
    modes: int = 0,
    sides: tuple[int, ...] | None = None,
    activation: str | None = None,
    change: bool = False,
    rate: bool = False,
    conserved: tuple[int, ...] = (),
    history: int = 1,
) -> VCNeF:
    """Vectorized conditional neural field: the whole trajectory at once; sizes left out are the paper's for that ndim.

    variant: "paper" has the published parameter counts; "release" is what the authors' code computes, with a linear map
        for the MLP on the coordinates of each modulation block and one MLP shared by the decoders of all patch sizes.
    width: features of a token.
    heads: attention heads, which share the width.
    depth: number of transformer blocks, which see the initial state alone.
    modulations: number of modulation blocks after them, which see the query times too.
    patches: patch sizes in points of the training grid, e.g. (4, 16); () makes a token of every point, and points may
        then be scattered.
    attention: "linear", "softmax", or "none" (ablation).
    conditioning: "scale", or "scale_shift" (ablation).
    periodic: how a grid is continued past its edges, by patches that are not whole, `local` and `modes`: true or
        false, or one of them for each axis.
    dropout: share of the features that are left out at random in training.

    Beyond the paper:
    sides: those of the training grid, in points. Patches then keep their physical size on grids that are a whole number
        of times as fine. Left out, or with the release's variant, they are as many points on every grid.
    frequencies: for tokens of points, sin and cos of so many periods of the domain in place of x.
    lengths: of the domain along each axis, as the network sees it; 1 by default.
    pace: what t is multiplied by before it is encoded. For points, 10 makes a tenth of the horizon as large as the
        domain, and what happens within it is learnt sooner. Patches have sines of t with up to 5000 radians until the
        horizon, which tell frames apart but not what is between them; 0.02 leaves 100.
    clocks: so many sines and cosines of time, which passes as fast as each parameter says by its `speeds`.
    speeds: for each parameter (a, b, logarithmic): time passes as fast as a + b p, or exp(a + b p), of the parameter p
        as the network sees it; p itself by default.
    local: how many neighbours each way a stencil beside every attention reaches; 0 is no stencil. It keeps its physical
        length on finer grids, which needs `sides`. N points are taken for the centres of N cells: where they lie on
        both ends of the domain, its length is off by 1/N at most.
    modes: beside every attention, tokens are convolved over the whole domain by a filter of each feature, learnt for so
        many wave numbers along every axis; 0 is no filter. In place of `local`, on regular grids.
    activation: "relu" or "gelu"; by default the release's, ReLU for points and GELU for patches.
    change: the network gives the change since the initial state, which is added to it.
    rate: the network gives that change divided by the time since: at time 0 the answer is the initial state.
    conserved: channels, by number, whose mean over the points stays that of the initial state, by a constant that is
        added to the answer. `data.conserve` finds them, or takes their names.
    history: so many frames are what an answer begins with, u0 the last of them: for fields that one frame does not
        determine, as where some are not observed. Only with windows, on frames of equal steps.
    """
    check_choice("ndim", ndim, SIZES)
    check_choice("variant", variant, POINTS_PER_PATCH)
    check_choice("attention", attention, [*ATTENTION, "none"])
    check_choice("conditioning", conditioning, ["scale", "scale_shift"])
    check_choice("activation", activation, [None, *ACTIVATIONS])
    asked = {"width": width, "depth": depth, "modulations": modulations, "patches": patches}
    size = NetworkSizes(**SIZES[ndim] | {name: value for name, value in asked.items() if value is not None})
    check_at_least(1, width=size.width, heads=heads, modulations=size.modulations, history=history)
    check_at_least(0, depth=size.depth)
    check_at_least(0, frequencies=frequencies, clocks=clocks, local=local, modes=modes)
    if local and modes:
        raise ValueError(f"local is {local} and modes is {modes}; a block has one of them. Leave out the other.")
    patches, lengths = tuple(size.patches), tuple(lengths or (1.0,) * ndim)
    speeds = tuple(speeds or ((0.0, 1.0, False),) * params)
    _check_space(ndim, patches, frequencies, lengths, local, sides)
    _check_time(params, pace, clocks, speeds)
    if change and rate:
        raise ValueError("change and rate are both true; a network gives one of them. Leave out the other.")
    if any(not 0 <= channel < channels for channel in conserved):
        raise ValueError(f"conserved is {tuple(conserved)}; expected numbers of channels, from 0 to {channels - 1}.")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; expected a probability below 1.")
    release = variant == "release"
    # As in the release: ReLU and a plain coordinate branch for points, GELU and a residual one for patches.
    usual = "relu"
    if patches:
        usual = "gelu"
    act = ACTIVATIONS[activation or usual]

    def attend() -> nn.Module:
        if attention == "none":
            return Nothing()
        return ATTENTION[attention](size.width, heads)

    def neighbours() -> nn.Module | None:
        if modes:
            return SpectralMixing(ndim, size.width, modes, patches, periodic=periodic)
        if local and sides is not None:
            return Stencil(size.width, local, sides, patches, periodic=periodic)
        return None

    def modulate() -> ModulationBlock:
        branch = CoordinateBranch(size.width, act, nonlinear=not release, residual=bool(patches))
        shift = conditioning == "scale_shift"
        return ModulationBlock(size.width, attend(), branch, act, shift=shift, dropout=dropout, local=neighbours())

    extras: dict[str, Any] = {}
    coordinates_count = ndim
    if frequencies:
        features = PeriodicFeatures(frequencies, lengths, periodic=periodic)
        extras["features"], coordinates_count = features, features.count
    inputs = history * channels + params + coordinates_count
    if patches:
        encoder = PatchEncoder(ndim, inputs, size.width, patches, periodic=periodic)
        coordinates = FourierCoordinates(ndim, size.width, patches, POINTS_PER_PATCH[variant][ndim], pace)
        decoder = PatchDecoder(ndim, size.width, channels, patches, shared_mlp=release)
    else:
        encoder = PointEncoder(inputs, size.width)
        coordinates = LinearCoordinates(coordinates_count, size.width, pace)
        decoder = PointDecoder(size.width, channels)
    blocks = [TransformerBlock(size.width, attend(), act, dropout, neighbours()) for _ in range(size.depth)]
    modulation_blocks = [modulate() for _ in range(size.modulations)]
    if clocks:
        extras["clocks"] = Clocks(clocks, size.width, speeds)
    if change:
        extras["start"] = InitialState()
    if rate:
        extras["start"] = MeanRate()
    if conserved:
        extras["start"] = ConservedMeans(extras.get("start", Nothing()), conserved, channels)
    model = VCNeF
    if sides and patches and not release:
        model, extras["training_sides"] = InterleavedVCNeF, tuple(sides)
    parts = encoder, coordinates, decoder, [*blocks, LayerNorm(size.width)], modulation_blocks
    built = model(*parts, (ndim, channels, params), **extras)
    built.history = history
    return built


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


def _check_time(params: int, pace: float, clocks: int, speeds: Speeds) -> None:
    if not pace > 0:
        raise ValueError(f"pace is {pace:g}; expected a factor above 0.")
    if clocks and (not params or len(speeds) != params):
        raise ValueError(
            f"clocks is {clocks} with {params} parameters and {len(speeds)} speeds; expected parameters that clocks go "
            "by, and a speed of each. Leave clocks out where there are none."
        )
