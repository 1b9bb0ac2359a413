"""The loss on windows: true and pushed starts, and a flow map that learns from them."""

import math

import pytest
import torch
from torch import nn

import vcnef
from vcnef.data import Batch, Batches, Queries, Scaling
from vcnef.models.interface import TrajectoryModel
from vcnef.training.losses import mean_square
from vcnef.training.windows import Windows


class Growth(TrajectoryModel):
    """u₀ e^{r t}; notes the states and times that it is asked about."""

    ndim, channels, params = 1, 1, 0

    def __init__(self, rate):
        super().__init__()
        self.rate, self.asked = nn.Parameter(torch.tensor(rate)), []

    def encode(self, u0, grid, params=None):
        return u0

    def query(self, latent, t):
        self.asked.append((latent.detach(), t, torch.is_grad_enabled()))
        factor = torch.exp(self.rate * (t if t.ndim == 2 else t.unsqueeze(0)))
        return latent.unsqueeze(1) * factor[:, :, None, None]


def growing(samples=8, frames=11, times=None):
    t = torch.linspace(0, 1, frames) if times is None else torch.tensor(times)
    u0 = 1 + torch.rand(samples, 1, 4, 1)
    return vcnef.from_arrays((u0 * torch.exp(t)[:, None, None]).numpy(), t=t.numpy())


def batch_of(data, *, window, pushes, chain=1):
    queries = Queries(window=window, pushes=pushes, chain=chain)
    return next(iter(Batches(data, 64, queries=queries, scaling=Scaling.identity(data.problem, 1.0))))


@pytest.mark.parametrize("pushes", [0, 1, 3])
@pytest.mark.parametrize("times", [None, [0.0, 0.1, 0.3, 0.35, 0.6, 0.7, 1.0]])
def test_the_exact_flow_map_has_no_loss_from_whatever_start(pushes, times):
    batch = batch_of(growing(64, times=times), window=2, pushes=pushes)
    loss = Windows(mean_square, 2, pushes, even=times is None)
    assert loss(Growth(1.0), batch, 0.5).item() < 1e-10
    assert loss(Growth(0.5), batch, 0.5).item() > 1e-4


def test_a_batch_of_one_trajectory_is_a_batch():
    batch = batch_of(growing(1), window=2, pushes=1)
    assert batch.t.ndim == 1
    assert Windows(mean_square, 2, 1, even=True)(Growth(1.0), batch, 0.5).item() < 1e-10


def test_starts_are_pushed_after_the_warm_up_and_without_a_gradient():
    batch, model = batch_of(growing(64), window=2, pushes=1), Growth(0.0)
    loss = Windows(mean_square, 2, 1, even=True)
    true_starts = batch.u[:, 1]
    loss(model, batch, 0.05)
    ((state, times, has_gradient),) = model.asked
    assert has_gradient
    assert times.shape == (2,)
    assert torch.equal(state, true_starts)
    loss(model, batch, 0.5)
    assert [has_gradient for _, _, has_gradient in model.asked[1:]] == [False, True]
    assert [len(state) for state, _, _ in model.asked[1:]] == [32, 64]
    pushed = (model.asked[-1][0] != true_starts).flatten(1).any(dim=1)
    assert 0.2 < pushed.float().mean() < 0.8
    # Where the first frame cuts the window before short, the start is a true state.
    cut = batch.t[:, 1] < 0.19
    assert cut.any()
    assert not pushed[cut].any()


@pytest.mark.parametrize(("samples", "pushes"), [(1, 1), (3, 1), (3, 2), (9, 2)])
def test_equal_parts_of_small_batches_come_through_each_number_of_windows(samples, pushes):
    """Of a model that doubles in a window, where the data are at rest: a start says how often it was pushed."""
    torch.manual_seed(0)
    frames = torch.ones(samples, pushes + 2, 4, 1)
    t = torch.arange(1, pushes + 2).float().expand(samples, -1)
    batch = Batch(frames[:, 0], torch.rand(4, 1), t, torch.zeros(samples, 0), frames[:, 1:])
    loss, model = Windows(mean_square, 1, pushes, even=True), Growth(math.log(2.0))
    for _ in range(400):
        loss(model, batch, 0.5)
    starts = torch.cat([state[:, 0, 0] for state, _, has_gradient in model.asked if has_gradient])
    counts = starts.log2().round().long().bincount() / len(starts)
    torch.testing.assert_close(counts, torch.full((pushes + 1,), 1 / (pushes + 1)), rtol=0.0, atol=0.1)


