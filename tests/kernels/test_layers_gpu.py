"""The layers with gradients on a GPU: against their twins, and in a model that trains."""

from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest
import torch

import vcnef
from vcnef.grid import cell_centres
from vcnef.kernels.layers.beside import Beside
from vcnef.nn import attention, blocks, decoders, modulation, norms

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]

twins = SimpleNamespace(**run_path(str(Path(__file__).with_name("twins_of_layers.py"))))
TOLERANCE = {torch.bfloat16: 3e-2, torch.float16: 4e-3}
"""Of ‖found − twin‖ / ‖twin‖; the twin computes in fp32 from the same inputs."""


def compare(cases, dtype):
    torch.manual_seed(0)
    for name, layer, twin, inputs in cases:
        rounded = [each.to(dtype).float() for each in inputs]
        found = twins.values_and_gradients(layer, rounded, dtype)
        pairs = zip(found, twins.values_and_gradients(twin, rounded), strict=True)
        assert max(twins.change(*pair) for pair in pairs) < TOLERANCE[dtype], name


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("width", "heads", "points"), [(16, 2, 7), (48, 8, 100), (96, 8, 256), (100, 10, 65), (128, 8, 70)]
)
def test_layers_agree_with_their_twins(width, heads, points, shared, dtype):
    compare(twins.cases(width, heads, points, "gelu", shared=shared, device="cuda"), dtype)


@pytest.mark.parametrize("shared", [True, False])
def test_layers_with_more_tiles_than_programs_agree_with_their_twins(shared):
    compare(twins.cases(96, 8, 250, "gelu", shared=shared, batch=50, device="cuda"), torch.bfloat16)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("width", "heads"), [(256, 8), (256, 16), (256, 4), (192, 6), (32, 2)])
def test_what_wide_attentions_mix_by_agrees_with_its_twin(width, heads, dtype):
    compare(twins.mixing_cases(width, heads, batch=37, times=5, device="cuda"), dtype)


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


def test_layers_whose_weights_learn_late_agree_with_their_twins(monkeypatch):
    call = Beside.__call__
    monkeypatch.setattr(Beside, "__call__", lambda beside, function, *given: call(beside, late(function), *given))
    compare(twins.cases(96, 8, 256, "gelu", device="cuda"), torch.bfloat16)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("width", [200, 256, 1024])
def test_norms_of_wide_tokens_agree_with_their_twins(width, dtype):
    cases = twins.cases(width, 1, 77, "gelu", device="cuda")
    compare((case for case in cases if case[0].startswith("residual")), dtype)


def train(monkeypatch, sides, *, fused, half=True, steps=40, **options):
    """Losses of a small model, in half precision under autocast."""
    torch.manual_seed(0)
    with monkeypatch.context() as patch:
        if not fused:
            for module in (blocks, modulation):
                patch.setattr(module, "training_operands", lambda block, tokens: None)
            patch.setattr(decoders, "decoder_operands", lambda mlp, tokens: None)
            for module in (attention, norms):
                patch.setattr(module, "half_precision", lambda tokens: None)
        model = vcnef.build("vcnef", ndim=len(sides), channels=1, local=1, sides=sides, **options).cuda()
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
        grid, t = cell_centres(((0.0, 1.0),) * len(sides), sides).cuda(), torch.rand(4).cuda()
        u0 = torch.randn(8, *sides, 1).cuda()
        target = u0.unsqueeze(1).roll(3, dims=2).expand(8, 4, *sides, 1)
        losses = []
        for _ in range(steps):
            optimiser.zero_grad()
            with torch.autocast("cuda", torch.bfloat16, enabled=half):
                loss = (model(u0, grid, t) - target).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
    return torch.tensor(losses)


@pytest.mark.parametrize(("sides", "options"), [((64,), {}), ((16, 16), {"patches": (4,), "modulations": 2})])
def test_a_model_learns_with_them_as_without(sides, options, monkeypatch):
    fused, plain = (train(monkeypatch, sides, fused=fused, **options) for fused in (True, False))
    single = train(monkeypatch, sides, fused=False, half=False, **options)
    assert single[-1] < 0.95 * single[0]
    # Little differences grow while a model learns; those of the kernels should be of the size of half precision's own.
    assert 0 < twins.change(fused, plain) < 3 * twins.change(plain, single)


@pytest.mark.parametrize(("precision", "bound"), [("fp16", 1e-3), ("bf16", 1e-2)])
def test_a_model_too_wide_for_kernels_of_whole_blocks_answers_in_half_precision(precision, bound):
    torch.manual_seed(0)
    model = vcnef.build("vcnef", ndim=2, channels=1).cuda().eval()
    inputs = torch.randn(2, 64, 64, 1).cuda(), cell_centres(((0.0, 1.0),) * 2, (64, 64)).cuda(), torch.rand(3).cuda()
    expected, found = (model.predict(*inputs, precision=name) for name in ("fp32", precision))
    assert found.dtype == torch.float32
    assert 0 < twins.change(found, expected) < bound
