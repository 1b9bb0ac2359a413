"""What a VCNeF promises whatever its weights: times do not interact, points permute, grids are free."""

import sys
from pathlib import Path

import pytest
import torch

import vcnef
from vcnef.accelerate import predict
from vcnef.grid import cell_centres

SOURCE = str(Path(vcnef.__file__).parent)
SIDES = {1: (24,), 2: (32, 16), 3: (16, 16, 16)}
TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 2}


def tiny(ndim, channels=2, params=1, **options):
    return vcnef.build("vcnef", ndim=ndim, channels=channels, params=params, **(TINY | options)).double().eval()


def inputs(ndim, batch=2, times=3, channels=2, params=1, sides=None):
    sides = SIDES[ndim] if sides is None else sides
    u0 = torch.randn(batch, *sides, channels, dtype=torch.float64)
    grid = cell_centres(((0.0, 1.0),) * ndim, sides, dtype=torch.float64)
    return u0, grid, torch.rand(times, dtype=torch.float64), torch.rand(batch, params, dtype=torch.float64)


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ({"ndim": 1, "channels": 1, "params": 1}, 793_825),
        ({"ndim": 1, "channels": 3, "params": 2}, 794_307),
        ({"ndim": 2, "channels": 4}, 11_779_436),
        ({"ndim": 3, "channels": 5}, 27_335_041),
    ],
)
def test_the_published_parameter_counts(sizes, count):
    assert sum(p.numel() for p in vcnef.build("vcnef", **sizes).parameters()) == count


@pytest.mark.parametrize("variant", ["paper", "release"])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_all_times_at_once_are_one_at_a_time(ndim, variant):
    model, (u0, grid, t, params) = tiny(ndim, variant=variant), inputs(ndim)
    together = model(u0, grid, t, params)
    assert together.shape == (2, 3, *SIDES[ndim], 2)
    for k in range(3):
        torch.testing.assert_close(together[:, k : k + 1], model(u0, grid, t[k : k + 1], params))


@pytest.mark.parametrize("points_per_chunk", [1, 40, 100, None])
def test_prediction_in_chunks_is_the_forward_pass(points_per_chunk):
    model, (u0, grid, t, params) = tiny(1), inputs(1, batch=3, times=5)
    expected = model(u0, grid, t, params)
    torch.testing.assert_close(predict(model, u0, grid, t, params, points_per_chunk=points_per_chunk), expected)
    own_t, own_grid = t.expand(3, -1), grid.expand(3, -1, -1)
    torch.testing.assert_close(predict(model, u0, own_grid, own_t, params, points_per_chunk=points_per_chunk), expected)


def test_dropout_that_is_wanted_in_predictions_is_drawn_at_every_time():
    model, (u0, grid, _, params) = tiny(1, variant="release", dropout=0.5).train(), inputs(1)
    with torch.no_grad():
        first, second = model(u0, grid, torch.full((2,), 0.5, dtype=torch.float64), params).unbind(1)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("ndim", [1, 2])
def test_shared_times_and_grids_equal_repeated_ones(ndim):
    model, (u0, grid, t, params) = tiny(ndim), inputs(ndim)
    repeated = model(u0, grid.expand(2, *grid.shape), t.expand(2, -1), params)
    torch.testing.assert_close(model(u0, grid, t, params), repeated)


def test_samples_may_have_their_own_times_and_grids():
    model, (u0, grid, _, params) = tiny(1), inputs(1)
    t, grids = torch.rand(2, 4, dtype=torch.float64), torch.stack((grid, grid**2))
    both = model(u0, grids, t, params)
    for k in range(2):
        torch.testing.assert_close(both[k : k + 1], model(u0[k : k + 1], grids[k], t[k], params[k : k + 1]))


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_scattered_points_in_any_dimension_permute(ndim):
    model = tiny(ndim, patches=())
    u0, t, params = torch.randn(2, 11, 2).double(), torch.rand(3).double(), torch.rand(2, 1).double()
    points, order = torch.rand(11, ndim).double(), torch.randperm(11)
    torch.testing.assert_close(model(u0, points, t, params)[:, :, order], model(u0[:, order], points[order], t, params))


