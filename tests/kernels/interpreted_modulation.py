"""The kernels of inference against their twins, and `predict` with them; run in Triton's interpreter."""

from itertools import product
from math import prod

import interpreting  # noqa: F401, before any kernel is imported
import torch

import vcnef
from vcnef.grid import cell_centres
from vcnef.kernels import modulation as kernels
from vcnef.kernels import plain
from vcnef.kernels.local import Stencil, mix_neighbours
from vcnef.kernels.weights import BlockWeights, DecoderWeights, Tiling
from vcnef.nn import fused

torch.manual_seed(0)


def linear(inputs, outputs):
    return torch.randn(outputs, inputs) / inputs**0.5, 0.3 * torch.randn(outputs)


def close(found, expected, dtype):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    change = float((found.float() - expected.float()).norm() / expected.float().norm())
    assert change < (1e-6 if dtype == torch.float32 else 1e-3), (change, dtype)


cases = (
    (16, 2, 20, 1, "relu", torch.float32, torch.float32),
    (48, 8, 16, 2, "gelu", torch.float32, torch.float32),
    (40, 1, 5, 1, "relu", torch.float16, torch.float16),
    (96, 8, 11, 1, "relu", torch.float16, torch.float32),
)
for width, heads, points, fields, activation, dtype, between in cases:
    names = ("query", "key", "value", "join", "scale", "out")
    parts = {name: linear(width, width) for name in names}
    parts |= {"widen": linear(width, 4 * width), "narrow": linear(4 * width, width)}
    norms = ("attention_norm", "modulation_norm", "mlp_norm")
    parts |= {name: (1 + 0.2 * torch.randn(width), 0.2 * torch.randn(width)) for name in norms}
    weights = BlockWeights.pack(dtype, heads=heads, activation=activation, eps=1e-5, **parts)
    tokens, extra = torch.randn(2, 2, 2, points, width).to(between)
    field = torch.randn(fields, 2, points, width)
    tiling = Tiling(tokens=16, hidden=128, warps=4, stages=1)

    mixed = plain.mix(tokens, weights)
    for found, expected in zip(kernels.mix(tokens, weights, tiling), mixed, strict=True):
        close(found, expected, dtype)
    pairs = {"norm": parts["mlp_norm"], "first": linear(width, width), "second": linear(width, 3)}
    decoder = DecoderWeights.pack(dtype, eps=1e-5, **pairs)
    for after in (None, decoder):
        given = tokens, *mixed, field, weights, extra if fields == 1 else None, after
        close(kernels.apply(*given, tiling), plain.apply(*given), dtype)
    given = tokens[:, :1], extra[:, :1].abs(), field, weights
    close(kernels.modulate(*given, tiling), plain.modulate(*given), dtype)
    given = tokens, *mixed, weights, extra
    close(kernels.transform(*given, tiling), plain.transform(*given), dtype)
    for found, expected in zip(kernels.attend(*given, tiling), plain.attend(*given), strict=True):
        close(found, expected, dtype)
    close(kernels.decode(tokens, decoder, tiling), plain.decode(tokens, decoder), dtype)

for sides, periodic in product(((20,), (3,), (4, 5), (2, 3, 3)), (True, False)):
    offsets = tuple(product((-5, 0, 1), repeat=len(sides)))
    grids = [Stencil(each, offsets, torch.randn(len(offsets), 40), periodic) for each in (sides, sides[::-1])]
    given = torch.randn(2, 3, 2 * prod(sides), 40).half(), grids, torch.float16
    close(mix_neighbours(*given), plain.mix_neighbours(*given), torch.float16)

fused.usable = lambda tokens, heads=1: True
for sides, patches in ((10,), ()), ((4, 6), (2,)):
    sizes = {"width": 16, "heads": 2, "depth": 1, "modulations": 2, "local": 1, "sides": sides, "patches": patches}
    model = vcnef.build("vcnef", ndim=len(sides), channels=1, **sizes)
    for name, parameter in model.named_parameters():
        if name.endswith("local.weight"):
            torch.nn.init.normal_(parameter, std=0.5)
    inputs = torch.randn(2, *sides, 1), cell_centres(((0.0, 1.0),) * len(sides), sides), torch.rand(2)
    expected = model(*inputs).detach()
    found = model.predict(*inputs, precision="fp16")
    assert not torch.equal(found, expected)
    close(found, expected, torch.float16)
