"""Objectives of a user's own: in place of the recipe's loss or beside it, on windows too, resumed, and refused."""

from functools import partial

import numpy as np
import pytest
import torch

import vcnef
from vcnef.data import Queries
from vcnef.training import Beside, Recipe, ask
from vcnef.training.job import choose_objective, default_objective
from vcnef.training.own import Sum, name_of

QUICK = {"width": 8, "heads": 2, "depth": 1, "modulations": 1, "batch": 4, "epochs": 2, "devices": "cpu", "quiet": True}


def absolute(model, batch, progress):
    return (ask(model, batch) - batch.u).abs().mean()


def waves(samples=8, frames=9, size=1.0):
    x, t = (np.arange(16) + 0.5) / 16, np.linspace(0, 2, frames)
    u = size * np.sin(2 * np.pi * (x - t[:, None] + np.arange(samples)[:, None, None] / samples))
    return vcnef.from_arrays(u[..., None], t=t, x=x, params={"s": 1.0}, name="waves")


def test_it_stands_in_place_of_the_loss_on_windows_and_without(tmp_path):
    shapes = []

    def noting(model, batch, progress):
        shapes.append((tuple(batch.u0.shape), tuple(batch.t.shape), tuple(batch.u.shape), float(batch.t.max())))
        return absolute(model, batch, progress)

    run = vcnef.fit(waves(), out=tmp_path / "windows", objective=noting, **QUICK)
    assert run.surrogate.provenance["window"]["frames"] == 1
    assert set(shapes) <= {((b, 16, 1), (1,), (b, 1, 16, 1), 1.0) for b in range(1, 5)}
    shapes.clear()
    run = vcnef.fit(waves(), out=tmp_path / "direct", objective=noting, window="direct", times=3, **QUICK)
    assert {u for _, _, u, _ in shapes} <= {(b, 3, 16, 1) for b in range(1, 5)}
    assert run.surrogate.provenance["objective"].endswith("noting")
    assert vcnef.load(tmp_path / "direct").provenance["objective"].endswith("noting")


def test_it_may_stand_beside_the_loss(tmp_path):
    data = waves()
    surrogate = vcnef.Surrogate.build("vcnef", {"width": 8, "heads": 2}, data.split("train"), seed=0)
    batch = next(iter(vcnef.data.Batches(data, 4, scaling=surrogate.scaling)))
    surrogate.model.eval()
    usual = default_objective(Recipe(), surrogate, Queries(), data.t)
    both = choose_objective(Beside(absolute, weight=0.3), Recipe(), surrogate, Queries(), data.t)
    expected = usual(surrogate.model, batch, 0.5) + 0.3 * absolute(surrogate.model, batch, 0.5)
    torch.testing.assert_close(both(surrogate.model, batch, 0.5), expected)
    run = vcnef.fit(data, out=tmp_path, objective=Beside(absolute, weight=0.3), loss="mse", **QUICK)
    assert run.surrogate.provenance["objective"] == "loss + 0.3 · absolute"


def test_it_is_told_the_units_if_it_asks(tmp_path):
    """Fields ten times as large are errors ten times as large, and slopes in physical time ten times as steep."""
    seen = []

    def speed(model, batch, progress, scaling):
        z, z_t = vcnef.time_derivative(model, batch.u0, batch.grid, batch.t, batch.params)
        u, u_t = scaling.physical(z, z_t)
        seen.append((float(u.detach().std()), float(u_t.detach().std()), scaling.horizon))
        return u_t.square().mean()

    for number, size in enumerate((1.0, 10.0)):
        once = QUICK | {"epochs": 1}
        vcnef.fit(waves(size=size), out=tmp_path / str(number), objective=speed, window="direct", **once)
    first, last = seen[0], seen[len(seen) // 2]
    assert last[:2] == (pytest.approx(10 * first[0], rel=1e-3), pytest.approx(10 * first[1], rel=1e-3))
    assert first[2] == last[2] == 2.0
    data = vcnef.generate("burgers", samples=8, resolution=16, frames=4, horizon=0.1)
    with pytest.raises(ValueError, match="asks for the units, but with own_time each sample has its own"):
        vcnef.fit(data, out=tmp_path / "own", objective=speed, own_time=True, **QUICK)


class Named:
    """An object as an objective, which a run calls by its name."""

    name, static, phases = "mine", True, (0.5,)

    def __call__(self, model, batch, progress):
        return absolute(model, batch, progress)


def test_names():
    assert name_of(None) is None
    assert name_of(absolute) == "absolute"
    assert name_of(partial(absolute, progress=0.5)) == "absolute"
    assert name_of(Named()) == "mine"
    assert name_of(Beside(Named(), weight=2.0)) == "loss + 2 · mine"


def test_only_what_says_so_is_recorded():
    data = waves()
    surrogate = vcnef.Surrogate.build("vcnef", {"width": 8, "heads": 2}, data.split("train"), seed=0)

    def chosen(objective, queries=None):
        return choose_objective(objective, Recipe(), surrogate, queries or Queries(), data.t)

    assert not chosen(absolute).static
    assert (chosen(Named()).static, chosen(Named()).phases) == (True, (0.5,))
    assert not chosen(Beside(absolute)).static
    assert chosen(Beside(Named())).static
    windows = Queries(window=2, pushes=1)
    assert (chosen(Named(), windows).static, chosen(Named(), windows).phases) == (True, (0.5,))
    assert chosen(Beside(Named()), windows).phases == (0.1, 0.5)
    assert isinstance(chosen(Beside(absolute)), Sum)


def test_a_run_is_resumed_with_the_objective_that_it_was_begun_with(tmp_path):
    def stopping(model, batch, progress):
        if progress > 0.6:
            raise KeyboardInterrupt
        return absolute(model, batch, progress)

    stopping.name = "absolute"
    settings = {**QUICK, "epochs": 4, "save_every": 1}
    whole = vcnef.fit(waves(), out=tmp_path / "whole", objective=absolute, **settings)
    with pytest.raises(KeyboardInterrupt):
        vcnef.fit(waves(), out=tmp_path / "parts", objective=stopping, **settings)
    with pytest.raises(
        ValueError, match=r"was begun with the objective 'absolute'; it is now to go on with the loss of"
    ):
        vcnef.fit(waves(), out=tmp_path / "parts", resume=True, **settings)
    with pytest.raises(
        ValueError, match=r"begun with the objective 'absolute'; .* go on with the objective 'mine'. Res"
    ):
        vcnef.fit(waves(), out=tmp_path / "parts", objective=Named(), resume=True, **settings)
    parts = vcnef.fit(waves(), out=tmp_path / "parts", objective=absolute, resume=True, **settings)
    state = parts.surrogate.model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in whole.surrogate.model.state_dict().items())


