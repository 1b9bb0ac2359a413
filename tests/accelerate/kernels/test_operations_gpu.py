"""Every registered operation against its baseline on a GPU, and what only shows there."""

from dataclasses import replace
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

from vcnef.accelerate.kernels import inference, mix
from vcnef.accelerate.kernels.beside import Beside
from vcnef.accelerate.kernels.newton_schulz import newton_schulz
from vcnef.accelerate.kernels.operation import Sizes
from vcnef.accelerate.kernels.orthogonal import orthogonalise
from vcnef.accelerate.kernels.registry import OPERATIONS, TRAINING

pytestmark = pytest.mark.gpu

harness = SimpleNamespace(**run_path(str(Path(__file__).with_name("harness.py"))))

GPU = torch.device("cuda")
SHAPES = [(16, 2, 7), (40, 4, 50), (48, 8, 100), (96, 8, 256), (96, 1, 300), (100, 10, 129), (128, 8, 1000)]
WIDE = [(32, 2, 20), (192, 6, 77), (200, 1, 77), (256, 4, 77), (256, 8, 77), (256, 16, 77), (1024, 1, 77)]
CALLS = [(operation, dtype) for operation in OPERATIONS.values() for dtype in harness.half_types(operation)]


def named(value):
    return getattr(value, "name", None) or str(value).removeprefix("torch.")


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("width", "heads", "points"), SHAPES + WIDE)
@pytest.mark.parametrize(("operation", "dtype"), CALLS, ids=named)
def test_an_operation_agrees_with_its_baseline(operation, dtype, width, heads, points, shared):
    sizes = Sizes(width, heads, points, shared=shared, device=GPU, dtype=dtype)
    sizes = replace(sizes, activation="gelu" if shared else "relu", between=dtype if shared else torch.float32)
    reason = harness.obstacle(operation, sizes)
    if reason is not None:
        pytest.skip(reason)
    harness.check(operation, sizes)


def test_every_operation_is_served_at_some_of_these_sizes():
    for operation, dtype in CALLS:
        shapes = [Sizes(*shape, device=GPU, dtype=dtype) for shape in SHAPES + WIDE]
        assert harness.served(operation, shapes), operation.name


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("operation", TRAINING, ids=named)
def test_an_operation_with_more_tiles_than_programs_agrees_with_its_baseline(operation, shared):
    candidates = [
        Sizes(width, 8, 250, batch=50, shared=shared, device=GPU, dtype=torch.bfloat16) for width in (96, 256)
    ]
    harness.check(operation, harness.served(operation, candidates)[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=named)
@pytest.mark.parametrize(
    ("module", "table", "operations"),
    [
        (mix, "MIX_TILINGS", ["mix"]),
        (inference, "BLOCK_TILINGS", ["attend", "apply", "transform", "modulate"]),
    ],
    ids=named,
)
def test_every_tiling_gives_the_same(module, table, operations, dtype, monkeypatch):
    for tiling in getattr(module, table):
        monkeypatch.setattr(module, table, (tiling,))
        for name in operations:
            harness.check(OPERATIONS[name], Sizes(96, 8, 200, device=GPU, dtype=dtype))
        monkeypatch.undo()


def late(function):
    def wait_first(*given):
        torch.cuda._sleep(2_000_000)
        return function(*given)

    return wait_first


def test_what_is_read_beside_others_stays_in_memory_until_then():
    x = torch.randn(1000, 1000, device="cuda")
    with Beside(x) as beside:
        found = beside(late(torch.sum), x + 1)
        torch.full_like(x, torch.nan)
    assert float(found) == float((x + 1).sum())


@pytest.mark.parametrize("operation", TRAINING, ids=named)
def test_gradients_of_weights_that_come_late_agree_with_the_baseline(operation, monkeypatch):
    call = Beside.__call__
    monkeypatch.setattr(Beside, "__call__", lambda beside, function, *given: call(beside, late(function), *given))
    candidates = [Sizes(width, 8, 256, device=GPU, dtype=torch.bfloat16) for width in (96, 256)]
    harness.check(operation, harness.served(operation, candidates)[0])


@pytest.mark.parametrize(
    "shape", [(3, 16, 16), (37, 96, 96), (12, 96, 384), (2, 100, 130), (2, 128, 512), (1, 24, 5000)]
)
def test_orthogonalised_matrices_are_as_exact_as_half_precision_allows(shape):
    torch.manual_seed(0)
    matrices, options = torch.randn(shape, device="cuda"), ((3.4445, -4.7750, 2.0315), 5)
    found = orthogonalise(matrices, *options).float()
    # The baseline in single precision; in half precision it is as far away from that as the kernel may be.
    exact = newton_schulz(matrices.cpu(), *options).cuda()
    baseline = newton_schulz(matrices, *options).float()
    assert (found - exact).norm() < 1.5 * (baseline - exact).norm()
    assert (found - exact).norm() < 0.03 * exact.norm()
    assert torch.linalg.svdvals(found).max() < 1.3
