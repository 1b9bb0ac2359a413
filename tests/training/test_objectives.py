"""Losses, how they join, and how much of a rollout they go through."""

import pytest
import torch
from torch import nn

from vcnef.data import Batch, Batches, Normaliser, Queries
from vcnef.metrics import nrmse
from vcnef.models.interface import Stepper
from vcnef.models.registry import build
from vcnef.models.rollout import Rollout
from vcnef.training import Recipe, combine, data_objective
from vcnef.training.job import default_objective
from vcnef.training.losses import Relative, mean_square
from vcnef.training.objectives import ask
from vcnef.training.unrolling import Curriculum, PushForward, prefix_length


class Doubling(Stepper):
    """Doubles its state, and notes how many states it is asked for at a time."""

    ndim, channels, params = 1, 1, 1

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(2.0))
        self.asked = []

    def forward(self, u, grid, params=None):
        self.asked.append(len(u))
        assert params is None or len(params) == len(u)
        return self.factor * u


def doubling_batch(frames, noise=0.0):
    u0 = torch.ones(3, 8, 1)
    u = u0[:, None] * 2.0 ** torch.arange(1, frames)[None, :, None, None] + noise
    t = torch.arange(1, frames) / (frames - 1)
    return Batch(u0, torch.zeros(8, 1), t, torch.zeros(3, 1), u)


def scales(mean, std, log):
    names = tuple(f"u{i}" for i in range(len(mean)))
    return Normaliser(names, torch.tensor(mean), torch.tensor(std), torch.tensor(log))


def test_the_relative_loss_is_nrmse_in_physical_units():
    fields = scales([3.0, 0.5], [2.0, 0.1], [False, True])
    pred, target = torch.randn(2, 4, 3, 8, 6, 2)
    expected = nrmse(fields.denormalise(pred), fields.denormalise(target), initial_frames=0)
    assert Relative(fields, floor=0.0)(pred, target).item() == pytest.approx(expected.item(), rel=1e-5)
    assert Relative(fields)(pred, target).item() == pytest.approx(expected.item(), rel=1e-3)


def test_the_relative_loss_bears_zero_fields_and_zero_errors():
    fields = scales([0.0], [1.0], [False])
    pred = torch.zeros(2, 3, 8, 1, requires_grad=True)
    loss = Relative(fields)(pred, torch.zeros(2, 3, 8, 1))
    loss.backward()
    assert loss.item() == 0.0
    assert pred.grad.isfinite().all()


def test_the_relative_loss_judges_a_channel_at_rest_by_its_spread():
    fields = scales([0.0], [2.0], [False])
    wrong = torch.full((1, 1, 8, 1), 0.1)  # in standard deviations
    assert Relative(fields)(wrong, torch.zeros(1, 1, 8, 1)).item() == pytest.approx(0.1)
    # Down to three thousandths of the spread, fields are judged by their own size.
    for size in (0.003, 0.03, 1.0):
        target = torch.full((1, 1, 8, 1), size)
        expected = 0.1 / (size**2 + 1e-6) ** 0.5
        assert Relative(fields)(target + wrong, target).item() == pytest.approx(expected, rel=1e-5)
    # In between there is no jump.
    sizes = torch.linspace(0.0, 0.004, 400)[:, None, None, None].expand(400, 1, 8, 1)
    losses = torch.stack([Relative(fields)(each + wrong, each) for each in sizes.split(1)])
    assert (losses[1:] / losses[:-1]).log().abs().max() < 0.05


def test_the_relative_loss_knows_that_what_is_positive_is_never_at_rest():
    fields = scales([0.0], [1.0], [True])
    faint = torch.tensor([-12.0, 0.0])[:, None, None, None].expand(2, 1, 8, 1)
    wrong = torch.tensor([0.1, 0.0])[:, None, None, None]
    error = torch.tensor(-12.0).exp() * (torch.tensor(0.1).exp() - 1)
    assert Relative(fields)(faint + wrong, faint).item() == pytest.approx(error.item() / 5e-4 / 2, rel=1e-3)