def test_a_run_with_the_recipes_loss_is_not_resumed_with_another(tmp_path):
    vcnef.fit(waves(), out=tmp_path, **QUICK)
    with pytest.raises(
        ValueError, match=r"begun with the loss of the recipe; it is now to go on with the objective 'abs"
    ):
        vcnef.fit(waves(), out=tmp_path, objective=absolute, resume=True, **QUICK)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"objective": "mse"},
            r"The objective is 'mse'; expected a function of \(model, batch, progress\) that returns",
        ),
        ({"objective": Named}, "The objective is <class .*Named'>; expected a function"),
        ({"objective": lambda pred, u: 0.0}, r"'.*<lambda>' takes \(pred, u\); .* A fourth argument may be scaling"),
        (
            {"objective": lambda model, batch, progress, units: 0.0},
            r"takes \(model, batch, progress, units\); expected",
        ),
        (
            {"loss": "relative"},
            "loss is 'relative', which is about the recipe's loss; the objective 'absolute' stands in",
        ),
        ({"train": {"physics": 0.1}}, r"physics is 0.1, .* add to that loss: objective=vcnef.training.Beside\(…"),
        ({"pushes": 2}, "pushes is 2, which is about the recipe's loss"),
        ({"objective": lambda m, b, p: 0.1}, "returns a float; expected a scalar tensor, .* Leave out .item"),
        ({"objective": lambda m, b, p: ask(m, b)}, r"returns shape \(4, .*\); expected a scalar. Take the mean"),
        (
            {"objective": lambda m, b, p: b.u.mean()},
            "does not depend on the weights; expected a loss of what the model",
        ),
    ],
)
def test_what_no_objective_can_be_is_refused(given, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        vcnef.fit(waves(), out=tmp_path, **{"objective": absolute} | given | QUICK)


def test_settings_of_a_configuration_that_would_mean_nothing_are_refused(tmp_path):
    config = vcnef.workflow.Config.load("own/small1d").override({"semigroup": 0.0, "physics": 0.5})
    with pytest.raises(ValueError, match=r"physics is 0\.5, which is about the recipe's loss"):
        vcnef.workflow.train(config, waves(), out=tmp_path, objective=absolute)


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), "much"])
def test_weights_are_above_zero(weight):
    with pytest.raises((ValueError, TypeError), match="weight"):
        Beside(absolute, weight=weight)


def test_models_that_step_have_an_objective_too_but_no_derivative_in_time(tmp_path):
    def slope(model, batch, progress):
        return vcnef.time_derivative(model, batch.u0, batch.grid, batch.t, batch.params)[1].square().mean()

    fno = {"model": "fno", "width": 8, "modes": 4, "batch": 4, "epochs": 1, "devices": "cpu", "quiet": True}
    run = vcnef.fit(waves(), out=tmp_path / "fno", objective=Beside(absolute), **fno)
    assert run.history[-1]["loss"] > 0
    with pytest.raises(
        ValueError, match="prediction of Rollout has no derivative in time; expected a model that is cont"
    ):
        vcnef.fit(waves(), out=tmp_path / "slope", objective=slope, **fno)
