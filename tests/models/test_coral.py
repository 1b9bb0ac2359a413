"""CORAL: sizes, codes, the clock of its dynamics, and the two stages of its training."""

import sys

import pytest
import torch

import vcnef
from vcnef.accelerate import predict
from vcnef.data import Batch, Queries
from vcnef.grid import cell_centres
from vcnef.models.coral import BATCHES_REMEMBERED
from vcnef.models.fno import fno
from vcnef.training import Recipe, data_objective
from vcnef.training.losses import mean_square
from vcnef.training.stages import TwoStages

TINY = {"latent": 16, "width": 32, "depth": 3, "w0": 10.0, "dynamics_width": 32, "dynamics_depth": 2, "steps": 8}


@pytest.fixture
def model():
    return vcnef.build("coral", ndim=1, channels=1, **TINY)


def waves(points, samples=3):
    """Smooth periodic fields, the same ones on any grid."""
    grid = cell_centres(((0.0, 1.0),), (points,))
    phases = torch.arange(samples)[:, None, None] / samples
    return torch.sin(2 * torch.pi * (grid - phases)), grid


def a_batch(params=0):
    u, grid = waves(16, 9 * 3)
    frames = u.unflatten(0, (3, 9))
    return Batch(frames[:, 0], grid, torch.arange(1, 9) / 8, torch.rand(3, params), frames[:, 1:])


@pytest.mark.parametrize(
    ("channels", "options", "count"),
    [
        (1, {}, 1_381_125),
        (3, {}, 1_381_639),
        (1, {"width": 128, "depth": 4}, 920_325),
        (3, {"width": 128, "depth": 4}, 920_583),
    ],
)
def test_the_published_sizes(channels, options, count):
    with torch.device("meta"):
        model = vcnef.build("coral", ndim=1, channels=channels, **options)
        wider = vcnef.build("coral", ndim=1, channels=channels, params=2, **options)
    assert sum(weight.numel() for weight in model.parameters()) == count
    assert sum(weight.numel() for weight in wider.parameters()) == count + 2 * 512


def test_the_inner_steps_lower_the_error_of_each_frame(model):
    u, grid = waves(16)
    errors = []
    for model.inner_steps in (1, 3, 10):
        code = model.find_codes(u, grid[None])
        errors.append((model.decode(code[:, None], grid[None])[:, 0] - u).square().flatten(1).mean(dim=1))
    at_zero = (model.decode(torch.zeros(3, 1, 16), grid[None])[:, 0] - u).square().flatten(1).mean(dim=1)
    assert (errors[0] < at_zero).all()
    assert (errors[1] < errors[0]).all()
    assert (errors[2] < errors[1]).all()


def test_codes_are_found_without_gradients_too(model):
    u, grid = waves(16)
    expected = model.find_codes(u, grid[None])
    assert expected.requires_grad
    with torch.no_grad():
        assert torch.equal(model.find_codes(u, grid[None]), expected)
    model.eval()
    code = model.find_codes(u, grid[None])
    assert torch.equal(code, expected)
    assert not code.requires_grad
    alone = torch.cat([model.find_codes(each[None], grid[None]) for each in u])
    torch.testing.assert_close(alone, code, rtol=1e-4, atol=1e-7)