@pytest.mark.parametrize("unit", [2.0**63, 2.0**-90])
def test_the_relative_loss_knows_no_units(unit):
    pred, target = torch.randn(2, 4, 3, 8, 2)
    here = scales([3.0, 0.5], [2.0, 0.1], [False, True])
    # Of a channel in its logarithm, a unit is part of the mean.
    there = scales([3.0 * unit, 40.0], [2.0 * unit, 0.1], [False, True])
    assert Relative(there)(pred, target) == Relative(here)(pred, target)


def test_mean_square_is_a_mean_over_everything():
    assert mean_square(torch.zeros(2, 3, 8, 8, 2), torch.full((2, 3, 8, 8, 2), 2.0)).item() == 4.0


def test_an_objective_of_each_recipe(world, data):
    surrogate = world.make_surrogate(data)
    batch = next(iter(Batches(data.split("train"), 4, scaling=surrogate.scaling)))
    model, fields = surrogate.model.eval(), surrogate.scaling.fields
    plain = data_objective(Recipe(), fields, model, Queries())(model, batch, 0.5)
    assert plain.item() == mean_square(ask(model, batch), batch.u).item()
    relative = data_objective(Recipe(loss="relative"), fields, model, Queries())(model, batch, 0.5)
    assert relative.item() == Relative(fields)(ask(model, batch), batch.u).item()
    with pytest.raises(ValueError, match=r"unroll='curriculum' is for models that step .*; VCNeF gives a whole"):
        data_objective(Recipe(unroll="curriculum"), fields, model, Queries())
    with pytest.raises(
        ValueError, match=r"unroll='push_forward' needs the frames after the start, one after the other; .*times=2"
    ):
        data_objective(Recipe(unroll="push_forward"), fields, Rollout(Doubling(), steps=8), Queries(times=2))


@pytest.mark.parametrize(("progress", "rise"), [(0.1, 0.5), (0.2, 1.0), (0.9, 1.0)])
def test_physics_joins_by_the_weights_of_the_recipe(progress, rise):
    recipe = Recipe(physics=0.5, physics_warm_up=0.2, data_weight=3.0)
    joined = combine(lambda *_: torch.tensor(7.0), lambda *_: torch.tensor(2.0), recipe)
    loss = joined(Rollout(Doubling(), steps=8), doubling_batch(frames=9), progress)
    assert loss.item() == pytest.approx(3 * 7 + 0.5 * rise * 2)


def test_physics_alone_does_not_look_at_trajectories():
    def forbidden(*_):
        raise AssertionError

    alone = combine(forbidden, lambda *_: torch.tensor(2.0), Recipe(physics=0.5, data_weight=0.0))
    assert alone(Rollout(Doubling(), steps=8), doubling_batch(frames=9), 0.5).item() == 1.0


def test_a_recipe_with_physics_trains(fit_quickly):
    run = fit_quickly(physics=0.01, options={"dropout": 0.0})
    assert run.history[-1]["loss"] > 0


@pytest.mark.parametrize("method", ["spectral", "finite_volume"])
@pytest.mark.parametrize("data_weight", [0.0, 1.0])
def test_a_recipe_says_how_the_residual_is_taken(world, data, method, data_weight):
    recipe = Recipe(physics=0.5, physics_method=method, data_weight=data_weight)
    assert default_objective(recipe, world.make_surrogate(data), Queries(), data.t).physics.method == method


def test_prefix_lengths():
    """The published schedule for 500 epochs and 41 frames."""
    table = {100: (1, 1), 150: (4, 4), 200: (10, 11), 250: (20, 20), 300: (29, 29), 350: (36, 36), 400: (39, 39)}
    for epoch, (low, high) in table.items():
        assert low <= prefix_length(epoch / 500, 41) <= high
    assert prefix_length(0.002, 41) == 1
    assert {prefix_length(epoch / 500, 41) for epoch in range(450, 501)} == {40}


