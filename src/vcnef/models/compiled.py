"""Models and their weights without what `torch.compile` puts around them."""

from __future__ import annotations

from torch import Tensor, nn

INSIDE = "_orig_mod"
"""Under which the module of `torch.compile` holds the one that was compiled."""


def plain(model: nn.Module) -> nn.Module:
    """Return the module that was compiled, or the one that was not."""
    return getattr(model, INSIDE, model)


def plain_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights by the names that the model itself has for them, also where parts of it are compiled."""
    return {name.replace(f"{INSIDE}.", ""): value for name, value in model.state_dict().items()}
