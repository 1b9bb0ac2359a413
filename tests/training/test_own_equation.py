"""The physics-informed loss of equations that a user defines: gradients, walls, time, windows, and what is refused."""

from dataclasses import replace
from math import pi

import numpy as np
import pytest
import torch

import vcnef
from vcnef.data import Batch, Normaliser, ParameterScale, Queries, Scaling
from vcnef.data.normalise import PointScale
from vcnef.pde import Equation, residual
from vcnef.problem import Problem
from vcnef.training import PhysicsLoss, Recipe
from vcnef.training.job import default_objective
from vcnef.training.own import FirstWindow

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
QUICK = {**TINY, "batch": 8, "epochs": 1, "devices": "cpu", "quiet": True}


def growth(u, d, p):
    return p["D"] * d(u, "x", 2) + p["r"] * u * (1 - u)


def chequered(u, d, p, x, y, t):
    return -p["r"] * d(u, "x", 4) + d(u, "y", 3) * u + torch.sin(x) * y * torch.exp(-t)


def heat(u, d, p):
    return p["D"] * d(u, "x", 2)


EQUATIONS = {
    "fisher": {"rate": growth, "parameters": {"D": 0.01, "r": 2.0}},
    "sheet": {"rate": chequered, "parameters": {"r": 0.01}, "domain": ((0.0, 2.0), (0.0, 2.0))},
    "bar": {"rate": heat, "parameters": {"D": 0.1}, "domain": ((1.0, 3.0),), "periodic": False},
}


def make(name, method):
    """A loss, an untrained model and a batch of initial states, in double precision and units that are none."""
    own = Equation(name, **EQUATIONS[name])
    problem, count = own.problem, len(own.parameters)
    sides = (12,) * problem.ndim
    fields = Normaliser(problem.channels, torch.tensor([3.0]), torch.tensor([0.5]), torch.tensor([False]))
    ranges = {each: (0.5 * value, 2.0 * value) for each, value in own.defaults.items()}
    scaling = Scaling(fields, ParameterScale.fit(ranges), 0.5, None, PointScale.fit(problem.domain))
    model = vcnef.build("vcnef", ndim=problem.ndim, channels=1, params=count, **TINY).double()
    lines = [torch.linspace(low, high, 13, dtype=torch.float64)[:-1] for low, high in problem.domain]
    grid = scaling.coordinates(torch.stack(torch.meshgrid(*lines, indexing="ij"), dim=-1))
    u0 = torch.randn(2, *sides, 1).double()
    t, params = torch.rand(3).double(), torch.rand(2, count).double() * 2 - 1
    batch = Batch(u0, grid, t, params, torch.full((2, 3, *u0.shape[1:]), torch.nan).double())
    return PhysicsLoss(problem, scaling, method=method, initial=0.5), model, batch


CASES = [("fisher", "spectral"), ("fisher", "finite_difference"), ("sheet", "spectral"), ("bar", "finite_difference")]


@pytest.mark.parametrize(("name", "method"), CASES)
def test_gradients_of_all_weights_agree_with_differences(name, method, check_gradients):
    loss, model, batch = make(name, method)
    check_gradients(loss, model, batch)


@pytest.mark.parametrize(("name", "method"), CASES)
def test_the_loss_is_the_residual_in_physical_units(name, method):
    """Against differences in physical time of the denormalised prediction, at physical points and times."""
    loss, model, batch = make(name, method)
    loss.initial, scaling, step = 0.0, loss.scaling, 1e-7

    def physical(t):
        return scaling.fields.denormalise(model(batch.u0, batch.grid, t / scaling.horizon, batch.params))

    t = batch.t * scaling.horizon
    u_t = (physical(t + step) - physical(t - step)) / (2 * step)
    values = scaling.params.unscale(batch.params)
    params = {each: values[:, i] for i, each in enumerate(loss.problem.parameters)}
    points = batch.grid * scaling.length + torch.tensor([low for low, _ in loss.problem.domain]).double()
    found = residual(name, physical(t), u_t, params, method=method, grid=points, t=t)
    torch.testing.assert_close(loss(model, batch), (found * 0.5 / 0.5).square().mean(), rtol=1e-5, atol=0)


def waves(samples=12, frames=9, periodic=True, n=16):
    """Heat that decays, of which `fit` knows the equation."""
    x, t = (np.arange(n) + 0.5) / n, np.linspace(0, 1, frames)
    phase = np.linspace(0, 1, samples)[:, None, None]
    u = np.exp(-0.1 * (2 * pi) ** 2 * t[:, None]) * np.sin(2 * pi * (x - phase))
    return vcnef.from_arrays(u[..., None], t=t, x=x, params={"D": 0.1}, name="rod", periodic=periodic)


def test_data_that_name_an_equation_of_ones_own_train_on_it(tmp_path):
    Equation("rod", heat, parameters={"D": 0.1})
    run = vcnef.fit(waves(), out=tmp_path / "both", physics=0.1, **QUICK)
    assert run.history[-1]["loss"] > 0
    alone = vcnef.fit(waves(), out=tmp_path / "alone", physics=1.0, data_weight=0.0, **QUICK)
    assert alone.history[-1]["loss"] > 0
    walls = {"physics": 0.1, "physics_method": "finite_difference"}
    assert vcnef.fit(waves(periodic=False), out=tmp_path / "walls", **walls, **QUICK).history[-1]["loss"] > 0


