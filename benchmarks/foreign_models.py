"""neuraloperator's FNO as a model that steps: it is then trained and judged as all others are.

    pip install neuraloperator

`register()` adds "neuralop" to the models of the registry, in the process that trains or loads it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.models.interface import Stepper
from vcnef.models.registry import MODELS
from vcnef.models.rollout import Rollout

INSTALLED = find_spec("neuralop") is not None


class LibraryStep(Stepper):
    """u(t + Δt) = u(t) + F(u ‖ p): parameters are fields that are the same everywhere; F puts the grid beside them."""

    def __init__(self, ndim: int, channels: int, params: int, network: nn.Module) -> None:
        super().__init__()
        self.ndim, self.channels, self.params, self.network = ndim, channels, params, network
        self.register_state_dict_post_hook(leave_out_arguments)

    def forward(
        self, u: Float[Tensor, "b *x c"], grid: Tensor, params: Float[Tensor, "b p"] | None = None
    ) -> Float[Tensor, "b *x c"]:
        inputs = u.movedim(-1, 1)
        if params is not None:
            everywhere = params.reshape(*params.shape, *[1] * self.ndim).expand(-1, -1, *inputs.shape[2:])
            inputs = torch.cat([inputs, everywhere], dim=1)
        return u + self.network(inputs).movedim(1, -1)


def leave_out_arguments(module: nn.Module, state: dict[str, Any], prefix: str, local_metadata: Any) -> None:
    """The library puts the arguments of its constructor among the weights."""
    state.pop("_metadata", None)


def neuralop(
    ndim: int,
    channels: int,
    params: int = 0,
    *,
    steps: int = 40,
    width: int = 64,
    modes: int = 24,
    padding: float = 0.0,
) -> Rollout:
    """neuraloperator's FNO with its own defaults for all else, rolled out.

    modes: of half the spectrum, as ours count them; the library counts both halves.
    padding: the part of the domain by which fields that are not periodic are continued with zeros.
    """
    from neuralop.models import FNO

    network = FNO(
        n_modes=(2 * modes,) * ndim,
        in_channels=channels + params,
        out_channels=channels,
        hidden_channels=width,
        domain_padding=padding or None,
    )
    return Rollout(LibraryStep(ndim, channels, params, network), steps)


def register() -> None:
    """Make the model known by the name "neuralop"."""
    MODELS["neuralop"] = neuralop