@pytest.mark.parametrize(("progress", "free"), [(0.01, 1), (0.5, 4), (1.0, 8)])
def test_a_curriculum_rolls_out_a_prefix(progress, free):
    model, batch = Rollout(Doubling(), steps=8), doubling_batch(frames=9, noise=1.0)
    loss = Curriculum(mean_square)(model, batch, progress)
    forced = [3 * (8 - free)] if free < 8 else []
    assert model.stepper.asked == [3] * free + forced
    # From exact states each step is exact; true frames are off by the noise, and so is every step from them.
    wanted = [1.0] * free + [(2.0 * 1 - 1.0) ** 2] * (8 - free)
    assert loss.item() == pytest.approx(sum(wanted) / 8)
    loss.backward()
    assert model.stepper.factor.grad != 0


def test_a_curriculum_tells_the_time():
    """MP-PDE with bundles of one frame knows no step without it."""
    asked = []

    class Late(Doubling):
        def advance(self, u, grid, params, t):
            asked.append(t)
            return super().advance(u, grid, params, t)

    model, batch = Rollout(Late(), steps=8), doubling_batch(frames=9)
    assert Curriculum(mean_square)(model, batch, 0.5).item() == 0.0
    *free, forced = asked
    assert torch.equal(torch.stack(free), (torch.arange(4) / 8)[:, None].expand(-1, 3))
    assert torch.equal(forced.unflatten(0, (3, 4)), (torch.arange(4, 8) / 8).expand(3, -1))
    real = build("mp_pde", ndim=1, channels=1, params=1, steps=8, bundle=1, width=20, depth=1)
    line = torch.arange(8.0)[:, None]
    assert Curriculum(mean_square)(real, Batch(batch.u0, line, batch.t, batch.params, batch.u), 0.5).isfinite()


def test_a_curriculum_disturbs_every_input():
    inputs = []

    class Silent(Stepper):
        ndim, channels, params = 1, 1, 0

        def forward(self, u, grid, params=None):
            inputs.append(u.flatten())
            return torch.zeros_like(u)

    model, batch = Rollout(Silent(), steps=8), doubling_batch(frames=9)
    recipe, zeros = Recipe(unroll="curriculum", input_noise=0.5), [0 * batch.u0, 0 * batch.u]
    objective = data_objective(recipe, scales([0.0], [1.0], [False]), model, Queries())
    for _ in range(50):
        objective(model, Batch(zeros[0], batch.grid, batch.t, batch.params, zeros[1]), 0.5)
    inputs = torch.cat(inputs)
    assert len(inputs) == 50 * 3 * 8 * 8
    assert inputs.mean().item() == pytest.approx(0.0, abs=0.02)
    assert inputs.std().item() == pytest.approx(0.5, rel=0.03)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"input_noise": 0.1}, "input_noise is 0.1, but unroll is 'full', which has none. Leave it out, set a window"),
        ({"semigroup": 1.0}, "semigroup is 1, but there are no windows. Leave it out, or set a window"),
        (
            {"chain": 2},
            "chain is 2, but there are no windows. Leave it out, set a window, or use unroll='push_forward'",
        ),
    ],
)
def test_what_is_for_windows_is_refused_without_them(given, said):
    queries = Queries(chain=given.pop("chain", 1))
    with pytest.raises(ValueError, match=said):
        data_objective(Recipe(**given), scales([0.0], [1.0], [False]), Rollout(Powers(), steps=8), queries)


class Powers(Stepper):
    """Doubles its state, five frames at once; notes at which times it is asked, and whether for a gradient."""

    ndim, channels, params, frames = 1, 1, 1, 5

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(2.0))
        self.asked = []

    def advance(self, u, grid, params, t):
        self.asked.append((t.clone(), torch.is_grad_enabled()))
        return u[:, None] * self.factor ** torch.arange(1, 6)[:, None, None]


def test_a_push_forward_goes_by_bundles():
    model, batch = Rollout(Powers(), steps=15), doubling_batch(frames=16)
    starts = []
    for _ in range(30):
        model.stepper.asked.clear()
        assert PushForward(mean_square)(model, batch, 1.0).item() == 0.0
        (before, first_graded), (start, last_graded) = model.stepper.asked
        assert (first_graded, last_graded) == (False, True)
        torch.testing.assert_close(before, (start - 5 / 15).clamp(min=0.0))
        starts += (15 * start).round().int().tolist()
    assert set(starts) == set(range(11))


