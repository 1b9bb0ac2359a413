"""Random initial states of the scalar equations, and the draws and windows that all equations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import pi
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.checks import check_at_least

WAVE_OPTIONS = MappingProxyType(
    {
        "modes": 4,  # wave numbers are drawn from 1 … modes
        "waves": 2,  # how many waves are superposed
        "absolute_probability": 0.1,  # of taking |w|
        "window_probability": 0.1,  # of keeping w in a window only
        "constant_offsets": False,
        "doubled_wavenumbers": False,
        "short_period": False,
        "coupled_window": False,
        "unscaled_window": False,
    }
)

WAVE_ACCIDENTS = MappingProxyType(
    {
        "constant_offsets": True,
        "doubled_wavenumbers": True,
        "short_period": True,
        "coupled_window": True,
        "unscaled_window": True,
    }
)
"""The benchmark's 1D initial states as its files have them; see `sine_waves` for what each switch does."""

WINDOW_EDGE = 0.01
"""Width of a window's edges, as a part of the domain."""


@dataclass(frozen=True)
class Draws:
    """Uniform random numbers of a batch of samples, a pure function of (seed, index, attempt) for each of them."""

    seed: int
    indices: tuple[int, ...]
    attempts: tuple[int, ...]
    device: torch.device

    def uniform(self, count: int, *, stream: int = 0, shift: int = 0) -> Float[Tensor, "b n"]:
        """Return numbers in [0, 1), `[b count]`, in doubles; streams are independent, `shift` reads another index."""
        rows = [each.random(count) for each in self.generators(stream=stream, shift=shift)]
        return torch.from_numpy(np.array(rows).reshape(len(rows), count)).to(self.device)

    def generators(self, *, stream: int = 0, shift: int = 0) -> list[np.random.Generator]:
        """Return a generator of random numbers for each sample."""
        generators = []
        for index, attempt in zip(self.indices, self.attempts, strict=True):
            key = (index + shift, attempt, stream)
            seeds = np.random.SeedSequence(self.seed, spawn_key=key)
            generators.append(np.random.Generator(np.random.Philox(seeds)))
        return generators


@dataclass(frozen=True)
class OneByOne:
    """Initial states from a user's function of a generator and the points, a sample at a time."""

    function: Callable[..., Any]

    def __call__(self, draws: Draws, grid: Float[Tensor, "*x D"], domain: tuple, **options: object) -> Tensor:
        x = grid.cpu().numpy()
        # Each may change the points that it is given.
        states = [np.asarray(self.function(rng, x.copy(), **options)) for rng in draws.generators()]
        return torch.from_numpy(np.stack(states).astype(np.float64)).to(draws.device)


def window_limits(
    flag: Float[Tensor, "b 1"], left: Float[Tensor, "b 1"], right: Float[Tensor, "b 1"], *, coupled: bool
) -> tuple[Float[Tensor, "b 1"], Float[Tensor, "b 1"]]:
    """Return limits of a window from uniform numbers: left in (0.1, 0.45), right in (0.55, 0.9), independently.

    Coupled, one number `flag` sets both (so the width is 0.45) and, in the callers, whether there is a window at all.
    """
    if coupled:
        left = right = flag
    return 0.1 + 0.35 * left, 0.55 + 0.35 * right


def window(x: Tensor, left: Tensor, right: Tensor, edge: float = WINDOW_EDGE) -> Tensor:
    """½ [tanh((x − left) / edge) − tanh((x − right) / edge)]: one between the limits, zero outside."""
    return 0.5 * (torch.tanh((x - left) / edge) - torch.tanh((x - right) / edge))


def sine_waves(
    draws: Draws, x: Float[Tensor, " n"], bounds: tuple[float, float], options: Mapping[str, Any], **stream: int
) -> Float[Tensor, "b n"]:
    """w(x) = ± Σ_i A_i sin(2π n_i x / L + φ_i), with n_i in 1 … modes, A_i in [0, 1), φ_i in [0, 2π), all uniform.

    With `absolute_probability` w becomes |w|; with `window_probability` it is kept only inside a window whose limits
    are parts of the domain. The benchmark's files differ from this in ways that can be switched on one by one:

    - `constant_offsets`: every wave number that was not drawn adds a constant A sin φ.
    - `doubled_wavenumbers`: a number n drawn twice gives one wave of number 2n, not two waves.
    - `short_period`: the period is the distance of the first and last cell centre, L − Δx.
    - `coupled_window`: one number decides on the window and sets both limits, see `window_limits`.
    - `unscaled_window`: the limits are coordinates, not parts of the domain.
    """
    waves, modes = options["waves"], options["modes"]
    check_at_least(1, waves=waves, modes=modes)
    sizes = [waves, waves, waves, modes, modes, 1, 1, 1, 1, 1]
    number, amplitude, phase, rest, rest_phase, absolute, sign, flag, left, right = draws.uniform(
        sum(sizes), **stream
    ).split(sizes, dim=1)
    number = torch.floor(modes * number) + 1
    offset = torch.zeros_like(sign)
    if options["constant_offsets"]:
        offset = _offsets(number, rest, rest_phase)
    if options["doubled_wavenumbers"]:
        number, amplitude = _merged(number, amplitude)
    low, high = bounds
    period = high - low
    if options["short_period"]:
        period = x[-1] - x[0]
    angle = (2 * pi / period) * number[..., None] * x + 2 * pi * phase[..., None]
    w = (amplitude[..., None] * torch.sin(angle)).sum(1) + offset
    w = torch.where(absolute < options["absolute_probability"], w.abs(), w) * torch.where(sign < 0.5, -1.0, 1.0)
    part = (x - low) / (high - low)
    if options["unscaled_window"]:
        part = x
    inside = window(part, *window_limits(flag, left, right, coupled=options["coupled_window"]))
    return torch.where(flag < options["window_probability"], w * inside, w)


def _offsets(number: Tensor, amplitude: Tensor, phase: Tensor) -> Tensor:
    """Return Σ A_n sin φ_n over the wave numbers n = 1 … modes that were not drawn."""
    candidates = torch.arange(1, amplitude.shape[1] + 1, device=number.device)
    unused = (number[:, :, None] != candidates).all(1)
    return (unused * amplitude * torch.sin(2 * pi * phase)).sum(1, keepdim=True)


def _merged(number: Tensor, amplitude: Tensor) -> tuple[Tensor, Tensor]:
    """Merge equal wave numbers n, drawn c times, into one wave of number c n with the first one's amplitude."""
    same = number[:, :, None] == number[:, None, :]
    first = ~same.tril(-1).any(2)
    return number * same.sum(2), amplitude * first


def wave_states(draws: Draws, grid: Float[Tensor, "n 1"], domain: tuple, **options: object) -> Float[Tensor, "b n 1"]:
    """Return initial states of the scalar equations: `sine_waves` as the one channel."""
    return sine_waves(draws, grid[:, 0], domain[0], options)[..., None]
