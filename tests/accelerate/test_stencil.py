"""Stencils as convolutions give what the sum of shifted copies gives."""

import pytest
import torch

from vcnef.accelerate.stencil import convolve_tokens
from vcnef.models.vcnef_beyond import Stencil


@pytest.mark.parametrize("sides", [(8,), (16,), (11,), (5,), (6, 4), (12, 8), (9, 4), (4, 3, 4), (8, 6, 8), (4, 5, 4)])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("patches", [(), (2,)])
def test_a_convolution_is_the_sum_of_shifted_copies(sides, periodic, patches):
    """On the grid it was made for and on others, with gradients."""
    trained = {1: (8,), 2: (6, 4), 3: (4, 3, 4)}[len(sides)]
    stencil = Stencil(3, 2, trained, patches, periodic=periodic)
    torch.nn.init.normal_(stencil.weight)
    tokens = 1
    for side in sides:
        tokens *= -(-side // 2) if patches else side
    z = torch.randn(2, 2, tokens, 3, requires_grad=True)

    def answer(function):
        out = function(z, sides)
        return [out, *torch.autograd.grad(out.square().mean(), (z, stencil.weight))]

    torch.testing.assert_close(answer(lambda *given: convolve_tokens(stencil, *given)), answer(stencil))


def test_tokens_of_another_type_are_left_to_the_sum():
    stencil = Stencil(3, 1, (8,), periodic=True)
    torch.nn.init.normal_(stencil.weight)
    z = torch.randn(1, 8, 3).bfloat16()
    assert torch.equal(convolve_tokens(stencil, z, (8,)), stencil(z, (8,)))