def test_the_residual_joins_the_loss_on_windows(tmp_path):
    """Chosen by the settings alone; without a window, physics is still about whole trajectories."""
    Equation("rod", heat, parameters={"D": 0.1})
    plain = vcnef.fit(waves(), out=tmp_path / "plain", window=0.25, **QUICK).history[-1]["loss"]
    run = vcnef.fit(waves(), out=tmp_path / "window", window=0.25, physics=10.0, **QUICK)
    assert run.surrogate.window == 0.25
    assert run.history[-1]["loss"] > plain
    assert vcnef.fit(waves(), out=tmp_path / "whole", physics=0.1, **QUICK).surrogate.window == 1.0


def test_on_windows_the_residual_is_that_of_the_window_which_is_learnt_from():
    Equation("rod", heat, parameters={"D": 0.1})
    data = waves()
    surrogate = vcnef.Surrogate.build("vcnef", TINY, data.split("train"), window=0.25, seed=0)
    queries = Queries(window=2, pushes=1)
    joined = default_objective(Recipe(physics=1.0), surrogate, queries, data.t)
    assert isinstance(joined.physics, FirstWindow)
    batch = next(iter(vcnef.data.Batches(data, 4, queries=queries, scaling=surrogate.scaling)))
    window = joined.physics.cut(batch)
    torch.testing.assert_close(window.t, torch.tensor([0.5, 1.0]))
    assert torch.equal(window.u0, batch.u[:, 1])
    assert torch.equal(window.u, batch.u[:, 2:])
    expected = joined.physics.objective(surrogate.model, window, 0.5)
    torch.testing.assert_close(joined.physics(surrogate.model, batch, 0.5), expected)


def test_an_equation_that_depends_on_time_is_asked_from_the_first_frame_on(tmp_path):
    Equation("rod", lambda u, d, p, t: p["D"] * d(u, "x", 2) + 0 * t, parameters={"D": 0.1})
    assert vcnef.fit(waves(), out=tmp_path / "whole", physics=0.1, **QUICK).history[-1]["loss"] > 0
    for settings in ({"window": 0.25}, {"random_starts": 0.5, "times": 2}, {"passes": 1, "times": None}):
        with pytest.raises(
            ValueError, match="'rod' depends on time, but window, random_starts and passes start samples"
        ):
            vcnef.fit(waves(), out=tmp_path / "any", physics=0.1, **settings, **QUICK)


def test_what_is_not_known_of_an_equation_is_said():
    problem = Problem("rod", ("u",), ("D",))
    scaling = Scaling.identity(problem, 1.0)
    with pytest.raises(
        ValueError, match=r"of problem 'rod' is not known; .* define it as vcnef.Equation\('rod', …\), or"
    ):
        PhysicsLoss(problem, scaling)
    Equation("rod", parameters={"D": 0.1})
    with pytest.raises(ValueError, match="'rod' is known without its right-hand side, so there is no residual"):
        PhysicsLoss(problem, scaling)
    Equation("rod", heat, parameters={"D": 0.1})
    assert PhysicsLoss(problem, scaling)
    with pytest.raises(ValueError, match="'rod' is known by its right-hand side and has no fluxes for 'finite_volume'"):
        PhysicsLoss(problem, scaling, method="finite_volume")
    with pytest.raises(ValueError, match="is not periodic, and 'spectral' derivatives are taken around a period"):
        PhysicsLoss(replace(problem, periodic=False), scaling)
    assert PhysicsLoss(replace(problem, periodic=False), scaling, method="finite_difference")


def test_a_density_of_ones_own_is_no_gas_and_may_be_zero():
    Equation("crowd", lambda q, d, p: 0 * q, channels=("density",))
    assert (vcnef.solve("crowd", torch.zeros(1, 8, 1), t=[1.0]) == 0).all()
    problem = Problem("crowd", ("density",))
    loss = PhysicsLoss(problem, Scaling.identity(problem, 1.0))
    assert loss._least == -torch.inf


def test_symmetries_of_an_equation_of_ones_own_are_vouched_for(tmp_path):
    Equation("rod", heat, parameters={"D": 0.1})
    run = vcnef.fit(waves(), out=tmp_path / "run", symmetries={"shift": True}, **QUICK)
    assert run.surrogate.provenance["symmetries"][0].startswith("shift: vouched for by you")
    with pytest.raises(ValueError, match="The equation of 'rod' is your own, so Shift may be a symmetry of it or not"):
        vcnef.fit(waves(), out=tmp_path / "other", symmetries=["shift"], **QUICK)


@pytest.mark.parametrize("periodic", [True, False])
def test_evaluation_puts_the_solver_beside_the_model(tmp_path, periodic):
    def exact(u0, times, params, spacing):
        decay = torch.exp(-params["D"][:, None] * (2 * pi) ** 2 * torch.tensor(times).to(u0))
        return u0[:, None] * decay[:, :, None, None]

    data = waves(samples=20, periodic=periodic)
    options = {} if periodic else {"periodic": False, "solver": exact}
    run = vcnef.fit(data, out=tmp_path, **QUICK)
    assert vcnef.evaluate(run.surrogate, data).result.cost.solver_nrmse is None
    Equation("rod", heat, parameters={"D": 0.1}, **options)
    assert vcnef.evaluate(run.surrogate, data).result.cost.solver_nrmse < 1e-5
