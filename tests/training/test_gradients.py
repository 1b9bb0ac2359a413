"""Gradients in one piece of memory, and how they are clipped."""

import pytest
import torch
from torch import nn

from vcnef.training.gradients import clip, in_one_piece


def weights_with_gradients():
    """One without a gradient, and one of complex numbers after an odd number of others."""
    torch.manual_seed(0)
    weights = [nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(2, 5)), nn.Parameter(torch.randn(()))]
    weights.append(nn.Parameter(torch.randn(4, 2, dtype=torch.complex64)))
    for weight in (weights[0], weights[1], weights[3]):
        weight.grad = torch.randn_like(weight)
    return weights


def test_each_gradient_is_part_of_one_vector():
    weights = weights_with_gradients()
    before = [None if each.grad is None else each.grad.clone() for each in weights]
    whole = in_one_piece(weights)
    assert whole.shape == (3 + 10 + 16,)
    whole *= 2
    assert weights[2].grad is None
    for weight, gradient in zip(weights, before, strict=True):
        assert gradient is None or torch.equal(weight.grad, 2 * gradient)


def test_a_vector_that_is_there_is_found_again():
    weights = weights_with_gradients()
    whole = in_one_piece(weights)
    again, part = in_one_piece(weights), in_one_piece(weights[:2])
    assert again.data_ptr() == whole.data_ptr()
    assert torch.equal(again, whole)
    assert (part.data_ptr(), part.shape) == (whole[16:].data_ptr(), (13,))
    # Those that do not lie side by side are another vector.
    apart = in_one_piece([weights[3], weights[1]])
    assert apart.data_ptr() != whole.data_ptr()
    assert torch.equal(apart, torch.cat([whole[:16], whole[19:]]))


@pytest.mark.parametrize("largest", [0.5, 100.0])
def test_they_are_clipped_as_torch_does_it(largest):
    mine, theirs = weights_with_gradients(), weights_with_gradients()
    clip(mine, largest)
    norm = nn.utils.clip_grad_norm_(theirs, largest)
    assert (norm > largest) == (largest == 0.5)
    for one, other in zip(mine, theirs, strict=True):
        assert one.grad is other.grad is None or torch.allclose(one.grad, other.grad)


def test_what_is_not_finite_stays_so():
    weights = weights_with_gradients()
    weights[0].grad[1] = torch.nan
    clip(weights, 1.0)
    assert all(weight.grad is None or weight.grad.isnan().all() for weight in weights)


def test_without_gradients_there_is_nothing_to_clip():
    weight = nn.Parameter(torch.ones(3))
    clip([weight], 1.0)
    assert weight.grad is None
