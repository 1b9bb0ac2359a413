from weakref import ref

import jaxtyping
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import vcnef
from vcnef.accelerate import predict
from vcnef.grid import cell_centres
from vcnef.models.interface import Stepper
from vcnef.models.rollout import Rollout, TimeInterpolated


class Decay(Stepper):
    """Each step multiplies by 0.9 and adds a hundredth of the parameter."""

    ndim, channels, params = 1, 1, 1

    def forward(self, u, grid, params=None):
        return 0.9 * u + 0.01 * params[:, :, None]


@pytest.fixture
def example():
    u0, params = torch.randn(3, 8, 1, dtype=torch.float64), torch.rand(3, 1, dtype=torch.float64)
    frames = [u0]
    for _ in range(10):
        frames.append(0.9 * frames[-1] + 0.01 * params[:, :, None])
    return u0, cell_centres([(0.0, 1.0)], 8, dtype=torch.float64), params, torch.stack(frames, dim=1)


def test_a_rollout_is_repeated_steps(example):
    u0, grid, params, truth = example
    t = torch.tensor([0.3, 0.1, 1.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(Rollout(Decay(), 10)(u0, grid, t, params), truth[:, [3, 1, 10, 0]])


def test_samples_may_have_their_own_times(example):
    u0, grid, params, truth = example
    t = torch.tensor([[0.1, 0.2], [0.5, 0.9], [1.0, 0.0]], dtype=torch.float64)
    expected = torch.stack([truth[0, [1, 2]], truth[1, [5, 9]], truth[2, [10, 0]]])
    torch.testing.assert_close(Rollout(Decay(), 10)(u0, grid, t, params), expected)


def test_interpolation_between_frames_is_linear(example):
    u0, grid, params, truth = example
    model = TimeInterpolated(Rollout(Decay(), 10))
    t = torch.tensor([0.1, 0.125, 1.0], dtype=torch.float64)
    expected = torch.stack([truth[:, 1], 0.75 * truth[:, 1] + 0.25 * truth[:, 2], truth[:, 10]], dim=1)
    torch.testing.assert_close(model(u0, grid, t, params), expected)
    torch.testing.assert_close(model(u0, grid, t.expand(3, -1), params), expected)


def test_between_frames_a_model_takes_the_grids_that_it_takes_on_them():
    for name, uneven in (("fno", False), ("oformer", True)):
        model = vcnef.build(name, ndim=1, channels=1, width=8)
        assert TimeInterpolated(model).uneven == model.uneven == uneven


class Growth(Stepper):
    """Each step multiplies by 1e9, so single precision has four frames after 100, and the fifth is infinite."""

    ndim, channels, params = 1, 1, 0

    def forward(self, u, grid, params=None):
        return 1e9 * u


@pytest.mark.parametrize("rounding", [-1e-7, 0.0, 1e-7])
def test_interpolation_knows_nothing_of_later_frames(rounding):
    stepped = Rollout(Growth(), 4)
    u0, grid = torch.full((2, 4, 1), 100.0), torch.rand(4, 1)
    t = torch.tensor([0.25, 0.5, 0.75, 1.0]) * (1 + rounding)
    expected = stepped(u0, grid, t)
    assert expected.isfinite().all()
    torch.testing.assert_close(TimeInterpolated(stepped)(u0, grid, t), expected)
    # The frame before the one that is infinite is as it was.
    longer = torch.cat([t, torch.tensor([1.25])])
    torch.testing.assert_close(TimeInterpolated(stepped)(u0, grid, longer)[:, :4], expected)


def test_a_rollout_that_grows_beyond_all_bounds_is_computed_once(monkeypatch):
    model, calls = Rollout(Growth(), 8), []
    step = Growth.forward
    monkeypatch.setattr(Growth, "forward", lambda self, *inputs: calls.append(1) or step(self, *inputs))
    # As on a GPU, where what is too large for half precision is computed again; no stepper has any.
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    answer = predict(model, torch.full((2, 4, 1), 100.0), torch.rand(4, 1), torch.tensor([0.5, 1.0]))
    assert not answer.isfinite().all()
    assert len(calls) == 8


def test_interpolation_takes_no_step_too_many(example, monkeypatch):
    u0, grid, params, _ = example
    model, calls = TimeInterpolated(Rollout(Decay(), 10)), []
    step = Decay.forward
    monkeypatch.setattr(Decay, "forward", lambda self, *inputs: calls.append(1) or step(self, *inputs))
    for t, steps in ((0.3, 3), (0.31, 4), (1.0, 10), (0.0, 0)):
        calls.clear()
        model(u0, grid, torch.tensor([0.0, t], dtype=torch.float64), params)
        assert len(calls) == steps
    assert model(u0, grid, torch.zeros(0, dtype=torch.float64), params).shape == (3, 0, 8, 1)


def test_prediction_in_chunks_takes_every_step_once(example, monkeypatch):
    u0, grid, params, truth = example
    model, calls = Rollout(Decay(), 10), []
    step = Decay.forward
    monkeypatch.setattr(Decay, "forward", lambda self, u, *rest: calls.append(len(u)) or step(self, u, *rest))
    t = torch.arange(1, 11, dtype=torch.float64) / 10
    torch.testing.assert_close(predict(model, u0, grid, t, params, points_per_chunk=1), truth[:, 1:])
    assert sum(calls) == 3 * 10


class Alive(TorchDispatchMode):
    """The most bytes in tensors that were made and not yet freed."""

    def __init__(self):
        super().__init__()
        self.made, self.most = [], 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        made = operation(*args, **(kwargs or {}))
        self.made += [ref(each) for each in tree_leaves(made) if isinstance(each, torch.Tensor)]
        self.made = [each for each in self.made if each() is not None]
        held = {each().untyped_storage().data_ptr(): each().untyped_storage().nbytes() for each in self.made}
        self.most = max(self.most, sum(held.values()))
        return made


def test_prediction_in_chunks_holds_the_answer_once(example):
    _, grid, _, _ = example
    u0, params, t = torch.randn(30, 8, 1).double(), torch.rand(30, 1).double(), torch.arange(1, 11).double() / 10
    with Alive() as alive:
        u = predict(Rollout(Decay(), 10), u0, grid, t, params, points_per_chunk=8)
    assert u.nbytes <= alive.most < 1.3 * u.nbytes


class Pair(Stepper):
    """Two frames at once; notes of how many samples."""

    ndim, channels, params, frames = 1, 1, 1, 2

    def __init__(self):
        super().__init__()
        self.asked = []

    def advance(self, u, grid, params, t):
        self.asked.append(len(u))
        return torch.stack([u, u], dim=1)


@pytest.mark.parametrize("wrap", [lambda model: model, TimeInterpolated])
def test_one_step_is_in_flight_at_a_time(example, wrap):
    """Samples fill a chunk with what a step gives, however many steps there are."""
    u0, grid, params, _ = example
    model = Rollout(Pair(), 10)
    t = torch.arange(1, 11, dtype=torch.float64) / 10
    predict(wrap(model), u0, grid, t, params, points_per_chunk=2 * 8 * 2)
    assert model.stepper.asked == 5 * [2] + 5 * [1]


def test_times_off_the_clock_are_refused(example):
    u0, grid, params, _ = example
    with pytest.raises(ValueError, match=r"Time 0.125 of the horizon is no whole step .* takes 10 to the horizon"):
        Rollout(Decay(), 10)(u0, grid, torch.tensor([0.1, 0.125], dtype=torch.float64), params)
    with pytest.raises(ValueError, match="steps is 0; expected at least 1"):
        Rollout(Decay(), 0)


@pytest.mark.parametrize("wrap", [lambda model: model, TimeInterpolated])
def test_times_before_the_initial_state_are_refused(example, wrap):
    u0, grid, params, _ = example
    with pytest.raises(ValueError, match=r"Time -0\.2 of the horizon is before the initial state, .* 0 or more\."):
        wrap(Rollout(Decay(), 10))(u0, grid, torch.tensor([0.0, -0.2], dtype=torch.float64), params)


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ({"ndim": 1, "channels": 1}, 549_569),
        ({"ndim": 1, "channels": 3}, 549_955),
        ({"ndim": 1, "channels": 1, "params": 1}, 549_633),
        ({"ndim": 2, "channels": 4}, 9_453_716),
        ({"ndim": 3, "channels": 5}, 22_123_753 - 160),  # the benchmark's model counts norms that it never uses
    ],
)
def test_the_published_counts_of_fno(sizes, count):
    assert sum(p.numel() for p in vcnef.build("fno", **sizes).parameters()) == count


