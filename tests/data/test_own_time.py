"""In its own unit of time, a trajectory is the same as one that is played faster."""

import json
from dataclasses import replace

import pytest
import torch

from vcnef.data import Batches, Queries, Scaling
from vcnef.data.own_time import OwnTime
from vcnef.pde import equation
from vcnef.problem import Problem

FASTER = 3.0
POWERS = {"density": 0, "pressure": 2, "vx": 1, "vy": 1, "vz": 1}


def play_faster(data):
    """The same films, three times as fast."""
    powers = [POWERS.get(name, int(data.problem.name == "burgers")) for name in data.problem.channels]
    u = data.u * torch.tensor([FASTER**power for power in powers])
    return replace(data, u=u, t=data.t / FASTER, params=data.params * FASTER)


@pytest.mark.parametrize("name", ["advection", "burgers", "cns1d", "cns2d", "cns3d"])
def test_networks_cannot_tell_a_film_from_a_faster_one(make_data, name):
    slow = make_data(name)
    fast = play_faster(slow)
    scaling = Scaling.fit(slow, own_time=True)
    units, others = (scaling.units(data.u[:, 0], data.params) for data in (slow, fast))
    close = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(others.fields(fast.u), units.fields(slow.u), **close)
    torch.testing.assert_close(others.params(fast.params), units.params(slow.params), **close)
    torch.testing.assert_close(others.times(fast.t), units.times(slow.t), **close)
    torch.testing.assert_close(others.physical(units.fields(slow.u)), fast.u, **close)
    assert units.times(slow.t).shape == (len(slow), len(slow.t))
    assert float(units.times(slow.t).max()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "params", "options"),
    [
        ("advection", {"beta": 0.4}, {}),
        ("burgers", {"nu": 0.01}, {}),
        ("cns1d", {"eta": 0.01, "zeta": 0.02}, {}),
        ("cns2d", {"eta": 0.01, "zeta": 0.02}, {"mach": 0.5}),
    ],
)
def test_faster_films_are_solutions(name, params, options):
    law = equation(name)
    u0 = law.initial_states([0, 1], seed=0, resolution=32, dtype=torch.float64, **options)
    times = torch.linspace(0.0, 0.3, 3)
    slow = law.solve(u0, times, params)
    own = OwnTime.of(law.problem)
    faster = torch.full((len(u0),), FASTER, dtype=u0.dtype)
    fast = law.solve(
        u0 * own.beside(u0, faster), times / FASTER, {key: value * FASTER for key, value in params.items()}
    )
    torch.testing.assert_close(fast, slow * own.beside(slow, faster), rtol=1e-4, atol=1e-4)


def test_advection_comes_back():
    law = equation("advection")
    times = torch.tensor([0.1, 0.6], dtype=torch.float64)
    x = torch.arange(256, dtype=torch.float64)[None, :, None] / 256
    # One wave, which the scheme damps by half a percent.
    early, late = law.solve(torch.sin(2 * torch.pi * x), times, {"beta": 2.0}).unbind(dim=1)
    torch.testing.assert_close(late, early, rtol=0.0, atol=0.01)
    own = replace(OwnTime.of(law.problem), fastest=2.0)
    torch.testing.assert_close(own.times(times, times.new_full((1,), 2.0)), times.new_full((1, 2), 0.2))
    # The network's time 1 is one crossing, or less where data end before it.
    assert (own.span(2.0), own.span(0.1)) == (1.0, 0.2)


def test_nothing_comes_back_that_is_not_periodic_or_changes_its_shape():
    walls = replace(equation("advection").problem, periodic=False)
    assert OwnTime.of(walls).period is None
    assert OwnTime.of(equation("burgers").problem).period is None


def test_batches_have_times_of_their_own(make_data):
    data = make_data()
    scaling = Scaling.fit(data, own_time=True)
    batch = next(iter(Batches(data, 4, queries=Queries(times=3), scaling=scaling)))
    assert batch.t.shape == (4, 3)
    strength = scaling.fields.denormalise(batch.u0).square().mean(dim=(1, 2)).sqrt()
    torch.testing.assert_close(strength, torch.ones(4))
    # Shared frames, at each sample's own rate.
    assert torch.allclose(batch.t / batch.t[:, :1], (batch.t / batch.t[:, :1])[:1])
    assert len(set(batch.t[:, 0].tolist())) == 4


def test_it_is_stored(make_data):
    scaling = Scaling.fit(make_data("cns1d"), ("density", "pressure"), own_time=True)
    again = Scaling.from_dict(json.loads(json.dumps(scaling.to_dict())))
    assert again.own_time == scaling.own_time
    assert again.to_dict() == scaling.to_dict()
    returning = OwnTime.of(equation("advection").problem)
    assert OwnTime.from_dict(json.loads(json.dumps(returning.to_dict()))) == returning
    assert "own_time" not in Scaling.fit(make_data()).to_dict()


def test_states_of_rest_have_a_unit_too(make_data):
    data = make_data()
    resting = replace(data, u=torch.zeros_like(data.u))
    for scaling in (Scaling.fit(data, own_time=True), Scaling.fit(resting, own_time=True)):
        units = scaling.units(resting.u[:, 0], resting.params)
        assert units.fields(resting.u).isfinite().all()
        assert units.params(resting.params).isfinite().all()


def test_states_of_rest_have_gradients(make_data):
    data = make_data("burgers")
    u0 = torch.zeros_like(data.u[:, 0], requires_grad=True)
    units = Scaling.fit(data, own_time=True).units(u0, data.params)
    (units.fields(u0).sum() + units.params(data.params).sum() + units.times(data.t).sum()).backward()
    assert u0.grad.isfinite().all()
    assert u0.grad.abs().sum() > 0


def test_rounding_is_no_range_of_a_parameter(make_data):
    """States of the same strength have the same viscosity in their own units, but for the last digits."""
    data = make_data()
    strength = data.u[:, :1].square().mean(dim=2, keepdim=True).sqrt()
    equal = replace(data, u=data.u / strength)
    units = Scaling.fit(equal, own_time=True).units(equal.u[:, 0], equal.params)
    assert units.params(equal.params).abs().max() < 1e-6


def test_unknown_equations_are_refused():
    with pytest.raises(ValueError, match=r"own_time is known for advection, burgers, cns1d, .*; the data are 'mine'"):
        OwnTime.of(Problem("mine", ("u",)))
    # Its viscosity would be another one in each sample's units.
    with pytest.raises(ValueError, match=r"needs to know what .* u are; for 'burgers' it knows u, nu"):
        OwnTime.of(Problem("burgers", ("u",)))
