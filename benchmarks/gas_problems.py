"""Gases in periodic boxes, whose trajectories are learnt for a short time and continued for a long one.

`Euler` and `Gas` are problems like those of `foreign_problems`: random states, and a solver. `until` gives the same
problem with more frames, as far apart as before.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Generator, Tensor

import vcnef
from foreign_problems import DOUBLE, Params, Problem, uniform

LARGEST_STEP = 1e-3
COURANT = 0.45
NUMBERS_AT_ONCE = 2**27
"""Of all fields that are solved together in the plane."""


def until(problem: Problem, horizon: float) -> Problem:
    """The same problem, followed to another time."""
    longer = copy.copy(problem)
    gap = problem.horizon / (problem.frames - 1)
    longer.frames, longer.horizon = round(horizon / gap) + 1, horizon
    return longer


class Euler(Problem):
    """rho_t + (rho v)_x = 0, (rho v)_t + (rho v^2 + p)_x = 0, E_t + (v (E + p))_x = 0 on [0, L).

    E = p / (gamma - 1) + rho v^2 / 2 with gamma = 1.4. Solved in double precision by finite volumes of first order with
    Rusanov's flux, whose diffusion is a part of these data. The states are smooth Gaussian random fields with a length
    of one, at Mach numbers in [0.05, 0.35].
    """

    samples, frames, horizon = 1500, 16, 1.5
    channels = ("density", "pressure", "vx")
    gamma = 1.4

    def __init__(self, length: float, points: int) -> None:
        self.lengths, self.points = (length,), (points,)

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        density, pressure, velocity = (self.random_field(samples, generator) for _ in range(3))
        mach = uniform(samples, 0.05, 0.35, generator).reshape(-1, 1)
        fields = 1 + 0.15 * density, 1 + 0.10 * pressure, mach * math.sqrt(self.gamma) * velocity
        return torch.stack(fields, dim=1)

    def random_field(self, samples: int, generator: Generator) -> Tensor:
        """Fields `[n x]` of mean 0 and mean square 1 with the power exp(-2 (pi k / L)^2) at wave number k."""
        (points,), (length,) = self.points, self.lengths
        k = torch.arange(points // 2 + 1, dtype=DOUBLE)
        amplitude = torch.exp(-((math.pi * k / length) ** 2))
        amplitude[0] = 0.0
        noise = torch.randn(samples, points, generator=generator, dtype=DOUBLE)
        field = torch.fft.irfft(torch.fft.rfft(noise) * amplitude, n=points)
        return field / field.square().mean(dim=-1, keepdim=True).sqrt()

    def solve(self, start: Tensor, params: Params, refine: int = 1) -> Tensor:
        gap = self.horizon / (self.frames - 1)
        state, frames = self.conserved(start), [start]
        for _ in range(self.frames - 1):
            density, pressure, velocity = self.primitive(state).unbind(dim=1)
            fastest = float((velocity.abs() + (self.gamma * pressure / density).sqrt()).max())
            allowed = min(LARGEST_STEP, COURANT * self.lengths[0] / self.points[0] / fastest)
            steps = refine * math.ceil(gap / allowed)
            for _ in range(steps):
                state = state - gap / steps * self.divergence(state)
            frames.append(self.primitive(state))
        return torch.stack(frames, dim=1).float().cpu()

    def divergence(self, state: Tensor) -> Tensor:
        """Of Rusanov's flux: the mean of both sides' fluxes, and their jump times the faster of their waves."""
        density, pressure, velocity = self.primitive(state).unbind(dim=1)
        momentum, energy = state[:, 1], state[:, 2]
        flux = torch.stack((momentum, momentum * velocity + pressure, velocity * (energy + pressure)), dim=1)
        speed = velocity.abs() + (self.gamma * pressure / density).sqrt()
        speed = torch.maximum(speed, speed.roll(-1, dims=-1)).unsqueeze(1)
        right = 0.5 * (flux + flux.roll(-1, dims=-1)) - 0.5 * speed * (state.roll(-1, dims=-1) - state)
        return (right - right.roll(1, dims=-1)) * (self.points[0] / self.lengths[0])

    def conserved(self, fields: Tensor) -> Tensor:
        density, pressure, velocity = fields.unbind(dim=1)
        energy = pressure / (self.gamma - 1) + 0.5 * density * velocity.square()
        return torch.stack((density, density * velocity, energy), dim=1)

    def primitive(self, state: Tensor) -> Tensor:
        density, momentum, energy = state.unbind(dim=1)
        velocity = momentum / density
        pressure = (self.gamma - 1) * (energy - 0.5 * momentum * velocity)
        return torch.stack((density, pressure, velocity), dim=1)


class Gas(Problem):
    """The compressible Navier-Stokes equations of `vcnef.solve("cns2d")` with eta = zeta = 1e-8 at Mach 0.1.

    The states are Gaussian random fields whose length, one for all fields of a sample, is in [0.05, 0.15]. Solved on
    `finer` times as many points a side, of which spectra keep the waves that the data's grid has.
    """

    samples, frames, horizon = 1500, 11, 1.0
    points, lengths = (64, 64), (1.0, 1.0)
    channels = ("density", "pressure", "vx", "vy")
    finer = 2
    gamma = 5 / 3
    viscosity = 1e-8
    mach = 0.1

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        length = uniform(samples, 0.05, 0.15, generator).reshape(-1, 1, 1)
        density, pressure, vx, vy = (self.random_field(length, generator) for _ in range(4))
        fields = 1 + 0.1 * density, (1 + 0.05 * pressure) / self.gamma, self.mach * vx, self.mach * vy
        return torch.stack(fields, dim=1)

    def random_field(self, length: Tensor, generator: Generator) -> Tensor:
        """Fields `[n x y]` of mean 0 and mean square 1 on the finer grid; a wave k is as strong as exp(-(pi l k)^2)."""
        side = self.finer * self.points[0]
        k = torch.fft.fftfreq(side, 1 / side, dtype=DOUBLE)
        square = k[:, None].square() + k[: side // 2 + 1].square()
        amplitude = torch.exp(-((math.pi * length) ** 2) * square)
        amplitude[:, 0, 0] = 0.0
        noise = torch.randn(len(length), side, side, generator=generator, dtype=DOUBLE)
        field = torch.fft.irfftn(torch.fft.rfftn(noise, dim=(1, 2)) * amplitude, s=(side, side), dim=(1, 2))
        return field / field.square().mean(dim=(1, 2), keepdim=True).sqrt()

    def solve(self, start: Tensor, params: Params, refine: int = 1) -> Tensor:
        numbers = start[0].numel() * self.frames
        viscosities = {"eta": self.viscosity, "zeta": self.viscosity}
        parts = []
        for fields in start.float().split(max(1, NUMBERS_AT_ONCE // numbers)):
            u = vcnef.solve("cns2d", fields.movedim(1, -1), t=self.times(), params=viscosities)
            parts.append(self.coarsen(u.movedim(-1, 2)).cpu())
        return torch.cat(parts)

    def coarsen(self, fields: Tensor) -> Tensor:
        """The waves that the data's grid has, on that grid: fields `[... x y]`."""
        half, axes = self.points[0] // 2, (-2, -1)
        spectrum = torch.fft.rfftn(fields, dim=axes, norm="forward")
        low = torch.cat((spectrum[..., :half, :], spectrum[..., -half:, :]), dim=-2)[..., : half + 1].clone()
        # The last wave of each axis has no direction.
        low[..., half, :] = 0.0
        low[..., half] = 0.0
        return torch.fft.irfftn(low, s=self.points, dim=axes, norm="forward")


GASES: dict[str, Problem] = {
    "euler_5": Euler(5.0, 1024),
    "euler_10": Euler(10.0, 2048),
    "euler_15": Euler(15.0, 3072),
    "euler_20": Euler(20.0, 4096),
    "gas": Gas(),
}
