"""Every model by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from vcnef.models.fno import fno
from vcnef.models.interface import TrajectoryModel
from vcnef.models.vcnef import vcnef

MODELS: dict[str, Callable[..., TrajectoryModel]] = {"vcnef": vcnef, "fno": fno}
"""Name -> builder(ndim, channels, params, **options)."""


def list_models() -> dict[str, str]:
    """The models that `build` knows, one line each."""
    return {name: inspect.getdoc(builder).split("\n")[0] for name, builder in MODELS.items()}


def build(name: str, *, ndim: int, channels: int, params: int = 0, **options: Any) -> TrajectoryModel:
    """Build a model by name for `ndim` dimensions, `channels` fields and `params` PDE parameters.

    Options are those of the model's own builder; sizes default to the paper's for that `ndim`.
    """
    if name not in MODELS:
        raise ValueError(f"There is no model {name!r}{_nearest(name, MODELS)} Known models: {', '.join(MODELS)}.")
    builder = MODELS[name]
    known = [option for option, p in inspect.signature(builder).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            raise ValueError(
                f"Model {name!r} has no option {option!r}{_nearest(option, known)} Its options: {', '.join(known)}."
            )
    return builder(ndim, channels, params, **options)


def _nearest(word: str, known: Any) -> str:
    close = get_close_matches(word, known, n=2)
    return f"; did you mean {' or '.join(close)}?" if close else "."