def test_a_grid_is_its_points():
    model, (u0, grid, t, params) = tiny(2, patches=()), inputs(2, sides=(4, 6))
    as_points = model(u0.flatten(1, 2), grid.flatten(0, 1), t, params)
    torch.testing.assert_close(model(u0, grid, t, params), as_points.unflatten(2, (4, 6)))


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize(("ndim", "sides"), [(2, (40, 17)), (2, (5, 100)), (3, (16, 7, 20)), (1, (100,)), (1, (1,))])
def test_any_sides_are_accepted(ndim, sides, periodic):
    model, (u0, grid, t, params) = tiny(ndim, patches=(4, 16), periodic=periodic), inputs(ndim, sides=sides)
    u = model(u0, grid, t, params)
    assert u.shape == (2, 3, *sides, 2)
    assert u.isfinite().all()


def test_a_periodic_field_on_odd_sides_is_that_of_whole_periods():
    """Continuing 24 = 1.5 patches periodically to 32 is what a grid over 1⅓ periods would have shown."""
    model = tiny(1, patches=(16,))
    long_grid = cell_centres(((0.0, 4 / 3),), 32, dtype=torch.float64)
    long_u0 = torch.sin(2 * torch.pi * long_grid).expand(1, 32, 2)
    t, params = torch.rand(2).double(), torch.rand(1, 1).double()
    short = model(long_u0[:, :24], long_grid[:24], t, params)
    torch.testing.assert_close(short, model(long_u0, long_grid, t, params)[:, :, :24])


def test_refining_the_grid_converges():
    """Point-wise attention is a quadrature, so the answer at a point settles as the grid is refined."""
    model, t, params = tiny(1, channels=1), torch.rand(2).double(), torch.rand(1, 1).double()

    def at_quarters(n):
        grid = cell_centres(((0.0, 1.0),), n, dtype=torch.float64)
        u = model(torch.sin(2 * torch.pi * grid).unsqueeze(0), grid, t, params)
        return u[0, :, n // 10 :: n // 5, 0]  # the centres of fifths stay cell centres when n is 5 times an odd number

    coarse, fine, finest = (at_quarters(5 * 3**k) for k in (1, 2, 3))
    assert (finest - fine).norm() < 0.5 * (fine - coarse).norm()


@pytest.mark.parametrize("attention", ["linear", "softmax", "none"])
@pytest.mark.parametrize("conditioning", ["scale", "scale_shift"])
@pytest.mark.parametrize(("ndim", "patches"), [(1, ()), (2, (4, 16)), (2, (16,)), (3, (4,))])
def test_every_option_runs_and_has_gradients_everywhere(ndim, patches, attention, conditioning):
    model = tiny(ndim, patches=patches, attention=attention, conditioning=conditioning).train()
    model(*inputs(ndim)).square().sum().backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]


BEYOND = [(1, {"frequencies": 3, "lengths": (1.0,)}), (1, {"clocks": 4}), (1, {}), (2, {"clocks": 4}), (2, {})]


@pytest.mark.parametrize(("ndim", "options"), BEYOND)
def test_what_goes_beyond_the_paper_has_gradients_and_takes_finer_grids(ndim, options):
    u0, grid, t, params = inputs(ndim)
    sides = tuple(grid.shape[:-1])
    model = tiny(ndim, local=1, sides=sides, **options).train()
    assert any("local" in name for name, _ in model.named_parameters())
    model(u0, grid, t, params).square().sum().backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    finer = cell_centres(((0.0, 1.0),) * ndim, tuple(2 * side for side in sides), dtype=torch.float64)
    wide = u0
    for axis in range(1, ndim + 1):
        wide = wide.repeat_interleave(2, dim=axis)
    assert model(wide, finer, t, params).shape == (len(u0), len(t), *finer.shape[:-1], u0.shape[-1])


@pytest.mark.parametrize(("ndim", "patches"), [(1, ()), (2, (4,))])
def test_with_clocks_times_are_still_asked_one_by_one(ndim, patches):
    model, (u0, grid, t, params) = tiny(ndim, patches=patches, clocks=4).eval(), inputs(ndim)
    u = model(u0, grid, t, params)
    torch.testing.assert_close(model(u0, grid, t[1:2], params), u[:, 1:2])
    torch.testing.assert_close(model(u0[1:], grid, t, params[1:]), u[1:])
    torch.testing.assert_close(model(u0, grid, t.expand(len(u0), -1), params), u)
    torch.testing.assert_close(predict(model, u0, grid, t, params, points_per_chunk=50), u)


