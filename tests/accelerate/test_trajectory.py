"""The parts of a VCNeF put together with the algebra that saves work."""

from dataclasses import replace

import pytest
import torch

import vcnef
from vcnef.accelerate.engine import inference_engine
from vcnef.grid import cell_centres


@pytest.mark.parametrize(
    ("batch", "own", "clocks", "asked"),
    [(24, False, 0, [6, 1]), (15, False, 0, [2, 2, 2, 1]), (24, True, 0, [2, 2, 2, 1]), (24, False, 2, [2, 2, 2, 1])],
)
@torch.no_grad()
def test_what_coordinates_alone_make_is_computed_for_many_chunks_at_once(batch, own, clocks, asked):
    """Where all of many samples share it; the answers are those of chunks on their own."""
    sizes = {"width": 8, "heads": 2, "depth": 1, "modulations": 2, "clocks": clocks}
    model = vcnef.build("vcnef", ndim=1, channels=2, params=1, **sizes).eval()
    u0, grid, params = torch.randn(batch, 6, 2), cell_centres(((0.0, 1.0),), (6,)), torch.rand(batch, 1)
    t = torch.rand(batch, 7) if own else torch.rand(7)
    expected, found = model(u0, grid, t, params), []
    engine = inference_engine(model, torch.device("cpu"), "fp32")
    coordinates = engine.parts.coordinates

    def encode_time(t):
        found.append(t.shape[-1])
        return coordinates.encode_time(t)

    engine.parts = replace(engine.parts, coordinates=coordinates._replace(encode_time=encode_time))
    parts = list(engine.query_in_parts(engine.encode(u0, grid, params), t, 2))
    assert [part.shape[1] for part in parts] == [2, 2, 2, 1]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected)
    assert found == asked
