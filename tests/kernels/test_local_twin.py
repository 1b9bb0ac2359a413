"""The plain twin of the neighbours' kernel against the module itself."""

from math import prod

import pytest
import torch

from vcnef.kernels import plain
from vcnef.nn.fused import learn_local
from vcnef.nn.local import LocalMix, TokenGrid


@torch.no_grad()
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("points", [2, 10, 14, 20])
def test_twin_is_the_module_on_any_grid(points, periodic):
    torch.manual_seed(0)
    local = LocalMix(16, 2, ((10,),), periodic=periodic)
    torch.nn.init.normal_(local.weight)
    tokens = torch.randn(2, 3, points, 16)
    found = plain.mix_neighbours(tokens, local.stencil(points), torch.float32)
    torch.testing.assert_close(found, local(tokens, (TokenGrid((points,), (points,)),)))
    assert plain.mix_neighbours(tokens, local.stencil(points), torch.float16).dtype == torch.float16


@pytest.mark.parametrize(
    ("sides", "extent", "periodic"), [((10,), (10,), False), ((10,), (9.5,), True), ((4, 6), (4, 6), True)]
)
def test_rows_that_end_or_go_beyond_the_domain_and_planes_train_with_the_plain_code(sides, extent, periodic):
    torch.manual_seed(0)
    local, tokens = LocalMix(16, 1, (sides,), periodic=periodic), torch.randn(2, prod(sides), 16)
    torch.nn.init.normal_(local.weight)
    layout = (TokenGrid(sides, extent),)
    assert torch.equal(learn_local(local, tokens, layout), local(tokens, layout))
