"""Which preset suits data of one's own, and what of it the data decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.config import Config
from vcnef.config.sections import ABOUT_WHOLE
from vcnef.config.settings import flatten, parse_setting
from vcnef.data import StoredTrajectories, Trajectories
from vcnef.data.splits import VALID_SHARE
from vcnef.data.windows import change_within, choose_window, looked_at
from vcnef.grid import is_scattered
from vcnef.surrogate.points import SCATTERED, UNEVEN, arrangement

LARGE_FROM = 2000
"""From so many trajectories on, the larger of the presets for whole trajectories is taken."""
WITHOUT_WINDOWS = ABOUT_WHOLE | {"physics": 0.0, "unroll": "full", "clocks": 0}
"""Settings that say how whole trajectories are learnt, and their defaults."""
MIN_TOKENS = 8
"""Along each axis, where patches are chosen."""
NEAR_LIMIT = 0.8
"""Of the shortest wave that tokens hold: shorter ones than that are too short for them."""
MAX_SHORT_WAVES = {1: 0.02, 2: 0.25, 3: 0.25}
"""The share of such waves with which patches are still taken, by dimensions: tokens cost little in 1D. Burgers' shocks
on 64 points have 0.05, stripes in 2D that are not learnt 0.80, and decaying turbulence, which is, 0.17."""
NOISE_PER_CHANGE = 0.03
MAX_NOISE = 0.01
"""Of the spread of the fields: with 0.03, errors within the horizon are twice as large."""
MIN_STEPS = 5000
"""Of a run on windows: few data make short epochs, and more of them are then needed."""
Data = Trajectories | StoredTrajectories
Fields = Float[Tensor, "n t *x c"]
"""Some of the trajectories, each channel in units of its spread, as `looked_at` gives them."""


def choose_preset(data: Data, window: str | float = "auto", devices: int | str = "cpu") -> str:
    """Return the preset for own data: on windows where the data make some, else by dimensions and trajectories.

    On a GPU, which is bound by the number of its kernels and not by their size, windows are learnt by wider models.
    """
    ndim = data.problem.ndim
    # What is no window is refused with the rest of the configuration.
    asked = window == "auto" if isinstance(window, str) else window > 0
    even = arrangement(data.grid) not in (UNEVEN, SCATTERED)
    if asked and even and choose_window(data, window):
        on_gpu = devices != "cpu" and torch.cuda.is_available()
        return f"own/windows{ndim}d_gpu" if on_gpu else f"own/windows{ndim}d"
    return f"own/{'large' if len(data) >= LARGE_FROM else 'small'}{ndim}d"


def suit(preset: str, data: Data) -> Config:
    """Return a preset for own data with patches that fit the grid, and on windows with some noise and enough epochs.

    Scattered points make no patches and have no neighbours.
    """
    config = Config.load(preset)
    if is_scattered(data.grid):
        return config.override({"model.options.patches": (), "model.options.local": 0})
    if not preset.startswith("own/windows"):
        return config
    fields = looked_at(data)
    batches = ceil((1 - VALID_SHARE) * len(data) / config.train.batch)
    epochs = ceil(MIN_STEPS / (batches * max(len(data.t) - 1, 1)))
    return config.override(
        {
            "model.options.patches": fitting_patches(data, fields),
            "train.epochs": max(epochs, config.train.epochs),
            "train.input_noise": fitting_noise(data, fields),
        }
    )


def asked_window(settings: Mapping[str, Any] | Iterable[str]) -> str | float:
    """Return the window among settings as `Config.override` takes them.

    Where they have none it is "auto", or "direct" if they have what is about whole trajectories.
    """
    given = settings if isinstance(settings, Mapping) else dict(map(parse_setting, settings))
    values = {name.rpartition(".")[2]: value for name, value in flatten(given)}
    about_whole = any(values.get(name, default) != default for name, default in WITHOUT_WINDOWS.items())
    return values.get("window", "direct" if about_whole else "auto")


def fitting_patches(data: Data, fields: Fields) -> tuple[int, ...]:
    """Return patches of 4 points, or of 2, that leave enough tokens and, along periodic axes, close the ring.

    Fields whose waves are too short for the tokens of a size take the next. Where none does, tokens are points.
    """
    closed = [side for side, closes in zip(data.resolution, data.problem.closes, strict=True) if closes]
    most = MAX_SHORT_WAVES[data.problem.ndim]
    for size in (4, 2):
        fits = min(data.resolution) >= MIN_TOKENS * size and not any(side % size for side in closed)
        if fits and short_waves(fields, data.problem.closes, size) <= most:
            return (size,)
    return ()


def fitting_noise(data: Data, fields: Fields) -> float:
    """Return the noise on what windows begin with, from which a model learns its way back to states like the data's.

    Long compositions leave them otherwise: of Kuramoto-Sivashinsky, a thousand windows end at 40 times the largest true
    value without noise, and below it with a noise of 0.01. More of it than a small part of what changes in a window
    makes answers within the horizon worse.
    """
    window = choose_window(data, "auto")
    if window is None:
        return 0.0
    return round(min(MAX_NOISE, NOISE_PER_CHANGE * change_within(fields, window.frames)), 4)


def short_waves(fields: Fields, closes: tuple[bool, ...], size: int) -> float:
    """Return the share of the fields' variance in waves that tokens of so many points a side hardly tell apart.

    Tokens hold waves of two of them and longer, and mix badly what is near that limit. Stripes of two tokens of 4 × 4
    points are learnt to an error of 0.124, the same in tokens of 2 × 2 points to 0.012.
    """
    axes = tuple(range(2, fields.ndim - 1))
    for axis, closed in zip(axes, closes, strict=True):
        if not closed:
            fields = torch.cat((fields, fields.flip(axis)), dim=axis)
    fields = fields - fields.mean(dim=axes, keepdim=True)
    power = torch.fft.fftn(fields, dim=axes).abs().square().sum(dim=(0, 1))
    short = torch.zeros(power.shape[:-1], dtype=torch.bool)
    for place, side in enumerate(power.shape[:-1]):
        frequency = torch.fft.fftfreq(side).abs() * 2 * size  # 1 is a wave of two tokens
        short |= (frequency >= NEAR_LIMIT).view(-1, *[1] * (len(axes) - 1 - place))
    of_channels = power[short].sum(dim=0) / power.flatten(0, -2).sum(dim=0).clamp_min(torch.finfo(power.dtype).tiny)
    return float(of_channels.max())
