"""Mixing of neighbours on grids of tokens, out_i = Σ_k w_k ∘ z_(i + o_k): `mix_neighbours` without gradients,
`neighbours` with them, on periodic grids.

Tokens of several grids may stand in one row, each with its own stencil.
"""

# No postponed annotations here: custom operators read their signatures from them.

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice, product
from math import prod
from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels.launch import floats, launch
from vcnef.accelerate.kernels.operation import INFERENCE_TOLERANCE, TRAINING_TOLERANCE, Example, Operation, Sizes
from vcnef.accelerate.kernels.parts import add, columns, matrix, put, times, vector, zeros
from vcnef.accelerate.kernels.requirements import norm_obstacle
from vcnef.accelerate.kernels.stencil import MOST_TAPS, Stencil, enumerate_volumes
from vcnef.accelerate.kernels.sums import summed
from vcnef.accelerate.kernels.tiles import own_tile
from vcnef.accelerate.kernels.weights import Tiling
from vcnef.periodicity import Periodic, per_axis, spell_axes

IN_FLIGHT = 64 * 96 * 7
"""Numbers that a program of four warps loads before it adds them up: more would not stay in registers."""

FEATURES = 32
"""Of a program that sums the gradients of weights: those of all taps stay in registers."""

PIECE = 512
"""Tokens of such a program."""

SIZES = ["points", "first", "planes", "lines", "length"]
"""Arguments whose values do not make another compilation of a kernel."""

CLOSES = ("CLOSES_PLANES", "CLOSES_LINES", "CLOSES_LENGTH")
"""Arguments that say along which axes a grid closes."""


def obstacle(
    device: torch.device, dtype: torch.dtype, width: int, taps: int = 1, *, periodic: bool = True
) -> str | None:
    """Return why the kernels with gradients cannot serve stencils with so many taps, or None."""
    if not periodic:
        return "a grid that is not periodic"
    return inference_obstacle(device, dtype, width, taps)


def inference_obstacle(device: torch.device, dtype: torch.dtype, width: int, taps: int = 1) -> str | None:
    """Return the same without gradients, on any grid."""
    if taps > MOST_TAPS:
        return f"a stencil with {taps} taps, where at most {MOST_TAPS} are served"
    return norm_obstacle(device, dtype, width)


