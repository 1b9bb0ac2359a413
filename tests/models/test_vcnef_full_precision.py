"""Under autocasting, what a network is asked is not rounded before it is encoded."""

import pytest
import torch

import vcnef
from vcnef.grid import cell_centres
from vcnef.models.vcnef_beyond import Clocks

OPTIONS = [(1, {}), (1, {"frequencies": 2}), (2, {"width": 32, "patches": (4,)})]


@pytest.mark.parametrize(("ndim", "options"), OPTIONS)
def test_points_times_and_states_are_encoded_as_without(ndim, options):
    model = vcnef.build("vcnef", ndim=ndim, channels=1, depth=0, modulations=1, **options)
    sides = (256,) if ndim == 1 else (16, 16)
    points = model.features(cell_centres(((0.0, 1.0),) * ndim, sides).unsqueeze(0))
    u0, t = torch.randn(1, *sides, 1), torch.linspace(0.9, 0.91, 7).unsqueeze(0)

    def encode():
        c = model.coordinates(t, points)
        return model.encoder(u0, points, None), c[:, 0], c[:, :, 0]

    expected = encode()
    with torch.autocast("cpu", torch.bfloat16):
        for found, exact in zip(encode(), expected, strict=True):
            assert torch.equal(found, exact)
            assert len(found[0].unique(dim=0)) == found.shape[1]


def test_clocks_are_read_as_without():
    clocks, t = Clocks(16, 32, ((0.0, 1.0, False),)), torch.linspace(0.9, 0.91, 7).unsqueeze(0)
    expected = clocks(t, torch.ones(2, 1))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(clocks(t, torch.ones(2, 1)), expected)


def test_an_answer_is_finer_than_half_precision():
    model = vcnef.build("vcnef", ndim=1, channels=1, depth=0, modulations=1)
    inputs = torch.randn(2, 64, 1), cell_centres(((0.0, 1.0),), (64,)), torch.rand(3)
    with torch.autocast("cpu", torch.bfloat16):
        u = model(*inputs)
    assert u.dtype == torch.float32
    assert not torch.equal(u, u.bfloat16().float())
