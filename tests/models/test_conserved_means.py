"""Means over the domain stay those of the initial state, by whatever way the answer is computed."""

import pytest
import torch

import vcnef
from vcnef.accelerate import predict
from vcnef.accelerate.engine import inference_engine, training_engine
from vcnef.grid import cell_centres

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 2}


def build(ndim, **options):
    torch.manual_seed(0)
    model = vcnef.build("vcnef", ndim=ndim, channels=3, params=1, **(TINY | options))
    return model.double().eval()


def question(ndim, sides):
    grid = cell_centres(((0.0, 1.0),) * ndim, sides, dtype=torch.float64)
    u0 = 2 + torch.randn(2, *sides, 3, dtype=torch.float64)
    return u0, grid, torch.rand(4, dtype=torch.float64), torch.rand(2, 1, dtype=torch.float64)


def drift(u, u0):
    """Of each channel, how far its mean leaves that of the initial state at most."""
    return (u.flatten(2, -2).mean(2) - u0.flatten(1, -2).mean(1)[:, None]).abs().amax(dim=(0, 1))


@pytest.mark.parametrize("start", [{}, {"change": True}, {"rate": True}])
@pytest.mark.parametrize(("ndim", "patches"), [(1, ()), (1, (4,)), (2, (4,)), (3, (4,))])
def test_means_that_are_kept_stay_and_others_do_not(ndim, patches, start):
    model, plain = (build(ndim, patches=patches, conserved=kept, **start) for kept in ((0, 2), ()))
    plain.load_state_dict(model.state_dict())
    u0, grid, t, params = question(ndim, (8,) * ndim)
    u, free = model(u0, grid, t, params), plain(u0, grid, t, params)
    assert drift(u, u0)[[0, 2]].max() < 1e-12
    assert drift(free, u0).min() > 1e-3
    # A constant is added to each field, and nothing to the channel that is left out.
    assert torch.equal(u[..., 1], free[..., 1])
    added = (u - free).flatten(2, -2)
    torch.testing.assert_close(added, added[:, :, :1].expand_as(added))


def test_means_are_those_of_the_whole_fine_grid():
    """Interleaved grids are samples of their own, whose means may go elsewhere."""
    model = build(2, patches=(4,), sides=(8, 8), rate=True, conserved=(0, 1, 2))
    u0, grid, t, params = question(2, (16, 24))
    u = model(u0, grid, t, params)
    assert drift(u, u0).max() < 1e-12
    assert drift(u[:, :, ::2, ::3], u0[:, ::2, ::3]).min() > 1e-6
    own = torch.stack((t, t / 2))
    for times in (t, own):
        expected = model(u0, grid, times, params)
        torch.testing.assert_close(predict(model, u0, grid, times, params, points_per_chunk=100), expected)


@pytest.mark.parametrize("options", [{"patches": ()}, {"patches": (4,), "sides": (8,)}])
def test_the_fast_engines_keep_them_too(options):
    model, (u0, grid, t, params) = build(1, rate=True, conserved=(1,), **options), question(1, (16,))
    expected = model(u0, grid, t, params)
    engine = inference_engine(model, torch.device("cpu"), "fp32")
    assert not any(how.startswith("reference") for how in engine.plan.values())
    torch.testing.assert_close(predict(model, u0, grid, t, params), expected)
    trained = training_engine(model, torch.device("cpu"), None, compiled=False).forward(u0, grid, t, params)
    torch.testing.assert_close(trained, expected)
    assert drift(expected, u0)[1] < 1e-12


def test_gradients_run_through_the_projection():
    model, (u0, grid, t, params) = build(1, patches=(), conserved=(0,)), question(1, (8,))
    u0.requires_grad_()
    mean = model(u0, grid, t, params)[:, 2, :, 0].mean()
    (slope,) = torch.autograd.grad(mean, u0)
    torch.testing.assert_close(slope[..., 0], torch.full_like(slope[..., 0], 1 / 16))
    assert slope[..., 1:].abs().max() < 1e-12


def test_channels_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match=r"conserved is \(3,\); expected numbers of channels, from 0 to 2"):
        build(1, conserved=(3,))
