"""PINN: a network that is the solution of one equation from one initial state."""

from __future__ import annotations

from itertools import pairwise
from math import pi
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.checks import check_at_least, check_lengths
from vcnef.models.interface import TrajectoryModel, times_with_samples, with_samples
from vcnef.periodicity import Periodic, per_axis


class Points(NamedTuple):
    """Where the solution is asked for, and by how many samples."""

    grid: Float[Tensor, "_ *x D"]
    samples: int


class PINN(TrajectoryModel):
    """u(t, x) = MLP(t, x) (Raissi et al. 2019), with tanh and Glorot's normal weights, as in the benchmark.

    One network per instance: it answers only for the initial state and parameters that it was trained for, and reads
    neither. Train it on the equation, with `data_weight: 0` and `data.instance`; the residual is taken on the grid of
    the data, with exact derivatives in time.

    Along a periodic axis x enters as (cos, sin)(2π x / L), which is periodic by itself; `periodic=False` is the
    published network of x as it is, which has to learn that.
    """

    one_instance = True
    scattered = True

    def __init__(
        self,
        ndim: int,
        channels: int,
        params: int,
        *,
        width: int,
        depth: int,
        periodic: Periodic,
        lengths: tuple[float, ...],
    ) -> None:
        super().__init__()
        self.ndim, self.channels, self.params = ndim, channels, params
        closes = per_axis(periodic, ndim)
        self.closed = [axis for axis in range(ndim) if closes[axis]]
        self.ending = [axis for axis in range(ndim) if not closes[axis]]
        self.lengths: Tensor
        self.register_buffer("lengths", torch.tensor(lengths), persistent=False)
        sides = [1 + len(self.ending) + 2 * len(self.closed), *[width] * depth]
        hidden: list[nn.Module] = []
        for before, after in pairwise(sides):
            hidden += [nn.Linear(before, after), nn.Tanh()]
        self.network = nn.Sequential(*hidden, nn.Linear(width, channels))
        for part in self.network:
            if isinstance(part, nn.Linear):
                nn.init.xavier_normal_(part.weight)
                nn.init.zeros_(part.bias)

    def encode(self, u0: Tensor, grid: Tensor, params: Tensor | None = None) -> Points:
        return Points(with_samples(grid, u0), len(u0))

    def query(self, latent: Points, t: Float[Tensor, " t"] | Float[Tensor, "b t"]) -> Float[Tensor, "b t *x c"]:
        space = self._features(latent.grid).unsqueeze(1)
        times = times_with_samples(t).view(-1, t.shape[-1], *[1] * (space.ndim - 2))
        shape = max(len(space), len(times)), t.shape[-1], *space.shape[2:-1]
        # All of it is what is asked and answered: differences of rounded values are no derivatives.
        with torch.autocast(space.device.type, enabled=False):
            u = self.network(torch.cat([times.expand(*shape, 1), space.expand(*shape, -1)], dim=-1))
        return u.expand(latent.samples, *u.shape[1:])

    def _features(self, grid: Tensor) -> Tensor:
        if not self.closed:
            return grid
        angle = 2 * pi * grid / self.lengths
        # Lists of all axes would copy what is there already.
        if self.ending:
            grid, angle = grid[..., self.ending], angle[..., self.closed]
            return torch.cat([grid, angle.cos(), angle.sin()], dim=-1)
        return torch.cat([angle.cos(), angle.sin()], dim=-1)


def pinn(
    ndim: int,
    channels: int,
    params: int = 0,
    *,
    width: int = 40,
    depth: int = 6,
    periodic: Periodic = True,
    lengths: tuple[float, ...] | None = None,
) -> PINN:
    """Physics-informed neural network: one solution u(t, x), trained on the equation for one initial state.

    width: features of a hidden layer.
    depth: hidden layers.
    periodic: whether x enters by its sine and cosine, so that the solution repeats itself: true or false, or one of
        them for each axis.
    lengths: of the domain, in which a periodic network repeats itself; 1 by default.
    """
    if ndim not in (1, 2, 3):
        raise ValueError(f"ndim is {ndim!r}; expected 1, 2 or 3.")
    check_at_least(1, width=width, depth=depth)
    check_lengths(ndim, lengths)
    parts = {"width": width, "depth": depth, "periodic": periodic, "lengths": lengths or (1.0,) * ndim}
    return PINN(ndim, channels, params, **parts)