def test_an_answer_can_be_differentiated_by_the_initial_state_in_evaluation_too(model):
    model, (u, grid), t = model.double().eval(), waves(16), torch.tensor([0.3, 1.0]).double()
    u0, direction = u.double().requires_grad_(), torch.randn(3, 16, 1).double()
    (slope,) = torch.autograd.grad(model(u0, grid.double(), t).square().sum(), u0)
    ahead, behind = (model(u0 + step * direction, grid.double(), t).square().sum() for step in (1e-6, -1e-6))
    torch.testing.assert_close((slope * direction).sum(), (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-9)
    assert not model.find_codes(u.double(), grid[None].double()).requires_grad


def test_codes_hardly_depend_on_the_resolution(model):
    coarse, fine = (model.eval().find_codes(u, grid[None]) for u, grid in (waves(32), waves(128)))
    assert (coarse - fine).norm() < 5e-3 * fine.norm()


def test_coordinates_are_shares_of_the_domain(model):
    wide = vcnef.build("coral", ndim=1, channels=1, lengths=(5.0,), **TINY)
    wide.load_state_dict(model.state_dict())
    u, grid = waves(16)
    t = torch.tensor([0.5])
    torch.testing.assert_close(wide(u, 5 * grid, t), model(u, grid, t))


def test_between_frames_the_code_follows_the_equation(model):
    """Against the same equation integrated with twenty steps per frame."""
    code, slope = torch.randn(3, 16), model.dynamics
    t = torch.arange(1, 161) / 160
    with torch.no_grad():
        for weight in slope.parameters():
            weight *= 1.3  # nearer to the speed of a trained one
        exact, step = [code], 1 / 20
        for _ in t:
            z = exact[-1]
            k1 = slope(z)
            k2 = slope(z + step / 2 * k1)
            k3 = slope(z + step / 2 * k2)
            exact.append(z + step / 6 * (k1 + 2 * k2 + 2 * k3 + slope(z + step * k3)))
        grid = cell_centres(((0.0, 1.0),), (16,))
        start = model.encode(torch.zeros(3, 16, 1), grid)._replace(code=code)
        u = model.query(start, t)
        torch.testing.assert_close(u, model.decode(torch.stack(exact[1:], dim=1), start.grid), rtol=0, atol=1e-4)
        # A finer request changes nothing where the coarse one had asked, nor does each sample's own request.
        torch.testing.assert_close(model.query(start, t[19::20]), u[:, 19::20])
        own = torch.stack([t[:4], t[40:44], t[100:104]])
        torch.testing.assert_close(model.query(start, own)[2], u[2, 100:104])


@pytest.mark.parametrize(("points_per_chunk", "samples", "frames"), [(1, 1, 4), (16 * 10, 2, 5), (16 * 40, 3, 13)])
def test_fields_are_decoded_in_parts_and_codes_at_once(model, points_per_chunk, samples, frames, monkeypatch):
    """Not more fields at once than a chunk has points for, or than take the memory of finding a code."""
    model, (u, grid), t = model.eval(), waves(16), torch.rand(20)
    expected, asked, ways = model(u, grid, t), [], []
    decode, integrate = type(model).decode, type(model).integrate
    monkeypatch.setattr(type(model), "decode", lambda *given: asked.append(given[1].shape[:2]) or decode(*given))
    monkeypatch.setattr(type(model), "integrate", lambda *given: ways.append(len(given[1])) or integrate(*given))
    torch.testing.assert_close(predict(model, u, grid, t, points_per_chunk=points_per_chunk), expected)
    assert max(asked) == (samples, frames)
    assert max(ways) == samples
    assert sum(ways) == len(u)


def test_statistics_forget_the_first_codes(model):
    torch.manual_seed(0)
    first = torch.randn(64, 16)
    model.note_codes(first)
    torch.testing.assert_close(model.mean, first.mean(dim=0))
    torch.testing.assert_close(model.standardise(first).std(dim=0, correction=0), torch.ones(16))
    for _ in range(8 * BATCHES_REMEMBERED):
        model.note_codes(3 + 2 * torch.randn(64, 16))
    torch.testing.assert_close(model.mean, torch.full((16,), 3.0), rtol=0.1, atol=0)
    torch.testing.assert_close(model.std, torch.full((16,), 2.0), rtol=0.1, atol=0)


@pytest.mark.parametrize("params", [0, 2])
def test_each_stage_has_its_own_weights(params):
    model = vcnef.build("coral", ndim=1, channels=1, params=params, **TINY)
    stages, batch = TwoStages(mean_square), a_batch(params)
    learning = []
    for progress in (0.5, 0.9):
        model.zero_grad()
        before = model.mean.clone()
        stages(model, batch, progress).backward()
        learning.append({name.split(".")[0] for name, weight in model.named_parameters() if weight.grad is not None})
        assert torch.equal(model.mean, before) == (progress == 0.9)
    assert learning == [{"siren", "inner_rate"}, {"dynamics"}]


@pytest.mark.parametrize("forcing", [0.0, 0.4, 1.0])
def test_the_dynamics_start_anew_from_true_codes(model, forcing, monkeypatch):
    """Against frame after frame, with codes whose dynamics are known: dz/dt = 1 but for the noise of the true ones."""
    monkeypatch.setattr(type(model), "_slope", lambda self, code, params: torch.ones_like(code))
    frames = torch.randn(3, 9, 4, 1)
    monkeypatch.setattr(type(model), "find_codes", lambda self, u, grid: u[:, :1, 0].expand(-1, 16).contiguous())
    torch.manual_seed(5)
    loss = TwoStages(mean_square)._follow(model, frames, torch.zeros(1, 4, 1), None, forcing)
    torch.manual_seed(5)
    anew, true = torch.rand(8) < forcing, frames[:, :, 0, 0]
    state, errors = true[:, 0], []
    for k in range(8):
        state = (true[:, k] if anew[k] else state) + 1
        errors.append(state - true[:, k + 1])
    torch.testing.assert_close(loss, torch.stack(errors).square().mean())


def test_the_published_forcing_never_ends_and_ours_does():
    published = TwoStages(mean_square, decays=50)
    assert published.forcing(2 / 3) == 0.99
    assert published.forcing(1.0) == pytest.approx(0.99**51)
    ours = TwoStages(mean_square)
    assert ours.forcing(2 / 3) == 0.99
    assert ours.forcing(5 / 6) == pytest.approx(0.99**351, rel=0.02)
    assert ours.forcing(1.0) == 0.0


def test_only_models_with_codes_have_two_stages(model, monkeypatch):
    recipe = Recipe(unroll="two_stage")
    assert isinstance(data_objective(recipe, _scales(), model, Queries()), TwoStages)
    with pytest.raises(
        ValueError, match=r"encode every frame, such as CORAL; Rollout has no codes\. Use unroll='full'"
    ):
        data_objective(recipe, _scales(), fno(1, 1), Queries())
    with pytest.raises(ValueError, match=r"needs the frames after the start, one after the other; .*times=2"):
        data_objective(recipe, _scales(), model, Queries(times=2))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    with pytest.raises(ValueError, match=r"trains on one device, not on 2: .* Use devices=1\."):
        data_objective(recipe, _scales(), model, Queries())


def _scales():
    from vcnef.data import Normaliser

    return Normaliser(("u",), torch.zeros(1), torch.ones(1), torch.zeros(1, dtype=torch.bool))


def test_times_before_the_initial_state_are_refused(model):
    with pytest.raises(ValueError, match=r"Time -0\.5 of the horizon is before the initial state"):
        model(*waves(16), torch.tensor([0.5, -0.5]))


def test_without_torchdiffeq(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    message = r"torchdiffeq, which is not installed\. Install it with: pip install 'vcnef\[ode\]'\."
    with pytest.raises(ValueError, match=message):
        model(*waves(16), torch.tensor([1.0]))
    with pytest.raises(ValueError, match=message):
        data_objective(Recipe(unroll="two_stage"), _scales(), model, Queries())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ndim": 4}, "ndim is 4; expected 1, 2 or 3."),
        ({"depth": 1}, "depth is 1; expected at least 2."),
        ({"inner_steps": 0}, "inner_steps is 0; expected at least 1."),
        ({"lengths": (1.0, 1.0)}, r"lengths is \(1.0, 1.0\); expected 1 of them, all above 0."),
        ({"w0": 0.0}, "w0 is 0 and inner_rate 0.01; expected numbers above 0."),
        ({"inner_rate": -1.0}, "w0 is 30 and inner_rate -1; expected numbers above 0."),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        vcnef.build("coral", **{"ndim": 1, "channels": 1} | options)