@pytest.mark.parametrize("times", [None, [0.0, 0.1, 0.3, 0.35, 0.6, 0.7, 1.0]])
def test_windows_are_chained_in_the_last_part_of_a_run(times):
    even = times is None
    batch = batch_of(growing(16, times=times), window=2, pushes=1, chain=2)
    loss = Windows(mean_square, 2, 1, even, chain=2)
    assert loss(Growth(1.0), batch, 0.9).item() < 1e-10
    assert loss.phases == (0.1, 0.6)
    asked = {}
    for progress in (0.05, 0.5, 0.9):
        model = Growth(0.0)
        loss(model, batch, progress)
        asked[progress] = [has_gradient for _, _, has_gradient in model.asked]
    assert asked == {0.05: [True], 0.5: [False, True], 0.9: [False, True, True]}
    # The second window begins with what the first one gave, which is at rest here.
    (first, _, _), (second, _, _) = model.asked[1:]
    assert torch.equal(first, second)


def test_gradients_pass_through_a_chain():
    """Of û_j = u₀ (1 + r / 10)^j at r = 0: ∂û₂/∂r is twice ∂û₁/∂r."""
    batch, model = batch_of(growing(64), window=1, pushes=0, chain=2), Growth(0.0)
    Windows(mean_square, 1, 0, even=True, chain=2)(model, batch, 0.9).backward()
    u0, u = batch.u0, batch.u
    slope = ((u0 - u[:, 0]) * 0.1 * u0 + (u0 - u[:, 1]) * 0.2 * u0).mean()
    assert float(model.rate.grad) == pytest.approx(float(slope), rel=1e-4)


@pytest.mark.parametrize("times", [None, [0.0, 0.1, 0.3, 0.35, 0.6, 0.7, 1.0]])
def test_a_window_in_two_parts_is_the_whole_of_a_flow(times):
    even = times is None
    batch = batch_of(growing(64, times=times), window=2, pushes=1)
    model = Growth(1.0)
    assert Windows(mean_square, 2, 1, even, semigroup=1.0)(model, batch, 0.5).item() < 1e-10
    whole, part, rest = (torch.atleast_1d(times[..., -1])[:16] for _, times, _ in model.asked[-3:])
    assert (part > 0).all()
    torch.testing.assert_close(part + rest, whole)
    assert [len(state) for state, _, _ in model.asked[-3:]] == [64, 16, 16]

    class Jump(Growth):
        """Right at the ends of windows, and at rest between them."""

        def query(self, latent, t):
            return super().query(latent, torch.where(t > 0.99 * t.max(), t, 0.0) if t.shape[-1] > 1 else t * (t > 0.19))

    plain = Windows(mean_square, 2, 1, even=True)
    in_two = Windows(mean_square, 2, 1, even=True, semigroup=1.0)
    batch = batch_of(growing(64), window=2, pushes=1)
    torch.manual_seed(0)
    apart = in_two(Jump(1.0), batch, 0.05)
    torch.manual_seed(0)
    assert apart > plain(Jump(1.0), batch, 0.05) + 1e-3


def test_noise_is_on_the_states_that_are_learnt_from():
    batch, model = batch_of(growing(64), window=2, pushes=1), Growth(1.0)
    Windows(mean_square, 2, 1, even=True, noise=0.3)(model, batch, 0.05)
    ((state, _, _),) = model.asked
    assert (state - batch.u[:, 1]).std().item() == pytest.approx(0.3, rel=0.15)


def test_under_autocasting_the_push_takes_no_weight_from_the_gradient():
    """What is rounded without a gradient would be kept for what follows."""
    model = vcnef.build("vcnef", ndim=1, channels=1, width=16, heads=2, depth=1, modulations=1, patches=(), rate=True)
    batch = batch_of(growing(8), window=2, pushes=1)
    with torch.autocast("cpu", torch.bfloat16):
        loss = Windows(mean_square, 2, 1, even=True)(model, batch, 0.5)
    loss.backward()
    assert not [name for name, weight in model.named_parameters() if weight.grad is None]


@pytest.fixture(scope="module")
def travelling():
    """Waves that travel by four fifths of a turn."""
    t, x = torch.linspace(0, 1, 13), 2 * torch.pi * torch.arange(16) / 16
    phase, size = 6.3 * torch.rand(40, 1, 1), 0.5 + torch.rand(40, 1, 1)
    return vcnef.from_arrays((size * torch.sin(x - 5 * t[:, None] + phase))[..., None].numpy(), t=t.numpy())


TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": [], "modes": 3, "local": 0, "pace": 1}
FEW = {"batch": 16, "window": 0.25, "rate": True}
LEARNT = {"learning_rate": 0.01, "ema": None}


def test_a_flow_map_learns_composes_and_is_kept(travelling, tmp_path):
    run = vcnef.fit(travelling, preset="own/windows1d", out=tmp_path / "run", epochs=15, **LEARNT, **FEW, **TINY)
    assert run.best < 0.1
    surrogate = vcnef.load(tmp_path / "run")
    assert (surrogate.window, surrogate.horizon) == (0.25, 1.0)
    assert surrogate.provenance["window"] == {"frames": 3, "why": "0.25 was asked for"}
    u0 = travelling.u[:3, 0]
    together = surrogate.predict(u0, t=[0.1, 0.5, 1.0])
    first = torch.from_numpy(surrogate.predict(u0, t=[0.5]).values)[:, 0]
    second = surrogate.predict(first, t=[0.5])
    torch.testing.assert_close(torch.from_numpy(second.values)[:, 0], torch.from_numpy(together.values)[:, 2])
    assert vcnef.evaluate(surrogate, travelling).result.frames == 13


def test_a_run_on_windows_goes_on_bit_by_bit(travelling, tmp_path):
    more = {"pushes": 2, "chain": 2, "semigroup": 0.1, "input_noise": 0.01}
    options = {"preset": "own/windows1d", **more, **FEW, **TINY}
    whole = vcnef.fit(travelling, out=tmp_path / "whole", epochs=4, **options)
    vcnef.fit(travelling, out=tmp_path / "parts", epochs=4, **options)
    again = vcnef.fit(travelling, out=tmp_path / "parts", epochs=4, resume=True, **options)
    assert vcnef.load(tmp_path / "parts").provenance["semigroup"] == 0.1
    for name, weight in whole.surrogate.model.state_dict().items():
        assert torch.equal(weight, again.surrogate.model.state_dict()[name]), name


def test_data_in_3d_are_learnt_in_windows(tmp_path):
    """A wave along the diagonal that travels and fades, which is exact."""
    t, line = torch.linspace(0, 1, 9), torch.arange(8) / 8
    x, y, z = torch.meshgrid(line, line, line, indexing="ij")
    phase = torch.rand(8, 1, 1, 1, 1)
    moments = t.view(-1, 1, 1, 1)
    u = torch.exp(-0.5 * moments) * torch.sin(2 * torch.pi * (x + y + z - 0.8 * moments + phase))
    data = vcnef.from_arrays(u[..., None].numpy(), t=t.numpy(), x=(line.numpy(),) * 3)
    tiny = {"width": 8, "heads": 2, "modulations": 1, "modes": 1, "patches": [2]}
    few = {"epochs": 12, "validate_every": 12, "batch": 8, "learning_rate": 0.05, "ema": None}
    run = vcnef.fit(data, out=tmp_path / "run", **few, **tiny)
    surrogate = vcnef.load(tmp_path / "run")
    assert surrogate.window == 0.125
    at_rest = float((u[:, 1:] - u[:, :1]).norm() / u[:, 1:].norm())
    assert run.best < 0.4 * at_rest


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "fno", "window": 0.25}, "'fno' goes from frame to frame by itself. Leave window out."),
        ({"window": 0.26}, "window is 0.26; expected a multiple of 0.0833333, the time between frames"),
        ({"window": -1.0}, "window is -1; expected a time above 0, 'auto' or 'direct'"),
        ({"window": 0.25, "pushes": -1}, "pushes is -1; expected 0 or more windows"),
        ({"window": 0.25, "chain": 0}, "chain is 0; expected 1 or more windows"),
        ({"window": 0.25, "chain": 5}, "a chain of 5 windows needs at least 16"),
        ({"window": 0.25, "unroll": "curriculum"}, "'curriculum' is about whole trajectories. Set data.window=direct"),
        (
            {"window": "auto", "own_time": True},
            "window is auto, but own_time is about whole trajectories",
        ),
        ({"window": 0.25, "times": 2, "passes": 1}, "window is 0.25, but times, passes is about whole trajectories"),
    ],
)
def test_what_no_window_can_be_is_refused(given, said, travelling, tmp_path):
    with pytest.raises(ValueError, match=said):
        vcnef.fit(travelling, out=tmp_path / "run", epochs=1, **given)
