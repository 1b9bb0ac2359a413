"""Derivatives in forward mode, and the weight gradients of what is made of them, against finite differences."""

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

import vcnef
from vcnef.grid import cell_centres
from vcnef.models.interface import TrajectoryModel
from vcnef.models.rollout import TimeInterpolated
from vcnef.nn.layer_norm import instance_norm, layer_norm

SIDES = {1: (12,), 2: (16, 8)}
VCNEF = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
PATCHES = {"patches": (4,), "clocks": 2, "local": 1, "sides": SIDES[2], "rate": True, "pace": 0.02}
SOFTMAX = {"attention": "softmax", "conditioning": "scale_shift", "frequencies": 2}
GALERKIN = {"width": 8, "heads": 2, "depth": 2, "hidden": 8, "modes": 2, "spectral_width": 4, "steps": 4}
CORAL = {"latent": 8, "width": 8, "depth": 3, "dynamics_width": 8, "dynamics_depth": 1, "steps": 4}
CASES = {
    "vcnef of points": ("vcnef", 1, VCNEF),
    "vcnef with softmax": ("vcnef", 1, VCNEF | SOFTMAX),
    "vcnef of patches": ("vcnef", 2, VCNEF | PATCHES),
    "vcnef with waves": ("vcnef", 1, VCNEF | {"modes": 2, "activation": "gelu"}),
    "fno": ("fno", 2, {"width": 4, "modes": 2, "depth": 2, "steps": 4}),
    "oformer": ("oformer", 1, {"width": 8, "scales": (2, 1), "heads": 2, "propagators": 1, "steps": 4, "norms": True}),
    "mp_pde": ("mp_pde", 1, {"width": 8, "depth": 2, "steps": 4}),
    "unet": ("unet", 1, {"width": 4, "multipliers": (1, 2), "blocks": 1, "steps": 4}),
    "galerkin": ("galerkin", 1, GALERKIN),
    "coral": ("coral", 1, CORAL),
    "pinn": ("pinn", 1, {"width": 8, "depth": 2}),
}


def build(case):
    """A model in double precision, whose last layers are not 0, and a question to it between the frames of training."""
    name, ndim, options = CASES[case]
    torch.manual_seed(1)
    model = vcnef.build(name, ndim=ndim, channels=2, params=1, **options).double()
    for weight in model.parameters():
        if not weight.any():
            nn.init.normal_(weight, std=0.1)
    u0, grid = torch.randn(2, *SIDES[ndim], 2), cell_centres(((0.0, 1.0),) * ndim, SIDES[ndim])
    question = u0, grid, torch.tensor([0.1, 0.4, 0.9]), torch.rand(2, 1)
    return model, [each.double() for each in question]


def by_jvp(function, x, direction):
    return torch.func.jvp(function, (x,), (direction,))


def by_duals(function, x, direction):
    with forward_ad.dual_level():
        return tuple(forward_ad.unpack_dual(function(forward_ad.make_dual(x, direction))))


def check_weight_gradients(loss, model, step=1e-6):
    """Against a difference of losses along a random direction of all weights, to a millionth of the gradient's norm."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    gradients = torch.autograd.grad(loss(), weights, allow_unused=True, materialize_grads=True)
    direction = [torch.randn_like(weight) for weight in weights]
    slope = sum((g * d).sum() for g, d in zip(gradients, direction, strict=True))
    losses = []
    for way in (step, -2 * step, step):
        with torch.no_grad():
            for weight, d in zip(weights, direction, strict=True):
                weight += way * d
        losses.append(loss().detach())
    norm = sum(g.square().sum() for g in gradients).sqrt()
    assert ((losses[0] - losses[1]) / (2 * step) - slope).abs() < 1e-6 * norm


@pytest.mark.parametrize("derive", [by_jvp, by_duals])
@pytest.mark.parametrize("case", CASES)
def test_weight_gradients_of_a_time_derivative_are_right(case, derive):
    """PyTorch's layer and instance norms would make them wrong by some hundredths of their norm, or more."""
    model, (u0, grid, t, params) = build(case)
    asked = model if model.continuous else TimeInterpolated(model)

    def loss():
        return derive(lambda s: asked(u0, grid, s, params), t, torch.ones_like(t))[1].square().mean()

    check_weight_gradients(loss, model)


@pytest.mark.parametrize("case", [case for case in CASES if case != "pinn"])
def test_weight_gradients_of_a_derivative_in_state_and_parameters_are_right(case):
    model, (u0, grid, t, params) = build(case)
    asked = model if model.continuous else TimeInterpolated(model)
    direction = torch.randn_like(u0), torch.randn_like(params)

    def loss():
        _, slope = torch.func.jvp(lambda u, p: asked(u, grid, t, p), (u0, params), direction)
        return slope.square().mean()

    check_weight_gradients(loss, model)


@pytest.mark.parametrize("case", ["vcnef of points", "vcnef of patches", "coral", "pinn"])
def test_the_time_derivative(case):
    model, question = build(case)
    u0, grid, t, params = question
    u, u_t = vcnef.time_derivative(model, *question)
    torch.testing.assert_close(u, model(*question))
    step = 1e-6
    before, after = (model(u0, grid, t + way, params) for way in (-step, step))
    torch.testing.assert_close(u_t, (after - before) / (2 * step), rtol=1e-6, atol=1e-7)
    own = t.expand(2, -1) * torch.tensor([[1.0], [0.5]])
    _, own_slope = vcnef.time_derivative(model, u0, grid, own, params)
    torch.testing.assert_close(own_slope[0], u_t[0])
    check_weight_gradients(lambda: sum(each.square().mean() for each in vcnef.time_derivative(model, *question)), model)


class Foreign(TrajectoryModel):
    """u = W LN(u₀ + sin(A u₀ + t)), with PyTorch's own layer norm."""

    def __init__(self):
        super().__init__()
        self.ndim, self.channels, self.params = 1, 4, 0
        self.first, self.norm, self.last = nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 4)

    def encode(self, u0, grid, params=None):
        return u0[:, None], self.first(u0)[:, None]

    def query(self, latent, t):
        u0, z = latent
        return self.last(self.norm(u0 + torch.sin(z + t[:, None, None])))


def test_of_a_model_with_the_norm_of_pytorch_they_are_right_too():
    torch.manual_seed(0)
    model, t = Foreign().double(), torch.tensor([0.2, 0.7]).double()
    question = torch.randn(2, 6, 4).double(), torch.rand(6, 1).double(), t
    check_weight_gradients(lambda: vcnef.time_derivative(model, *question)[1].square().mean(), model)


@pytest.mark.parametrize("wrap", [lambda model: model, TimeInterpolated])
def test_a_model_that_steps_has_none(wrap):
    model, question = build("fno")
    with pytest.raises(ValueError, match=r"has no derivative in time; expected a model that is continuous in time"):
        vcnef.time_derivative(wrap(model), *question)


def test_norms_are_the_same_in_forward_mode_and_elsewhere():
    x, weight, bias = torch.randn(3, 4, 8).double(), torch.randn(8).double(), torch.randn(8).double()
    for norm in (
        lambda x: layer_norm(x, (8,)),
        lambda x: layer_norm(x, (4, 8), weight.expand(4, 8), bias.expand(4, 8), 1e-3),
        lambda x: layer_norm(x, (8,), weight),
        lambda x: instance_norm(x, 1e-3),
    ):
        torch.testing.assert_close(torch.func.jvp(norm, (x,), (x,))[0], norm(x))
