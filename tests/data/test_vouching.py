"""What data say of symmetries that are vouched for."""

import math

import pytest
import torch

from vcnef.data import Galilean, Reflect, Shift, from_arrays
from vcnef.data.vouching import examine

SHIFT, EVEN, ODD = Shift(vouched=True), Reflect(odd=(), vouched=True), Reflect(odd=("u",), vouched=True)
POINTS, DT = 32, 0.02
X = torch.arange(POINTS) / POINTS


def trajectories(rate, samples=60, steps=20, seed=0, stay=None):
    """u ← u + rate(u) Δt from random long waves, or waves of phases that stay within a part of the circle."""
    generator = torch.Generator().manual_seed(seed)
    size, phase = torch.rand(2, samples, 3, 1, generator=generator)
    phase = phase if stay is None else stay * phase
    waves = torch.cos(2 * math.pi * (torch.arange(1, 4)[:, None] * X - phase))
    frames = [(size * waves).sum(dim=1)]
    for _ in range(steps):
        frames.append(frames[-1] + DT * rate(frames[-1]))
    return from_arrays(torch.stack(frames, dim=1)[..., None], t=DT * torch.arange(steps + 1.0), x=X, name="mine")


def slope(u):
    return (u.roll(-1, 1) - u.roll(1, 1)) * POINTS / 2


def bend(u):
    return (u.roll(-1, 1) - 2 * u + u.roll(1, 1)) * POINTS**2


def advection(u):
    return -slope(u) + 0.01 * bend(u)


def burgers(u):
    return -0.3 * u * slope(u) + 0.01 * bend(u)


def reaction(u):
    return 0.01 * bend(u) + 5 * u * (1 - u**2)


def forced(u):
    return burgers(u) + torch.sin(2 * math.pi * X)


@pytest.mark.parametrize(
    ("rate", "symmetry", "doubtful"),
    [
        (advection, SHIFT, False),
        (advection, EVEN, True),
        (burgers, SHIFT, False),
        (burgers, ODD, False),
        (burgers, EVEN, True),
        (reaction, EVEN, False),
        (forced, SHIFT, True),
    ],
)
def test_trajectories_that_begin_alike_tell_the_equation(rate, symmetry, doubtful):
    for seed in range(3):
        found = examine(symmetry, trajectories(rate, seed=seed))
        assert found.doubtful == doubtful, found.words
        assert ("begin alike under it do not go on so" if doubtful else "60 trajectories look alike") in found.words


def test_initial_states_of_one_place_leave_the_equation_open():
    found = examine(SHIFT, trajectories(reaction, stay=0.3))
    assert found.doubtful
    assert "the initial states of 60 trajectories already differ under it (the mean at each point of " in found.words


def test_states_that_several_samples_share_count_once():
    data = trajectories(burgers, samples=12)
    again = from_arrays(data.u.repeat(10, 1, 1, 1), t=data.t, x=X, name="mine")
    assert examine(SHIFT, again) == examine(SHIFT, data)


def test_what_cannot_be_tested_is_said():
    data = trajectories(burgers, samples=7)
    assert (
        examine(SHIFT, data).words == "shift: vouched for by you; 7 trajectories are too few or too large to test it on"
    )
    assert examine(Galilean(1.0, vouched=True), data).words == "galilean: vouched for by you; data cannot show it"
