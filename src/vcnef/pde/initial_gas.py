"""Random initial states of the gas: sine waves in one dimension, random Fourier modes in two and three."""

from __future__ import annotations

from functools import reduce
from math import pi

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.grid import axes
from vcnef.pde.finite_volume import per_sample
from vcnef.pde.initial import Draws, sine_waves, window, window_limits
from vcnef.pde.riemann import GAMMA, speed_squared

HIGHEST_MODE = 4

SHARED_SHAPES_BATCH = 1000
"""The benchmark made its 1D states in batches of this size; see `wave_gas_states`."""


def wave_gas_states(
    draws: Draws, grid: Float[Tensor, "n 1"], domain: tuple, *, shared_shapes: bool, **options: object
) -> Float[Tensor, "b n 3"]:
    """1D: v = w and ρ, p = b + m (w − min w) / (max w − min w), with independent `sine_waves` w for each field.

    b and m are log-uniform, in (1, 10) for ρ and (10, 100) for p. With `shared_shapes`, as in the benchmark's files,
    p of sample k has the shape of ρ of sample k + 1000, and v that of p of sample k + 1000.
    """
    x, fields = grid[:, 0], []
    for field, scale in enumerate((1.0, 10.0, None)):
        stream = {"stream": 2 * field}
        if shared_shapes:
            stream = {"shift": field * SHARED_SHAPES_BATCH}
        w = sine_waves(draws, x, domain[0], options, **stream)
        if scale is not None:
            stream["stream"] = stream.get("stream", 0) + 1
            height, base = (scale * 10.0 ** draws.uniform(2, **stream)).split(1, dim=1)
            above = w - w.amin(1, keepdim=True)
            w = base + height * above / above.amax(1, keepdim=True).clamp(min=1e-12)
        fields.append(w)
    return torch.stack(fields, dim=-1)


def mode_states(
    draws: Draws,
    grid: Float[Tensor, "*x D"],
    domain: tuple,
    *,
    mach: float,
    window_probability: float,
    coupled_window: bool,
    shared_phases: bool = False,
) -> Float[Tensor, "b *x c"]:
    """2D and 3D: a uniform gas with Fourier modes on top, in half of the samples only inside a window.

    ρ = ρ₀ (1 + δρ f / mean|f|), p = ρ₀ T₀ (1 + δp f / mean|f|), v = M c (f_1, …) / mean|(f_1, …)|, c = √(γ T₀), where
    each f is a sum over the modes {−4 … 4} without 0 along each axis, of amplitude |k|^((1 − D)/2) and random phase.
    ρ₀ and T₀ are uniform in (0.1, 10), δρ and δp in (0.01, 0.2). `coupled_window` makes one number decide on the
    window and both its limits. `shared_phases` gives the last velocity, p and ρ one f, as in the benchmark's 3D file.
    """
    ndim = grid.shape[-1]
    fields = ndim + 2
    scales, limits = draws.uniform(4 + 1 + 2 * ndim).split([4, 1 + 2 * ndim], dim=1)
    phase = draws.uniform(fields * (2 * HIGHEST_MODE) ** ndim, stream=1).reshape(
        -1, fields, *(2 * HIGHEST_MODE,) * ndim
    )
    kinds = list(range(fields))
    if shared_phases:
        kinds[ndim - 1 :] = [ndim - 1] * 3
    *v, p, rho = (_mode_sum(phase[:, kind], grid, domain) for kind in kinds)
    density, density_part, temperature, pressure_part = (per_sample(scale, rho) for scale in _gas_scales(scales))
    space = tuple(range(1, ndim + 1))

    speed = torch.sqrt(speed_squared(v)).mean(space, keepdim=True)
    scale = mach * torch.sqrt(GAMMA * temperature) / speed
    inside = _box(limits, grid, domain, window_probability, coupled_window)
    rho = density * (1.0 + density_part * inside * rho / rho.abs().mean(space, keepdim=True))
    p = density * temperature * (1.0 + pressure_part * inside * p / p.abs().mean(space, keepdim=True))
    # Modes first, window after: outside the window the gas is uniform (ρ₀, p₀) and at rest.
    return torch.stack([rho, p, *(scale * inside * u for u in v)], dim=-1)


def _gas_scales(uniform: Tensor) -> tuple[Tensor, ...]:
    """ρ₀, δρ, T₀, δp from uniform numbers."""
    bounds = ((0.1, 10.0), (0.01, 0.2), (0.1, 10.0), (0.01, 0.2))
    return tuple(low + (high - low) * uniform[:, i] for i, (low, high) in enumerate(bounds))


def _mode_sum(phase: Float[Tensor, " b *k"], grid: Float[Tensor, "*x D"], domain: tuple) -> Float[Tensor, " b *x"]:
    """Σ_k |k|^((1 − D)/2) sin(k·x + φ_k), one axis after the other: e^{i k·x} is a product over the axes."""
    number = torch.tensor([*range(-HIGHEST_MODE, 0), *range(1, HIGHEST_MODE + 1)], dtype=grid.dtype, device=grid.device)
    turns = [2.0 * pi * number / (high - low) for low, high in domain]
    length = speed_squared(list(torch.meshgrid(*turns, indexing="ij"))).sqrt()
    waves = torch.polar((length ** ((1 - len(turns)) / 2)).expand_as(phase), 2.0 * pi * phase)
    for turn, line in zip(turns, axes(grid), strict=True):
        angle = turn[:, None] * line
        waves = torch.tensordot(waves, torch.polar(torch.ones_like(angle), angle), dims=([1], [0]))  # pyright: ignore[reportArgumentType]
    return waves.imag


def _box(
    uniform: Float[Tensor, "b n"], grid: Float[Tensor, "*x D"], domain: tuple, probability: float, coupled: bool
) -> Float[Tensor, " b *x"]:
    """Return the product of windows along the axes where the first number is below `probability`, one elsewhere."""
    flag, *limits = uniform.split(1, dim=1)
    sides = []
    for axis, (line, (low, high)) in enumerate(zip(axes(grid), domain, strict=True)):
        left, right = limits[2 * axis : 2 * axis + 2]
        both = flag
        if axis:
            both = left
        ends = window_limits(both, left, right, coupled=coupled)
        side = window((line - low) / (high - low), *ends)
        shape = [1] * len(domain)
        shape[axis] = len(line)
        sides.append(side.reshape(-1, *shape))
    box = reduce(torch.mul, sides)
    return torch.where(per_sample(flag < probability, box), box, 1.0)