@pytest.mark.parametrize("ndim", [1, 2])
def test_at_another_pace_a_model_is_asked_at_other_times(ndim):
    model, plain, (u0, grid, t, params) = tiny(ndim, pace=10.0), tiny(ndim), inputs(ndim)
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(u0, grid, t, params), plain(u0, grid, 10 * t, params))
    torch.testing.assert_close(predict(model.eval(), u0, grid, t, params), plain.eval()(u0, grid, 10 * t, params))


def test_with_a_stencil_it_does_not_matter_where_a_periodic_grid_begins():
    model, (u0, grid, t, params) = tiny(1, frequencies=2, lengths=(1.0,), local=2, sides=(24,)), inputs(1)
    for block in (model.blocks[0], *model.modulations):
        torch.nn.init.normal_(block.local.weight)
    u = model(u0, grid, t, params)
    torch.testing.assert_close(model(u0.roll(5, 1), grid.roll(5, 0), t, params), u.roll(5, 2))
    torch.testing.assert_close(model(u0, grid + 1, t, params), u)


@pytest.mark.parametrize(
    ("sides", "points", "seen"),
    [
        (48, 48, [*range(8), *range(44, 48)]),
        (50, 50, [*range(8), *range(44, 50)]),
        (50, 100, [*range(0, 16, 2), *range(88, 100, 2)]),
        (40, 60, [*range(12), *range(52, 60)]),
    ],
)
def test_a_stencil_of_patches_closes_the_ring_where_the_domain_ends(sides, points, seen):
    """A patch of 4 points sees those a patch of the training grid away, whether or not patches divide the sides."""
    options = {"modulations": 1, "depth": 0, "attention": "none", "patches": (4, 16), "local": 1, "sides": (sides,)}
    model, (u0, grid, t, _) = tiny(1, 1, 0, **options), inputs(1, 1, 1, 1, sides=(points,))
    torch.nn.init.normal_(model.modulations[0].local.weight)
    with torch.no_grad():
        model.decoder.mix.weight[:, 1:] = 0
    u0.requires_grad_()
    (change,) = torch.autograd.grad(model(u0, grid, t)[0, 0, 0, 0], u0)
    assert change[0, :, 0].nonzero().flatten().tolist() == seen


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("ndim", "options"), [(1, {}), (2, {"local": 1, "clocks": 4}), (3, {"change": True})])
def test_patches_keep_their_size_on_finer_grids(ndim, options, own):
    """So a finer grid changes nothing at the points of the training grid, and others are as if they were such points.

    `own`: with times and a grid of each sample's own."""
    sides, finer = (8, 6, 5)[:ndim], (16, 18, 5)[:ndim]
    model, (u0, grid, t, params) = tiny(ndim, patches=(2, 4), sides=sides, **options), inputs(ndim, sides=finer)
    if own:
        t, grid = torch.stack((t, t / 2)), torch.stack((grid, grid + 0.1))
    u = model(u0, grid, t, params)
    for first in ((0, 0, 0), (1, 2, 0)):
        every = tuple(slice(k, None, n) for k, n in zip(first, (2, 3, 1), strict=True))[:ndim]
        points = (..., *every, slice(None))
        torch.testing.assert_close(u[points], model(u0[points], grid[points], t, params))
    torch.testing.assert_close(predict(model.eval(), u0, grid, t, params, points_per_chunk=50), u)


@pytest.mark.parametrize(("sides", "options"), [((8, 9), {}), ((16, 8), {"variant": "release"}), ((4, 8), {})])
def test_elsewhere_patches_are_as_many_points_on_every_grid(sides, options):
    """On grids that are no whole number of times as fine, and in the authors' code."""
    plain, knowing = tiny(2, **options), tiny(2, sides=(8, 8), **options)
    knowing.load_state_dict(plain.state_dict())
    asked = inputs(2, sides=sides)
    torch.testing.assert_close(knowing(*asked), plain(*asked))


@pytest.mark.parametrize(("ndim", "patches"), [(1, ()), (2, (4, 16)), (2, ())])
def test_the_mean_rate_of_change_leaves_the_initial_state_as_it_is(ndim, patches):
    plain, model = tiny(ndim, patches=patches), tiny(ndim, patches=patches, rate=True)
    model.load_state_dict(plain.state_dict())
    u0, grid, t, params = inputs(ndim)
    t[0] = 0
    u = model(u0, grid, t, params)
    later = t.view(-1, *[1] * (ndim + 1))
    torch.testing.assert_close(u, u0.unsqueeze(1) + later * plain(u0, grid, t, params))
    torch.testing.assert_close(u[:, 0], u0)
    torch.testing.assert_close(predict(model, u0, grid, t, params, points_per_chunk=50), u)
    own = torch.stack((t, t.flip(0)))
    torch.testing.assert_close(predict(model, u0, grid, own, params)[1], u[1].flip(0))
    with pytest.raises(ValueError, match="change and rate are both true"):
        tiny(ndim, change=True, rate=True)