def mix_neighbours(
    tokens: Float[Tensor, "*b s d"], stencils: Sequence[Stencil], operands: torch.dtype
) -> Float[Tensor, "*b s d"]:
    """Mix tokens by one stencil per grid in a row; the result is in the type `operands`, summed in fp32."""
    points, width = tokens.shape[-2:]
    tokens = tokens.contiguous()
    out = torch.empty_like(tokens, dtype=operands)
    with torch.cuda.device_of(tokens):
        for first, stencil in enumerate_volumes(stencils):
            tiling = local_tiling(*stencil.weight.shape)
            tiles = -(-prod(stencil.sides) // tiling.tokens)
            mix_neighbours_kernel[(tokens.numel() // (points * width) * tiles,)](
                *(tokens, out, stencil.table(), stencil.weight, points, first, *stencil.sides),
                TAPS=len(stencil.offsets),
                **dict(zip(CLOSES, stencil.closes, strict=True)),
                D=width,
                BLOCK_S=tiling.tokens,
                **tiling.launch,
            )
    return out


def local_tiling(taps: int, width: int) -> Tiling:
    """From 8 to 64 tokens, the fewer the more features and taps there are."""
    fit = IN_FLIGHT // (taps * width)
    return Tiling(1 << min(max(fit.bit_length() - 1, 3), 6), 0, 4, 1)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def mix_neighbours_kernel(
    tokens, out, offsets, weights, points, first, planes, lines, length,
    TAPS: tl.constexpr, CLOSES_PLANES: tl.constexpr, CLOSES_LINES: tl.constexpr, CLOSES_LENGTH: tl.constexpr,
    D: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    """One program per row and tile of the grid's tokens, which begin with the row's `first`."""
    count = planes * lines * length
    row, begin = own_tile(count, BLOCK_S)
    point = begin + tl.arange(0, BLOCK_S)
    feature = columns(D)
    start = (row * points + first) * D
    total = zeros(BLOCK_S, feature)
    for tap in tl.static_range(TAPS):
        place = neighbour(point, offsets + 3 * tap, planes, lines, length, CLOSES_PLANES, CLOSES_LINES, CLOSES_LENGTH)
        there = matrix(tokens + start, place, feature, count, D)
        total = add(total, times(there, vector(weights + tap * D, feature, D)))
    put(out + start, total, point, feature, count, D)


@triton.jit
@no_type_check
def neighbour(
    point, offset, planes, lines, length,
    CLOSES_PLANES: tl.constexpr, CLOSES_LINES: tl.constexpr, CLOSES_LENGTH: tl.constexpr,
):  # fmt: skip
    """The places on the grid at this offset from the given ones."""
    plane = moved(point // (lines * length), tl.load(offset), planes, CLOSES_PLANES)
    line = moved(point // length % lines, tl.load(offset + 1), lines, CLOSES_LINES)
    return (plane * lines + line) * length + moved(point % length, tl.load(offset + 2), length, CLOSES_LENGTH)


@triton.jit
@no_type_check
def moved(place, offset, side, CLOSES: tl.constexpr):
    if CLOSES:
        place += (offset % side + side) % side
        return tl.where(place < side, place, place - side)
    else:
        return tl.minimum(tl.maximum(place + offset, 0), side - 1)


def neighbours(tokens: Float[Tensor, "*b s d"], stencils: Sequence[Stencil]) -> Float[Tensor, "*b s d"]:
    """Mix tokens by one stencil per grid in a row; all are periodic."""
    volumes = [each.in_volume() for each in stencils]
    offsets, sides, taps = [], [], []
    for each in volumes:
        for offset in each.offsets:
            offsets.extend(offset)
        sides.extend(each.sides)
        taps.append(len(each.offsets))
    return _neighbours(tokens.contiguous(), torch.cat([each.weight for each in volumes]), offsets, sides, taps)


@torch.library.custom_op("vcnef::neighbours_layer", mutates_args=())
def _neighbours(tokens: Tensor, weight: Tensor, offsets: list[int], sides: list[int], taps: list[int]) -> Tensor:
    return mix_neighbours(tokens, _stencils(weight, offsets, sides, taps), tokens.dtype)


@_neighbours.register_fake
def _(tokens: Tensor, weight: Tensor, offsets: list[int], sides: list[int], taps: list[int]) -> Tensor:
    return torch.empty_like(tokens)


@torch.library.custom_op("vcnef::neighbours_layer_backward", mutates_args=())
def _neighbours_backward(
    grad: Tensor, tokens: Tensor, weight: Tensor, offsets: list[int], sides: list[int], taps: list[int]
) -> tuple[Tensor, Tensor]:
    stencils = _stencils(weight, offsets, sides, taps)
    grad_weight = torch.cat([_weight_grad(grad, tokens, *each) for each in enumerate_volumes(stencils)])
    # z_(i + o) reaches out_i, so what comes back to z_j is from j − o.
    back = _stencils(weight, [-offset for offset in offsets], sides, taps)
    return mix_neighbours(grad, back, grad.dtype), grad_weight


@_neighbours_backward.register_fake
def _(
    grad: Tensor, tokens: Tensor, weight: Tensor, offsets: list[int], sides: list[int], taps: list[int]
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(tokens), torch.empty_like(weight)


def _stencils(weight: Tensor, offsets: list[int], sides: list[int], taps: list[int]) -> list[Stencil]:
    places = iter(_threes(offsets))
    return [
        Stencil(volume, tuple(islice(places, count)), part, periodic=True)
        for volume, count, part in zip(_threes(sides), taps, weight.split(taps), strict=True)
    ]


def _threes(values: list[int]) -> list[tuple[int, ...]]:
    return [tuple(values[start : start + 3]) for start in range(0, len(values), 3)]


def _weight_grad(grad: Tensor, tokens: Tensor, first: int, stencil: Stencil) -> Tensor:
    points, (taps, width) = tokens.shape[-2], stencil.weight.shape
    pieces = tokens.numel() // (points * width) * -(-prod(stencil.sides) // PIECE)
    weight_sums = floats(tokens, pieces, taps, width)
    launch(
        neighbours_backward_kernel, pieces * -(-width // FEATURES),
        *(grad, tokens, weight_sums, stencil.table(), points, first, *stencil.sides),
        TAPS=taps, BLOCK_TAPS=1 << (taps - 1).bit_length(), D=width, BLOCK_D=FEATURES, PIECE=PIECE,
    )  # fmt: skip
    return summed(weight_sums.flatten(1)).view(taps, width)


def _save(ctx: Any, inputs: tuple, output: Tensor) -> None:
    tokens, weight, *ctx.sizes = inputs
    ctx.save_for_backward(tokens, weight)


def _differentiate(ctx: Any, grad: Tensor) -> tuple:
    return *_neighbours_backward(grad.contiguous(), *ctx.saved_tensors, *ctx.sizes), None, None, None


_neighbours.register_autograd(_differentiate, setup_context=_save)


@triton.constexpr_function
def tokens_at_once(places, taps):
    return max(1, places // taps)


@triton.jit(do_not_specialize=SIZES)
@no_type_check
def neighbours_backward_kernel(
    grad, tokens, weight_sums, offsets, points, first, planes, lines, length,
    TAPS: tl.constexpr, BLOCK_TAPS: tl.constexpr, D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
    PIECE: tl.constexpr,
):  # fmt: skip
    """Σ_i g_i ∘ z_(i + o) of each tap, one program per piece of a row's grid and some of its features.

    `BLOCK_S` counts a token once for every tap: all of those are in registers.
    """
    count = planes * lines * length
    parts, pieces = tl.cdiv(D, BLOCK_D), tl.cdiv(count, PIECE)
    piece = tl.program_id(0) // parts
    start = ((piece // pieces).to(tl.int64) * points + first) * D
    feature = tl.program_id(0) % parts * BLOCK_D + tl.arange(0, BLOCK_D)
    tap = tl.arange(0, BLOCK_TAPS)
    offset = offsets + 3 * tl.minimum(tap, TAPS - 1)[:, None]

    AT_ONCE: tl.constexpr = tokens_at_once(BLOCK_S, BLOCK_TAPS)
    total = tl.zeros((BLOCK_TAPS, AT_ONCE, BLOCK_D), tl.float32)
    begin = piece % pieces * PIECE
    for nearest in range(begin, tl.minimum(begin + PIECE, count), AT_ONCE):
        point = nearest + tl.arange(0, AT_ONCE)
        inside = (point < count)[:, None] & (feature < D)[None, :]
        g = tl.load(grad + start + point[:, None] * D + feature[None, :], mask=inside, other=0.0)
        place = neighbour(point[None, :], offset, planes, lines, length, True, True, True)
        z = tl.load(tokens + start + place[:, :, None] * D + feature[None, None, :], mask=inside[None, :, :], other=0.0)
        total += g.to(tl.float32)[None, :, :] * z.to(tl.float32)
    where = piece.to(tl.int64) * TAPS * D + tap[:, None] * D + feature[None, :]
    tl.store(weight_sums + where, tl.sum(total, 1), mask=(tap < TAPS)[:, None] & (feature < D)[None, :])


def neighbours_baseline(tokens: Float[Tensor, "*b s d"], stencils: Sequence[Stencil]) -> Float[Tensor, "*b s d"]:
    rows = tokens.split([prod(each.sides) for each in stencils], dim=-2)
    return torch.cat([_on_grid(*each) for each in zip(rows, stencils, strict=True)], dim=-2)


def mix_neighbours_baseline(
    tokens: Float[Tensor, "*b s d"], stencils: Sequence[Stencil], operands: torch.dtype
) -> Float[Tensor, "*b s d"]:
    return neighbours_baseline(tokens.float(), stencils).to(operands)


def _on_grid(tokens: Float[Tensor, "*b s d"], stencil: Stencil) -> Float[Tensor, "*b s d"]:
    ndim = len(stencil.sides)
    field, axes = tokens.unflatten(-2, stencil.sides), tuple(range(-1 - ndim, -1))
    total = 0
    for offset, weight in zip(stencil.offsets, stencil.weight, strict=True):
        moved = field
        for axis, step, side, closes in zip(axes, offset, stencil.sides, stencil.closes, strict=True):
            places = torch.arange(step, side + step, device=field.device)
            moved = moved.index_select(axis, places % side if closes else places.clamp(0, side - 1))
        total = total + moved * weight
    return total.flatten(axes[0], -2)


Grids = list[tuple[tuple[int, ...], list[tuple[int, ...]]]]
"""The sides of every grid, and the offsets of its stencil."""


def _stencils_on(grids: Grids, weight: Tensor, *, periodic: Periodic) -> list[Stencil]:
    parts = weight.split([len(offsets) for _, offsets in grids])
    return [Stencil(sides, tuple(offsets), part, periodic) for (sides, offsets), part in zip(grids, parts, strict=True)]


def _draw_on(grids: Grids, sizes: Sizes) -> tuple[Tensor, Tensor]:
    tokens = sizes.draw(sizes.batch, sizes.times, sum(prod(sides) for sides, _ in grids), sizes.width)
    return tokens, sizes.draw(sum(len(offsets) for _, offsets in grids), sizes.width)


def examples(sizes: Sizes) -> Iterator[Example]:
    points = sizes.points
    plane, volume = list(product((-2, 0, 2), (-1, 0, 1))), list(product((-1, 1), repeat=3))
    cases: dict[str, Grids] = {
        "in a row": [((points,), [(offset,) for offset in (-3, -2, -1, 0, 1, 2, 3)])],
        "beyond a row": [((points,), [(-2 * points - 1,), (0,), (points,)])],
        "by one tap": [((points,), [(4,)])],
        "in a plane": [((3, 5), plane)],
        "in two volumes": [((4, 3, 2), volume), ((1, 2, 3), volume[:5])],
    }
    for label, grids in cases.items():
        tokens, weight = _draw_on(grids, sizes)
        yield Example(label, [tokens], [weight], partial(_arrange, grids))


def _arrange(grids: Grids, tokens: Tensor, weight: Tensor) -> tuple[Tensor, list[Stencil]]:
    return tokens, _stencils_on(grids, weight, periodic=True)


def mix_neighbours_examples(sizes: Sizes) -> Iterator[Example]:
    every = ((sizes.points,), (3,), (4, 5), (2, 3, 3))
    mixed = [((4, 5), (True, False)), ((2, 3, 3), (False, True, False))]
    for sides, periodic in [*product(every, (True, False)), *mixed]:
        offsets = list(product((-5, 0, 1), repeat=len(sides)))
        grids = [(sides, offsets), (sides[::-1], offsets)]
        tokens, weight = _draw_on(grids, sizes)
        label = f"on two grids {sides}, periodic {spell_axes(per_axis(periodic, len(sides)))}"
        yield Example(label, [tokens.to(sizes.dtype)], [weight], partial(_arrange_any, sizes, grids, periodic))


def _arrange_any(
    sizes: Sizes, grids: Grids, periodic: Periodic, tokens: Tensor, weight: Tensor
) -> tuple[Tensor, list[Stencil], torch.dtype]:
    return tokens, _stencils_on(grids, weight, periodic=periodic), sizes.dtype


NEIGHBOURS = Operation(
    "neighbours",
    neighbours,
    neighbours_baseline,
    obstacle,
    examples,
    differentiable=True,
    tolerance=TRAINING_TOLERANCE,
)
MIX_NEIGHBOURS = Operation(
    "mix_neighbours",
    mix_neighbours,
    mix_neighbours_baseline,
    inference_obstacle,
    mix_neighbours_examples,
    differentiable=False,
    tolerance=INFERENCE_TOLERANCE,
)