def draw(monkeypatch, *, start, pushed):
    """Every sample starts at this frame, and is pushed or not where it may be."""
    monkeypatch.setattr(torch, "randint", lambda high, size, device: torch.full(size, start))
    monkeypatch.setattr(torch, "rand", lambda size, device: torch.full(size, 0.49 if pushed else 0.5))


@pytest.mark.parametrize(
    ("pushed", "progress", "state"),
    [(True, 1.0, 1.5**5), (True, 0.06, 1.5**5), (True, 0.05, 2.0**5), (False, 1.0, 2.0**5)],
)
def test_the_gradient_of_a_push_forward_is_that_of_the_last_bundle(monkeypatch, pushed, progress, state):
    """A gradient through both bundles would be another."""
    draw(monkeypatch, start=5, pushed=pushed)
    model, batch = Rollout(Powers(), steps=15), doubling_batch(frames=16)
    model.stepper.factor.data.fill_(1.5)
    PushForward(mean_square)(model, batch, progress).backward()
    k = torch.arange(1, 6)
    slope = (2 * (state * 1.5**k - 2.0 ** (5 + k)) * state * k * 1.5 ** (k - 1)).mean()
    assert model.stepper.factor.grad.item() == pytest.approx(slope.item(), rel=1e-5)


def test_bundles_are_chained_in_the_last_part_of_a_run(monkeypatch):
    """Of what is chained, the gradient passes through all."""
    draw(monkeypatch, start=0, pushed=False)
    batch, asked = doubling_batch(frames=16), {}
    for progress in (0.5, 0.7):
        model = Rollout(Powers(), steps=15)
        model.stepper.factor.data.fill_(1.5)
        PushForward(mean_square, chain=3)(model, batch, progress).backward()
        count = len(model.stepper.asked) - 1
        k = torch.arange(1, 5 * count + 1)
        slope = (2 * (1.5**k - 2.0**k) * k * 1.5 ** (k - 1)).mean()
        assert model.stepper.factor.grad.item() == pytest.approx(slope.item(), rel=1e-5)
        asked[progress] = count
    assert asked == {0.5: 1, 0.7: 3}
    assert PushForward(mean_square, chain=3).phases == (0.05, 0.6)


def test_what_has_no_bundle_before_it_is_not_pushed(monkeypatch):
    draw(monkeypatch, start=4, pushed=True)
    model, batch = Rollout(Powers(), steps=15), doubling_batch(frames=16)
    model.stepper.factor.data.fill_(1.5)
    k = torch.arange(1, 6)
    expected = ((2.0**4 * 1.5**k - 2.0 ** (4 + k)) ** 2).mean().item()
    assert PushForward(mean_square)(model, batch, 1.0).item() == pytest.approx(expected, rel=1e-6)


def test_a_bundle_must_fit_the_frames():
    model = Rollout(Powers(), steps=4)
    with pytest.raises(ValueError, match=r"needs 5 frames after the initial one.*; there are 4. Build the model with"):
        data_objective(Recipe(unroll="push_forward"), scales([0.0], [1.0], [False]), model, Queries())
    with pytest.raises(ValueError, match="is for models that give one frame at a time; this one gives 5"):
        data_objective(Recipe(unroll="curriculum"), scales([0.0], [1.0], [False]), model, Queries())


def test_a_chain_of_bundles_must_fit_the_frames():
    model = Rollout(Powers(), steps=15)
    with pytest.raises(
        ValueError, match=r"needs 20 frames after the initial one.*; there are 15. Build the model with"
    ):
        data_objective(Recipe(unroll="push_forward"), scales([0.0], [1.0], [False]), model, Queries(chain=4))


def test_a_push_forward_chooses_its_starts_itself():
    with pytest.raises(ValueError, match=r"starts from random frames itself; passes=3 would leave it too few .* Leave"):
        data_objective(
            Recipe(unroll="push_forward"), scales([0.0], [1.0], [False]), Rollout(Doubling(), steps=8),
            Queries(passes=3),
        )  # fmt: skip
