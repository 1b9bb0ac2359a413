"""The scale of the loss in fp16: gradients are what they are without, and an overflow costs one step."""

import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

from vcnef.training import half
from vcnef.training.devices import precise
from vcnef.training.half import HalfInside, LossScale
from vcnef.training.recipe import Recipe
from vcnef.training.step import Step


def weights_with_gradients(scale):
    weights = [
        nn.Parameter(torch.randn(3, 2)),
        nn.Parameter(torch.randn(4, dtype=torch.complex64)),
        nn.Parameter(torch.ones(1)),
    ]
    loss = sum((weight * weight.detach()).abs().square().sum() for weight in weights[:2])
    expected = torch.autograd.grad(loss, weights[:2], retain_graph=True)
    scale.scale(loss).backward()
    return weights, expected


def test_gradients_are_those_of_the_loss():
    scale = LossScale()
    weights, expected = weights_with_gradients(scale)
    assert not torch.allclose(weights[0].grad, expected[0])
    scale.unscale(weights)
    for weight, gradient in zip(weights, expected, strict=False):
        torch.testing.assert_close(weight.grad, gradient)
    assert weights[2].grad is None
    assert (scale.value, scale.good) == (2.0**16, 1)


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_an_overflow_makes_a_step_of_nothing_and_a_smaller_scale(bad):
    scale = LossScale()
    weights, _ = weights_with_gradients(scale)
    weights[0].grad[1, 1] = bad
    scale.unscale(weights)
    assert all(not weight.grad.any() for weight in weights[:2])
    assert (scale.value, scale.good) == (2.0**15, 0)


def test_it_grows_again_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(half, "GOOD_STEPS", 2)
    scale = LossScale()
    place = scale.value.data_ptr()
    found = []
    for _ in range(20):
        weights, _ = weights_with_gradients(scale)
        scale.unscale(weights)
        found.append(float(scale.value))
    assert found[:4] == [2.0**16, 2.0**17, 2.0**17, 2.0**18]
    assert found[-1] == half.LARGEST
    assert scale.value.data_ptr() == place


@pytest.mark.parametrize("clip", [0.5, None])
@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_steps_are_those_of_single_precision(name, clip, monkeypatch):
    # So large a loss overflows at first with the usual scale, and would lose its first steps.
    monkeypatch.setattr(half, "FIRST", 2.0**8)

    def train(**precision):
        torch.manual_seed(0)
        fabric = Fabric(accelerator="cpu", devices=1, **precision)
        model = nn.Sequential(nn.Linear(4, 32), nn.GELU(), nn.Linear(32, 1))
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        inputs = torch.randn(64, 4)
        wrapped, optimiser = fabric.setup(Loss(model), optimiser)
        step = Step(fabric, wrapped, optimiser, Recipe(epochs=1, clip=clip))
        return torch.stack([step._step((inputs,), 0.0) for _ in range(20)])

    exact, found = train(precision="32-true"), train(plugins=[HalfInside(name, "cpu")])
    assert exact[-1] < 0.5 * exact[0]
    torch.testing.assert_close(found, exact, rtol=2e-2, atol=0)


class Loss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, inputs, progress):
        assert inputs.dtype == torch.float32
        return (self.model(inputs) - inputs.sum(1, keepdim=True)).square().mean()


def test_its_state_is_kept():
    one, other = HalfInside("fp16", "cpu"), HalfInside("fp16", "cpu")
    one.loss_scale.value.fill_(8.0)
    other.load_state_dict(one.state_dict())
    assert other.loss_scale.value == 8.0
    assert HalfInside("bf16", "cpu").state_dict() == {}


def test_half_is_the_finer_one_where_there_is_a_gpu():
    names = {device: precise("half", device)["plugins"][0].precision for device in ("cuda", "cpu")}
    assert names == {"cuda": "16-mixed", "cpu": "bf16-mixed"}