def test_fno_refuses_what_it_cannot_be(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match="ndim is 4; expected 1, 2 or 3"):
        vcnef.build("fno", ndim=4, channels=1)
    with pytest.raises(ValueError, match=r"no option 'mode'. Did you mean 'modes'"):
        vcnef.build("fno", ndim=1, channels=1, mode=3)


class Counting(Stepper):
    """The number of the frame, which it learns from the time; three frames at once."""

    ndim, channels, params, frames = 1, 1, 0, 3

    def advance(self, u, grid, params, t):
        first = (t * 8).round()[:, None, None, None]
        return (first + torch.arange(1.0, 4.0)[:, None, None]).expand(-1, -1, *u.shape[1:])


def test_frames_that_come_in_bundles_are_on_the_same_clock():
    model = Rollout(Counting(), steps=8)
    u = model(torch.zeros(2, 5, 1), torch.rand(5, 1), torch.tensor([0.125, 0.5, 1.0]))
    torch.testing.assert_close(u[0, :, 0, 0], torch.tensor([1.0, 4.0, 8.0]))


def test_an_fno_without_padding_knows_no_edge_and_can_give_the_change():
    torch.manual_seed(0)
    model = vcnef.build("fno", ndim=1, channels=1, width=4, modes=3, residual=True).stepper
    u = torch.randn(2, 16, 1)
    flat = torch.zeros(16, 1)
    torch.testing.assert_close(model(u.roll(5, 1), flat), model(u, flat).roll(5, 1))
    padded = vcnef.build("fno", ndim=1, channels=1, width=4, modes=3, padding=2).stepper
    padded.load_state_dict(model.state_dict())
    assert not torch.allclose(padded(u.roll(5, 1), flat), padded(u, flat).roll(5, 1))
    for weight in model.project[2].parameters():
        torch.nn.init.zeros_(weight)
    assert torch.equal(model(u, flat), u)
    assert model.suits((32,), (16,))
    assert not padded.suits((32,), (16,))


@pytest.mark.parametrize(
    ("ndim", "options", "zeros"),
    [
        (1, {}, (0,)),
        (3, {}, (0, 0, 0)),
        (1, {"padding": True}, (2,)),
        (3, {"padding": True}, (0, 0, 6)),
        (3, {"padding": (0, 0, 6)}, (0, 0, 6)),
        (2, {"padding": 2}, (2, 2)),
        (2, {"padding": False}, (0, 0)),
        (2, {"periodic": False}, (2, 2)),
        (2, {"periodic": (True, False)}, (0, 2)),
        (2, {"periodic": False, "padding": 0}, (0, 0)),
    ],
)
def test_which_zeros_an_fno_adds(ndim, options, zeros):
    assert vcnef.build("fno", ndim=ndim, channels=1, width=2, modes=1, **options).stepper.padding == zeros


@pytest.mark.parametrize("padding", [-1, (1, 2, 3)])
def test_zeros_that_make_no_sense(padding):
    with pytest.raises(ValueError, match=r"padding is .*; expected points from 0 on, one number or 2"):
        vcnef.build("fno", ndim=2, channels=1, width=2, modes=1, padding=padding)
