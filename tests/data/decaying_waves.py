"""A tiny equation for the generator's tests, u_t = −rate u, with samples that blow up on request; also a script."""

import sys
import time
from dataclasses import dataclass, field

import numpy as np
import torch

from vcnef.grid import cell_centres
from vcnef.problem import Problem

PROBLEM = Problem("decay", channels=("u",), parameters=("rate",))


@dataclass
class DecayingWaves:
    name: str = "decay"
    problem: Problem = PROBLEM
    defaults: dict = field(default_factory=lambda: {"rate": 1.0})
    initial_options: dict = field(default_factory=lambda: {"amplitude": 1.0})
    stored_options: dict = field(default_factory=dict)
    resolution: int = 16
    frames: int = 5
    horizon: float = 1.0
    blows_up: tuple = ()
    """Samples that are not finite in their first draw."""
    pause: float = 0.0
    calls: list = field(default_factory=list)

    def initial_states(self, indices, *, seed, resolution, attempt, device, dtype, amplitude):
        self.calls.append((tuple(indices), attempt))
        x = cell_centres(self.problem.domain, resolution, dtype=torch.float64)[..., 0]
        phases = torch.tensor([np.random.default_rng([seed, i, attempt]).random() for i in indices])
        u0 = amplitude * torch.sin(2 * torch.pi * (x + phases[:, None]))[..., None]
        if attempt == 0:
            u0[[i in self.blows_up for i in indices]] = torch.inf
        return u0.to(device=device, dtype=dtype)

    def solve(self, u0, t, params):
        time.sleep(self.pause)
        return u0[:, None] * torch.exp(-params["rate"][:, None] * t.float())[:, :, None, None]


if __name__ == "__main__":
    from vcnef.data import generate

    out, pause, resume = sys.argv[1], float(sys.argv[2]), sys.argv[3] == "resume"
    waves = DecayingWaves(pause=pause, blows_up=(2, 21))
    generate(waves, samples=40, batch=4, seed=5, device="cpu", out=out, resume=resume, params={"rate": (0.1, 10.0)})
