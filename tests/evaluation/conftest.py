"""A problem whose solution and whose surrogate's error are known: u(t, x) = u₀(x) exp(−rate t), off by a factor."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from vcnef.data import Trajectories
from vcnef.data.normalise import ParameterScale
from vcnef.grid import cell_centres
from vcnef.problem import Problem


@dataclass
class FakeSurrogate:
    """Answers (1 + error · points / 16) times the exact solution."""

    problem: Problem
    error: float = 0.1
    name: str = "fake"
    provenance: dict = field(default_factory=dict)
    model: nn.Module = field(default_factory=nn.Identity)
    calls: list = field(default_factory=list)

    horizon: int | float = 1.0

    @property
    def scaling(self):
        return SimpleNamespace(
            horizon=self.horizon, params=ParameterScale.fit(dict.fromkeys(self.problem.parameters, (0.0, 1.0)))
        )

    def answer(self, u0, grid, t, params):
        self.calls.append((tuple(u0.shape), len(t)))
        rate = params[:, 0] if params.shape[1] else torch.ones(len(u0))
        decay = torch.exp(-rate[:, None] * t[None])
        decay = decay.reshape(*decay.shape, *(1,) * (u0.ndim - 1))
        return (1 + self.error * grid.shape[0] / 16) * u0[:, None] * decay


def decaying(rates=(1.0,), samples=10, frames=9, points=64, ndim=1, channels=("u",)):
    problem = Problem("decay", channels, ("rate",), ((0.0, 1.0),) * ndim)
    grid = cell_centres(problem.domain, points)
    t = torch.linspace(0.0, 1.0, frames)
    rate = torch.tensor(rates).repeat_interleave(samples)
    phase = torch.rand(len(rate), *(1,) * ndim, len(channels))
    u0 = 2 + torch.sin(2 * torch.pi * (grid.sum(-1)[None, ..., None] + phase))
    u = u0[:, None] * torch.exp(-rate[:, None] * t).reshape(len(rate), frames, *(1,) * (ndim + 1))
    return Trajectories(u, t, grid, rate[:, None], problem, parts=(samples,) * len(rates))


@pytest.fixture
def make_data():
    return decaying


@pytest.fixture
def make_surrogate():
    def make(data, trained=(1.0,), **options):
        ranges = {name: (min(trained), max(trained)) for name in data.problem.parameters}
        problem = replace(data.problem, ranges=ranges)
        options.setdefault("provenance", {"resolution": [16], "times": [k / 4 for k in range(5)]})
        return FakeSurrogate(problem, **options)

    return make
