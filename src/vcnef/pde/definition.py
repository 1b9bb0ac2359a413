"""What a user's definition of an equation may be, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from math import isfinite, sqrt
from typing import Any

import numpy as np

from vcnef.pde.fluxes import Law


def check_definition(own: Any) -> None:
    """Raise an error unless a user's definition is one."""
    from vcnef.pde.registry import EQUATIONS

    if own.name in EQUATIONS:
        raise ValueError(f"{own.name!r} is an equation of the package. Choose another name.")
    if own.rate is not None and not callable(own.rate) and not isinstance(own.rate, Law):
        raise ValueError(f"The rate of {own.name!r} is {own.rate!r}; expected a function of (u, d, p).")
    if isinstance(own.channels, str):
        raise ValueError(f"channels is {own.channels!r}; expected names in a list, e.g. channels=({own.channels!r},).")
    if not isinstance(own.parameters, Mapping):
        raise ValueError(
            f"parameters is {own.parameters!r}; expected values by name, e.g. parameters={{'D': 0.01}}, or ranges."
        )
    for name, value in own.parameters.items():
        check_parameter(name, value)
    ends = np.shape(own.domain)
    if ends != (2,) and (len(ends) != 2 or ends[1] != 2):
        raise ValueError(f"domain is {own.domain!r}; expected (low, high), or such a pair for each axis.")


def check_parameter(name: str, value: Any) -> None:
    """Raise an error unless a parameter is a number, or the two ends of a range."""
    ends = value
    if not isinstance(value, tuple):
        ends = (value,)
    numbers = all(isinstance(each, int | float | np.number) and isfinite(each) for each in ends)
    if not numbers or len(ends) > 2 or (len(ends) == 2 and ends[0] >= ends[1]):
        raise ValueError(f"Parameter {name!r} is {value!r}; expected a number, or a (low, high) range.")


def middle(value: Any) -> float:
    """Return the middle of a range; of a positive one that of its logarithm, in which it is drawn."""
    if not isinstance(value, tuple):
        return float(value)
    low, high = value
    if low > 0:
        return sqrt(low * high)
    return (low + high) / 2


def options_of(initial: Callable[..., Any]) -> dict[str, object]:
    """Return the keywords of a function, with their defaults."""
    defaults = {}
    for parameter in list(signature(initial).parameters.values())[2:]:
        if parameter.default is not Parameter.empty:
            defaults[parameter.name] = parameter.default
    return defaults
