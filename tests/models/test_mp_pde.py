import pytest
import torch

import vcnef
from vcnef.grid import cell_centres
from vcnef.models import mp_pde
from vcnef.models.mp_pde import OFFSETS, MessagePassing


def make(channels=1, params=0, **options):
    sizes = {"width": 16, "steps": 40} | options
    return vcnef.build("mp_pde", ndim=1, channels=channels, params=params, **sizes).double()


def world(points=48, batch=2, channels=1):
    grid = cell_centres([(0.0, 2.0)], points, dtype=torch.float64)
    return torch.randn(batch, points, channels, dtype=torch.float64), grid, torch.full((batch,), 0.25).double()


def test_the_published_count():
    model = vcnef.build("mp_pde", ndim=1, channels=1, params=1)
    assert sum(p.numel() for p in model.parameters()) == 614_929
    first, _, last = model.stepper.decoder
    assert (first.kernel_size, first.stride, last.kernel_size) == ((18,), (6,), (15,))


@pytest.mark.parametrize("periodic", [True, False])
def test_a_layer_is_the_formula_edge_by_edge(periodic):
    points, width, channels = 12, 16, 2
    stepper = make(channels, periodic=periodic).stepper
    layer = MessagePassing(width, channels + 1, 1).double()
    nodes, gaps = torch.randn(1, points, width).double(), torch.randn(6, 1, points, channels + 1).double()
    theta = torch.full((1, points, 1), 0.3).double()

    updated = []
    for i in range(points):
        messages = []
        for offset, gap in zip(OFFSETS, gaps[:, 0, i], strict=True):
            j = (i + offset) % points
            if periodic or i + offset == j:
                inputs = torch.cat([nodes[0, i], theta[0, i], nodes[0, j], gap])
                messages.append(layer.message(layer.edge(inputs)))
        mean = torch.stack(messages).mean(0)
        updated.append(nodes[0, i] + layer.update(torch.cat([nodes[0, i], mean, theta[0, i]])))
    plain = torch.stack(updated)
    expected = (plain - plain.mean(0)) / (plain.var(0, correction=0) + 1e-5).sqrt()
    found = layer(nodes, gaps, theta, stepper._shares(nodes))
    torch.testing.assert_close(found[0], expected)


@pytest.mark.parametrize("channels", [1, 3])
def test_it_commutes_with_shifts_on_a_ring(channels):
    """Exactly so without the positions as inputs; with them, as published, only if their weights are zero."""
    u, grid, t = world(channels=channels)
    rolled = u.roll(11, dims=1)
    free = make(channels, absolute=False).stepper
    torch.testing.assert_close(free.advance(rolled, grid, None, t), free.advance(u, grid, None, t).roll(11, dims=2))

    published = make(channels).stepper
    with torch.no_grad():
        moved, expected = published.advance(rolled, grid, None, t), published.advance(u, grid, None, t).roll(11, dims=2)
        assert (moved - expected).abs().max() > 1e-6
        published.encoder[0].weight[:, channels] = 0.0
        moved, expected = published.advance(rolled, grid, None, t), published.advance(u, grid, None, t).roll(11, dims=2)
    torch.testing.assert_close(moved, expected)


@pytest.mark.parametrize("periodic", [True, False])
def test_news_travel_eighteen_nodes_per_call(periodic, monkeypatch):
    monkeypatch.setattr(mp_pde, "normalise", lambda nodes: nodes)  # the norm knows of all nodes
    model = make(periodic=periodic)
    u, grid, t = world(batch=1)
    u.requires_grad_()
    model.stepper.advance(u, grid, None, t)[0, :, 5].sum().backward()
    felt = set(u.grad[0, :, 0].nonzero().flatten().tolist())
    reach = range(5 - 18, 5 + 18 + 1)
    assert felt == {node % 48 for node in reach if periodic or node >= 0}


def test_without_a_ring_the_ends_do_not_meet():
    model = make(periodic=False, depth=1, absolute=False)
    grid, t = cell_centres([(0.0, 1.0)], 12, dtype=torch.float64), torch.zeros(1).double()
    u = torch.zeros(1, 12, 1, dtype=torch.float64)
    # On a constant field only the ends differ from each other: their neighbours lie on one side.
    found = model.stepper.advance(u, grid, None, t)[0, 0, :, 0]
    assert (found[3:9] - found[3]).abs().max() < 1e-12
    assert (found[:3] - found[3]).abs().min() > 1e-9


def test_frames_are_straight_lines_in_time_of_their_own_slopes():
    model = make(params=1)
    u, grid, t = world()
    params = torch.rand(2, 1).double()
    for weight in model.stepper.decoder.parameters():
        torch.nn.init.zeros_(weight)
    model.stepper.decoder[2].bias.data.fill_(3.0)
    frames = model.stepper.advance(u, grid, params, t)
    expected = u[:, None] + 3.0 * torch.arange(1, 6).double()[:, None, None] / 40
    torch.testing.assert_close(frames, expected)


def test_time_and_parameters_matter():
    model, (u, grid, t) = make(params=1), world()
    params = torch.rand(2, 1).double()
    frames = model.stepper.advance(u, grid, params, t)
    assert not torch.equal(model.stepper.advance(u, grid, params, t + 0.5), frames)
    assert not torch.equal(model.stepper.advance(u, grid, params + 0.5, t), frames)


@pytest.mark.parametrize("steps", [40, 8])
def test_bundles_are_on_the_clock(steps):
    """Every frame up to the horizon, which may end within a bundle."""
    model, (u, grid, t) = make(steps=steps, depth=2), world()
    frames, state = [u[:, None]], u
    for start in range(0, steps, 5):
        frames.append(model.stepper(state, grid, None, torch.full_like(t, start / steps)))
        state = frames[-1][:, -1]
    clock = torch.arange(steps + 1).double() / steps
    torch.testing.assert_close(model(u, grid, clock), torch.cat(frames, dim=1)[:, : steps + 1])


def test_norms_are_in_single_precision():
    nodes = (10 + torch.randn(2, 32, 4)).bfloat16()
    normed = mp_pde.normalise(nodes)
    assert normed.dtype == torch.float32
    torch.testing.assert_close(normed.mean(1), torch.zeros(2, 4), rtol=0, atol=1e-4)


def test_it_refuses_what_it_cannot_be():
    with pytest.raises(ValueError, match="ndim is 2; expected 1, since MP-PDE is for 1D only"):
        vcnef.build("mp_pde", ndim=2, channels=1)
    with pytest.raises(ValueError, match=r"width is 4, which leaves 2 values for 5 frames. Choose a wider one"):
        vcnef.build("mp_pde", ndim=1, channels=1, width=4)