@pytest.mark.parametrize(("ndim", "patches"), [(1, ()), (2, (4, 16)), (3, (4,)), (2, ())])
def test_the_change_is_added_to_the_initial_state(ndim, patches):
    plain, model = tiny(ndim, patches=patches), tiny(ndim, patches=patches, change=True)
    model.load_state_dict(plain.state_dict())
    u0, grid, t, params = inputs(ndim, sides=(6, 5) if ndim == 2 else None)
    u = model(u0, grid, t, params)
    torch.testing.assert_close(u, plain(u0, grid, t, params) + u0.unsqueeze(1))
    for k in range(3):
        torch.testing.assert_close(u[:, k : k + 1], model(u0, grid, t[k : k + 1], params))
    torch.testing.assert_close(predict(model, u0, grid, t, params, points_per_chunk=50), u)
    for weight in model.decoder.parameters():
        torch.nn.init.zeros_(weight)
    assert torch.equal(model(u0, grid, t, params), u0.unsqueeze(1).expand(-1, 3, *u0.shape[1:]))


def test_the_change_at_scattered_points():
    model = tiny(2, patches=(), change=True)
    for weight in model.decoder.parameters():
        torch.nn.init.zeros_(weight)
    u0, points, t = torch.randn(2, 11, 2).double(), torch.rand(11, 2).double(), torch.rand(2, 3).double()
    assert torch.equal(model(u0, points, t, torch.rand(2, 1).double()), u0.unsqueeze(1).expand(2, 3, 11, 2))


@pytest.mark.parametrize(("patches", "usual"), [((), "relu"), ((4,), "gelu")])
def test_the_activation_can_be_chosen(patches, usual):
    models = {name: tiny(1, patches=patches, activation=name) for name in (None, "relu", "gelu")}
    for model in models.values():
        model.load_state_dict(models[None].state_dict())
    answers = {name: model(*args) for args in [inputs(1)] for name, model in models.items()}
    other = {"relu": "gelu", "gelu": "relu"}[usual]
    assert torch.equal(answers[None], answers[usual])
    assert not torch.allclose(answers[None], answers[other])


def test_parameters_matter_and_times_matter():
    model, (u0, grid, t, params) = tiny(1), inputs(1)
    u = model(u0, grid, t, params)
    assert not torch.allclose(u, model(u0, grid, t, params + 1))
    assert not torch.allclose(u, model(u0, grid, t + 0.5, params))


@pytest.mark.parametrize("ndim", [1, 2])
def test_precisions(ndim):
    model = tiny(ndim)
    u0, grid, t, params = inputs(ndim)
    exact = model(u0, grid, t, params)
    single = [x.float() for x in (u0, grid, t, params)]
    model.float()
    torch.testing.assert_close(model(*single), exact.float(), rtol=1e-4, atol=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = model(*single)
    assert (half.double() - exact).norm() < 0.05 * exact.norm()


def test_derivatives_in_time_are_exact():
    """Forward-mode through the model, as a physics-informed loss needs it, agrees with differences."""
    model, (u0, grid, t, params) = tiny(1), inputs(1)
    latent = model.encode(u0, grid, params)
    _, rate = torch.func.jvp(lambda s: model.query(latent, s), (t,), (torch.ones_like(t),))
    step = 1e-6
    difference = (model.query(latent, t + step) - model.query(latent, t - step)) / (2 * step)
    torch.testing.assert_close(rate, difference, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("ndim", "most"), [(1, 18), (2, 24)])
def test_one_forward_pass_is_read_in_few_functions(ndim, most):
    model, question, called = tiny(ndim, params=1), inputs(ndim), set()

    def note(frame, event, _):
        code = frame.f_code
        # Names of comprehensions are in angle brackets.
        if event == "call" and code.co_filename.startswith(SOURCE) and not code.co_name.startswith("<"):
            called.add(code.co_qualname)

    sys.setprofile(note)
    model(*question)
    sys.setprofile(None)
    assert "LinearAttention.feature_map" in called
    assert len(called) <= most, sorted(called)
