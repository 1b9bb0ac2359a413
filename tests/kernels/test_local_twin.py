"""The plain twin of the neighbours' kernel against the module itself."""

from math import prod

import pytest
import torch

from vcnef.kernels import plain
from vcnef.nn.fused import learn_local
from vcnef.nn.local import LocalMix, TokenGrid


@torch.no_grad()
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("sides", [(2,), (10,), (14,), (20,), (10, 6), (20, 9), (10, 6, 4), (5, 12, 4)])
def test_twin_is_the_module_on_any_grid(sides, periodic):
    torch.manual_seed(0)
    made_for = (10, 6, 4)[: len(sides)]
    local = LocalMix(16, 1 if len(sides) > 1 else 2, (made_for, made_for), periodic=periodic)
    torch.nn.init.normal_(local.weight)
    layout = (TokenGrid(sides, sides), TokenGrid(made_for, made_for))
    tokens = torch.randn(2, 3, prod(sides) + prod(made_for), 16)
    found = plain.mix_neighbours(tokens, local.stencils(layout), torch.float32)
    torch.testing.assert_close(found, local(tokens, layout))
    assert plain.mix_neighbours(tokens, local.stencils(layout), torch.float16).dtype == torch.float16


@pytest.mark.parametrize(
    ("reach", "sides", "extent", "periodic"),
    [(1, (10,), (10,), False), (1, (10,), (9.5,), True), (1, (4, 6), (4, 5.5), True), (4, (4, 6), (4, 6), True)],
)
def test_what_ends_or_goes_beyond_the_domain_or_has_many_taps_trains_with_the_plain_code(
    reach, sides, extent, periodic
):
    torch.manual_seed(0)
    local, tokens = LocalMix(16, reach, (sides,), periodic=periodic), torch.randn(2, prod(sides), 16)
    torch.nn.init.normal_(local.weight)
    layout = (TokenGrid(sides, extent),)
    assert torch.equal(learn_local(local, tokens, layout), local(tokens, layout))
