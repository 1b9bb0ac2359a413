"""Our Muon: what its update is, that stacking changes nothing, and where the rate may live."""

import pytest
import torch
from torch import nn

from vcnef.training.muon import Muon, orthogonalise

SHAPES = [(24, 24), (24, 96), (96, 24), (24, 24)]
OPTIONS = {"lr": 0.02, "weight_decay": 0.1}


def make_weights(shapes=SHAPES):
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def take_steps(weights, *optimisers, steps=4):
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        for weight in weights:
            weight.grad = torch.randn(weight.shape, generator=generator)
        for optimiser in optimisers:
            optimiser.step()
    return [weight.detach().clone() for weight in weights]


def test_orthogonal_matrices_come_out():
    found = orthogonalise(torch.randn(3, 16, 40))
    singular = torch.linalg.svdvals(found)
    assert 0.6 < singular.min() < singular.max() < 1.3
    u, _, v = torch.linalg.svd(torch.randn(16, 40), full_matrices=False)
    scaled = u @ torch.diag(torch.linspace(0.5, 2.0, 16)) @ v
    # The same singular vectors as before, all about equally long.
    aligned = u.mT @ orthogonalise(scaled[None])[0] @ v.mT
    torch.testing.assert_close(aligned, torch.diag(aligned.diagonal()), rtol=0, atol=1e-3)


def test_a_gradient_of_zero_moves_nothing():
    [weight] = make_weights([(16, 16)])
    before, weight.grad = weight.detach().clone(), torch.zeros(16, 16)
    Muon([{"params": [weight]}], lr=0.1).step()
    assert torch.equal(weight, before)


def test_updates_are_as_large_as_those_of_adamw():
    weights = make_weights([(64, 256), (128, 128)])
    before = [weight.detach().clone() for weight in weights]
    after = take_steps(weights, Muon([{"params": weights}], lr=1.0), steps=1)
    for old, new in zip(before, after, strict=True):
        assert (new - old).square().mean().sqrt().item() == pytest.approx(0.2, rel=0.25)


def test_stacked_matrices_move_as_each_would_alone():
    together, apart = make_weights(), make_weights()
    joint = take_steps(together, Muon([{"params": together}], **OPTIONS))
    alone = take_steps(apart, *(Muon([{"params": [weight]}], **OPTIONS) for weight in apart))
    for mine, other in zip(joint, alone, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


def test_it_is_torchs_own_up_to_rounding():
    theirs = pytest.importorskip("torch.optim").__dict__.get("Muon")
    if theirs is None:
        pytest.skip("this torch has no Muon")
    ours, reference = make_weights(), make_weights()
    start = make_weights()
    mine = take_steps(ours, Muon([{"params": ours}], **OPTIONS))
    expected = take_steps(reference, theirs(reference, **OPTIONS, adjust_lr_fn="match_rms_adamw"))
    for old, new, other in zip(start, mine, expected, strict=True):
        # Theirs multiplies in half precision on a CPU too.
        assert (new - other).norm() < 0.03 * (other - old).norm()


def test_the_rate_may_be_a_tensor():
    plain, live = make_weights(), make_weights()
    expected = take_steps(plain, Muon([{"params": plain}], **OPTIONS))
    optimiser = Muon([{"params": live}], **OPTIONS)
    optimiser.param_groups[0]["lr"] = torch.tensor(OPTIONS["lr"])
    for mine, other in zip(take_steps(live, optimiser), expected, strict=True):
        torch.testing.assert_close(mine, other)


def test_a_restored_state_goes_on_bit_by_bit():
    whole, halves = make_weights(), make_weights()
    expected = take_steps(whole, Muon([{"params": whole}], **OPTIONS), steps=2)
    first = Muon([{"params": halves}], **OPTIONS)
    take_steps(halves, first, steps=1)
    second = Muon([{"params": halves}], **OPTIONS)
    second.load_state_dict(first.state_dict())
    generator = torch.Generator().manual_seed(1)
    for _ in range(2):
        for weight in halves:
            weight.grad = torch.randn(weight.shape, generator=generator)
    second.step()
    assert all(torch.equal(mine, other) for mine, other in zip(halves, expected, strict=True))


def test_weights_without_a_gradient_stay():
    weights = make_weights()
    kept = weights[1].detach().clone()
    optimiser = Muon([{"params": weights}], **OPTIONS)
    for weight in (weights[0], weights[2]):
        weight.grad = torch.ones_like(weight)
    optimiser.step()
    assert torch.equal(weights[1], kept)
    assert len(optimiser.state) == 2


def test_only_matrices_are_taken():
    bias = nn.Parameter(torch.zeros(4))
    with pytest.raises(ValueError, match=r"Muon is for matrices, got a weight of shape \(4,\)\. Give it to AdamW\."):
        Muon([{"params": [bias]}], lr=0.1)


@pytest.mark.gpu
def test_a_step_can_be_recorded_and_replayed():
    plain, live = ([nn.Parameter(each.detach().cuda()) for each in make_weights()] for _ in range(2))
    gradients = [torch.randn_like(weight) for weight in plain]
    for weights in (plain, live):
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient.clone()
    expected, optimiser = Muon([{"params": plain}], **OPTIONS), Muon([{"params": live}], **OPTIONS)
    optimiser.param_groups[0]["lr"] = torch.tensor(OPTIONS["lr"], device="cuda")
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        optimiser.step()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        optimiser.step()
    # Recording is no step.
    for rate in (0.02, 0.01):
        optimiser.param_groups[0]["lr"].fill_(rate)
        graph.replay()
    for rate in (0.02, 0.02, 0.01):
        expected.param_groups[0]["lr"] = rate
        expected.step()
    for mine, other in zip(live, plain, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)
