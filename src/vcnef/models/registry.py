"""Every model by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from vcnef.checks import check_at_least
from vcnef.models.coral import coral
from vcnef.models.fno import fno
from vcnef.models.galerkin import galerkin
from vcnef.models.interface import TrajectoryModel
from vcnef.models.mp_pde import mp_pde
from vcnef.models.oformer import oformer
from vcnef.models.pinn import pinn
from vcnef.models.unet import unet
from vcnef.models.vcnef_builder import vcnef
from vcnef.suggest import suggestion

MODELS: dict[str, Callable[..., TrajectoryModel]] = {
    "vcnef": vcnef,
    "fno": fno,
    "unet": unet,
    "galerkin": galerkin,
    "oformer": oformer,
    "mp_pde": mp_pde,
    "coral": coral,
    "pinn": pinn,
}
"""Name -> builder(ndim, channels, params, **options)."""


def list_models() -> dict[str, str]:
    """Return the models that `build` knows, one line each."""
    lines = {}
    for name, builder in MODELS.items():
        lines[name] = (inspect.getdoc(builder) or "").partition("\n")[0]
    return lines


def option_names(name: str) -> list[str]:
    """Return the options of a model's builder."""
    parameters = inspect.signature(MODELS[name]).parameters
    return [option for option, each in parameters.items() if each.kind is each.KEYWORD_ONLY]


def build(name: str, *, ndim: int, channels: int, params: int = 0, **options: Any) -> TrajectoryModel:
    """Build a model by name for `ndim` dimensions, `channels` fields and `params` PDE parameters.

    Options are those of the model's own builder; sizes default to the paper's for that `ndim`.
    """
    if name not in MODELS:
        raise ValueError(f"There is no model {name!r}. {suggestion(name, MODELS)}")
    check_at_least(1, channels=channels)
    check_at_least(0, params=params)
    builder = MODELS[name]
    known = option_names(name)
    for option in options:
        if option not in known:
            raise ValueError(f"Model {name!r} has no option {option!r}. {suggestion(option, known)}")
    return builder(ndim, channels, params, **options)
