"""Fourier neural operator: from one frame to the next."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.checks import check_at_least
from vcnef.models.interface import Stepper
from vcnef.models.rollout import Rollout
from vcnef.nn.layers import CONV, join_inputs
from vcnef.nn.spectral_conv import SpectralConv
from vcnef.periodicity import Periodic, per_axis

SIZES = {1: {"width": 64, "modes": 16}, 2: {"width": 48, "modes": 16}, 3: {"width": 20, "modes": 12}}
"""The sizes that give the paper's parameter counts; its table says 32 and 12 in 2D, which does not."""

PADDING = {1: (2,), 2: (2, 2), 3: (0, 0, 6)}
"""Zeros beyond the far edge of each axis, as in the benchmark's FNO, which has them for periodic fields too."""


class FNO(Stepper):
    """u(t + Δt) = P(K_L … K_1 L(x ‖ u ‖ p)) with K v = act(W v + F⁻¹ R F v) (Li et al. 2021), in 1D, 2D and 3D.

    With parameters p as input it is the paper's cFNO. `residual` adds u, so that the network gives the change. Without
    `padding` a periodic field stays one, and finer grids are answered as well as that of training; the paper's FNO, the
    benchmark's, is padded. No activation after the last Fourier layer. The benchmark's 3D model counts 160 weights of
    norms that it never uses; those are not built, so there are 22,123,593 here.
    """

    def __init__(
        self,
        ndim: int,
        channels: int,
        params: int,
        *,
        width: int,
        modes: int,
        depth: int,
        padding: tuple[int, ...],
        residual: bool,
    ) -> None:
        super().__init__()
        self.ndim, self.channels, self.params = ndim, channels, params
        self.padding, self.residual = padding, residual
        self.lift = nn.Linear(ndim + channels + params, width)
        self.spectral = nn.ModuleList(SpectralConv(ndim, width, modes) for _ in range(depth))
        self.local = nn.ModuleList(CONV[ndim](width, width, 1) for _ in range(depth))
        self.project = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, channels))

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        """Return whether padding is the same part of the domain: it is so many points, whatever their distance.

        On finer grids errors are several times as large.
        """
        return sides == trained or not any(self.padding)

    def forward(
        self,
        u: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "_ *x D"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> Float[Tensor, "b *x c"]:
        sides = u.shape[1:-1]
        field = self.lift(join_inputs(u, grid, params)).movedim(-1, 1)
        # F.pad counts axes from the last one.
        field = F.pad(field, [width for far in reversed(self.padding) for width in (0, far)])
        for number, (spectral, local) in enumerate(zip(self.spectral, self.local, strict=True), start=1):
            field = spectral(field) + local(field)
            if number < len(self.spectral):
                field = F.gelu(field)
        inside = tuple(slice(side) for side in sides)
        answer = self.project(field[(..., *inside)].movedim(1, -1))
        if self.residual:
            return u + answer
        return answer


def fno(
    ndim: int,
    channels: int,
    params: int = 0,
    *,
    steps: int = 40,
    width: int | None = None,
    modes: int | None = None,
    depth: int = 4,
    padding: bool | int | Sequence[int] | None = None,
    periodic: Periodic = True,
    residual: bool = False,
) -> Rollout:
    """Fourier neural operator, rolled out: autoregressive, `steps` steps to the training horizon (cFNO with params).

    steps: applications of the network to the training horizon, one per frame.
    width: channels of the layers in Fourier space.
    modes: wave numbers along each axis that a layer keeps.
    depth: number of those layers.
    padding: zeros beyond the far edges: so many points along all axes, or along each; none along periodic axes by
        default, and the benchmark's along others. True are the benchmark's, 2 in 1D and 2D and [0, 0, 6] in 3D, with
        which errors on finer grids are several times as large.
    periodic: which axes are; where some are and others not, the benchmark's padding is along the others alone.
    residual: the network gives the change in a step.
    """
    if ndim not in SIZES:
        raise ValueError(f"ndim is {ndim!r}; expected 1, 2 or 3.")
    given = {"width": width, "modes": modes}
    sizes = SIZES[ndim] | {name: size for name, size in given.items() if size is not None} | {"depth": depth}
    check_at_least(1, **sizes)
    zeros = _padding(padding, per_axis(periodic, ndim))
    return Rollout(FNO(ndim, channels, params, **sizes, padding=zeros, residual=residual), steps)


def _padding(asked: bool | int | Sequence[int] | None, closes: tuple[bool, ...]) -> tuple[int, ...]:
    """Return the zeros beyond the far edge of each axis; `asked` is as `fno` takes it."""
    ndim = len(closes)
    if asked is None:
        asked = not all(closes)
    if isinstance(asked, bool):
        if asked:
            return _benchmarks(closes)
        return (0,) * ndim
    zeros = (asked,) * ndim if isinstance(asked, int) else tuple(asked)
    if len(zeros) != ndim or any(width < 0 for width in zeros):
        raise ValueError(f"padding is {asked!r}; expected points from 0 on, one number or {ndim}. Leave it out.")
    return zeros


def is_benchmarks(asked: bool | int | Sequence[int] | None) -> bool:
    """Return whether this, as `fno` takes it, is the benchmark's padding of periodic fields in some dimension."""
    if isinstance(asked, bool) or asked is None:
        return asked is True
    return asked == 2 or (not isinstance(asked, int) and tuple(asked) in PADDING.values())


def _benchmarks(closes: tuple[bool, ...]) -> tuple[int, ...]:
    """Return the benchmark's zeros, for periodic data too; where only some axes end, as many along those."""
    usual = PADDING[len(closes)]
    if len(set(closes)) == 1:
        return usual
    return tuple(0 if each else max(usual) for each in closes)
