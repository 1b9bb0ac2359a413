"""Whole models with fused kernels against themselves without; run in Triton's interpreter."""

import interpreting  # noqa: F401, before any kernel is imported
import torch

import vcnef
from vcnef.accelerate.engine import _engine
from vcnef.accelerate.kernels import launch
from vcnef.accelerate.kernels.weights import Tiling
from vcnef.accelerate.planner import Planner, PlanSetting
from vcnef.grid import cell_centres

SMALL = {"width": 16, "heads": 2, "depth": 1, "modulations": 2, "local": 1}
NORM, GELU = {"residual", "residual_backward"}, {"activation", "activation_backward"}
MIXING, DECODER = {"wide_mixing", "wide_mixing_backward"}, {"decoder", "decoder_backward"}


class Tilings(dict):
    """Small ones, which remember the kernels that were launched."""

    def __getitem__(self, name):
        launched.add(name)
        return super().__getitem__(name)


# Before the kernels are imported, which take it by its name.
launched, launch.TILINGS = set(), Tilings(dict.fromkeys(launch.TILINGS, Tiling(16, 64, 4, 2)))
EVERY = set(launch.TILINGS)


def build(sides, **options):
    """A model whose stencils matter, and a question to it."""
    torch.manual_seed(0)
    model = vcnef.build("vcnef", ndim=len(sides), channels=1, sides=sides, **SMALL | options)
    for block in (*list(model.blocks)[:-1], *model.modulations):
        torch.nn.init.normal_(block.local.weight, std=0.3)
    return model, (torch.randn(2, *sides, 1), cell_centres(((0.0, 1.0),) * len(sides), sides), torch.rand(2))


def engine_of(model, half, *, training, whole_blocks=True):
    obstacle = Planner.obstacle_of_block
    if not whole_blocks:
        Planner.obstacle_of_block = lambda *_: "as if they were too wide"
    engine = _engine(model, PlanSetting(torch.device("cpu"), half, training=training))
    Planner.obstacle_of_block = obstacle
    found = engine.plan["modulations.0"].startswith("fused kernels")
    assert found == whole_blocks, engine.plan
    return engine


def change(found, expected):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    return float((found - expected).norm() / expected.norm())


@torch.no_grad()
def compare_predictions(sides, *, whole_blocks=True, **options):
    model, (u0, grid, t) = build(sides, **options)
    engine = engine_of(model, torch.float16, training=False, whole_blocks=whole_blocks)
    (found,) = engine.query_in_parts(engine.encode(u0, grid, None), t, len(t))
    assert 0 < change(found, model(u0, grid, t)) < 1e-3, engine.plan


def compare_gradients(sides, expected_launches, *, whole_blocks=True, compiled=True, **options):
    """As if autocasting had chosen single precision."""
    model, question = build(sides, **options)
    engine = engine_of(model, torch.float32, training=True, whole_blocks=whole_blocks)

    def gradients(function):
        return torch.autograd.grad(function(*question).square().mean(), list(model.parameters()))

    expected = gradients(model)
    ways = [engine.forward, torch.compile(engine.forward, fullgraph=True, backend="aot_eager_decomp_partition")]
    for way in ways if compiled else ways[:1]:
        launched.clear()
        assert max(change(*pair) for pair in zip(gradients(way), expected, strict=True)) < 1e-4, engine.plan
        assert launched == expected_launches, launched ^ expected_launches


compare_predictions((10,))
compare_predictions((4, 6), patches=(2,))
compare_predictions((4, 6), patches=(2,), whole_blocks=False)
compare_gradients((8,), EVERY - GELU - MIXING)
few = {"modulations": 1}
wide = NORM | GELU | MIXING | {"neighbours_backward"}
compare_gradients((4, 4), wide, whole_blocks=False, patches=(2,), heads=1, **few)
compare_gradients((4, 4, 4), EVERY - MIXING - DECODER, compiled=False, patches=(2, 4), **few)
