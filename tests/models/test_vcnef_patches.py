"""Encoders and decoders of VCNeF."""

import torch

from vcnef.grid import cell_centres
from vcnef.models.vcnef import PatchDecoder, PatchEncoder, PointDecoder, PointEncoder


def test_gradients():
    u0 = torch.randn(2, 4, 6, 1, dtype=torch.float64, requires_grad=True)
    grid, params = cell_centres(((0.0, 1.0),) * 2, (4, 6), dtype=torch.float64).unsqueeze(0), torch.rand(2, 1).double()
    patch = PatchEncoder(2, 4, 4, (2, 4), periodic=True).double()
    point = PointEncoder(4, 4).double()
    assert torch.autograd.gradcheck(lambda u: patch(u, grid, params), u0)
    assert torch.autograd.gradcheck(lambda u: point(u, grid, params), u0)

    tokens = torch.randn(1, 2, 4 + 1, 4, dtype=torch.float64, requires_grad=True)
    decoder = PatchDecoder(2, 4, 1, (2, 4), shared_mlp=False).double()
    assert torch.autograd.gradcheck(lambda z: decoder(z, (4, 3)), tokens)
    point_decoder = PointDecoder(4, 2).double()
    assert torch.autograd.gradcheck(lambda z: point_decoder(z, (5,)), tokens)
