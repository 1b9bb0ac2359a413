"""Derivatives of what a model answers: by time, and whether somebody takes any."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import forward_ad

from vcnef.models.interface import TrajectoryModel, check_shapes
from vcnef.nn.layer_norm import DifferentiableTwice


def differentiating() -> bool:
    """Return whether what is computed now may be differentiated, backwards or in forward mode."""
    return torch.is_grad_enabled() or forward_ad._current_level >= 0


def is_differentiated(x: Tensor) -> bool:
    """Return whether somebody takes derivatives by this tensor."""
    return x.requires_grad or forward_ad.unpack_dual(x).tangent is not None


def time_derivative(
    model: TrajectoryModel,
    u0: Float[Tensor, "b *x c"],
    grid: Float[Tensor, "*x D"] | Float[Tensor, "b *x D"],
    t: Float[Tensor, " t"] | Float[Tensor, "b t"],
    params: Float[Tensor, "b p"] | None = None,
) -> tuple[Float[Tensor, "b t *x c"], Float[Tensor, "b t *x c"]]:
    """u and ∂u/∂t, where u(t) = model(u0, grid, t, params) and ∂u/∂t = d/dε u(t + ε) at ε = 0.

    Exact, and in one pass, by differentiation in forward mode. Both can be differentiated again: gradients that a loss
    of them has in the weights are right, also of models with PyTorch's own layer norm. Quantities are the network's:
    times are parts of the training horizon T, so a derivative in physical time is σ / T times this one, where fields
    are normalised by σ.

    Breaks when: the network runs in half precision, whose noise drowns derivatives.
    """
    if not model.continuous:
        raise ValueError(
            f"The prediction of {type(model).__name__} has no derivative in time; expected a model that is continuous "
            "in time, such as VCNeF. Take differences between the frames of one that steps."
        )
    check_shapes(model, u0, grid, t, params)
    latent = model.encode(u0, grid, params)
    with DifferentiableTwice():
        u, u_t = torch.func.jvp(lambda s: model.query(latent, s), (t,), (torch.ones_like(t),))[:2]
    return u, u_t
