"""The right-hand side of an equation as its user writes it: u_t = f(u, d, p), with d for derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.pde.derivatives import AtPoints
from vcnef.pde.fluxes import Method
from vcnef.problem import SPACE
from vcnef.suggest import suggestion

POINTS = 16
"""Along each axis of the fields that a formula is tried on."""


@dataclass(frozen=True)
class Formula:
    """u_t = f(u, d, p), where a user's function says what f is.

    >>> def kdv(u, d, p):
    ...     return -u * d(u, "x") - p["delta"] * d(u, "x", 3)

    `u` is the field, or a tuple of fields in the order of the channels, and so is what is returned. `d(q, "x", n)` is
    the n-th derivative of any field along an axis, by default the first one, and `p` has the parameters by name. A
    function that depends on places or time names them too: `f(u, d, p, x, t)`, also `y` and `z`; t counts from the
    initial state. All broadcast with the fields, `[samples, *space]` each.
    """

    name: str
    function: Callable[..., Any]
    channels: tuple[str, ...]
    ndim: int
    parts = 1

    @cached_property
    def needs(self) -> frozenset[str]:
        """Return the names of coordinates and time that the right-hand side depends on."""
        names = list(signature(self.function).parameters)
        known = (*SPACE[: self.ndim], "t")
        if len(names) < 3:
            raise ValueError(
                f"The rate of {self.name!r} takes ({', '.join(names)}); expected a function of (u, d, p): fields, "
                "derivatives and parameters."
            )
        for name in names[3:]:
            if name not in known:
                raise ValueError(
                    f"The rate of {self.name!r} takes {name!r}; after u, d and p it may take {', '.join(known)}. "
                    "Parameters of the equation are in p."
                )
        return frozenset(names[3:])

    def rate(
        self,
        method: Method,
        u: Float[Tensor, "b *x c"],
        params: Mapping[str, Tensor],
        part: int | None = None,
        where: Mapping[str, Tensor] | None = None,
    ) -> Float[Tensor, "b *x c"]:
        """Return u_t as the function has it; `where` has the coordinates and times that it needs."""
        fields = u.unbind(-1)
        state = fields
        if len(fields) == 1:
            state = fields[0]
        given = {name: (where or {})[name] for name in self.needs}
        derivatives = Derivatives(method, SPACE[: self.ndim], fields[0].shape)
        found = self.function(state, derivatives, Parameters(self.name, params), **given)
        return torch.stack(self._as_fields(found, fields[0]), dim=-1)

    def try_out(self, method: Method, params: Mapping[str, float]) -> None:
        """Compute it once, so that what is wrong with it is said where it is defined."""
        fields = torch.full((2, *(POINTS,) * self.ndim, len(self.channels)), 0.5)
        columns = {name: torch.full((2, *(1,) * self.ndim), float(value)) for name, value in params.items()}
        axes = {name: torch.full((1, *(POINTS,) * self.ndim), 0.5) for name in SPACE[: self.ndim]}
        self.rate(method, fields, columns, where=axes | {"t": torch.zeros(2, *(1,) * self.ndim)})

    def _as_fields(self, found: Any, like: Tensor) -> list[Tensor]:
        """Return one field for each channel."""
        count = len(self.channels)
        several = isinstance(found, tuple | list)
        if several != (count > 1) or (several and len(found) != count):
            got = f"one {type(found).__name__}"
            if several:
                got = f"{len(found)} of them"
            expected = f"one field, the rate of {self.channels[0]}"
            if count > 1:
                expected = f"a tuple of {count} fields, one for each of {', '.join(self.channels)}"
            raise ValueError(f"The rate of {self.name!r} returns {got}; expected {expected}.")
        fields = []
        if not several:
            found = [found]
        for channel, each in zip(self.channels, found, strict=True):
            values = torch.as_tensor(each, dtype=like.dtype, device=like.device)
            try:
                fields.append(values.expand_as(like))
            except RuntimeError:
                raise ValueError(
                    f"The rate of {channel} in {self.name!r} has shape {tuple(values.shape)}; expected that of a "
                    f"field, {tuple(like.shape)}: samples and space. Derivatives and parameters of p have it."
                ) from None
        return fields


class Derivatives:
    """`d(q, "x")` and `d(q, "x", 3)`: derivatives of fields along named axes."""

    def __init__(self, method: Method, axes: tuple[str, ...], shape: torch.Size) -> None:
        self._method, self._axes, self._shape = method, axes, shape

    def __call__(self, q: Any, axis: str, order: int = 1) -> Tensor:
        """Return ∂ⁿq/∂xⁿ, with n the order."""
        if axis not in self._axes:
            raise ValueError(f"d(…, {axis!r}) names no axis; expected one of {', '.join(self._axes)}.")
        if not isinstance(order, int) or order < 1:
            raise ValueError(f"d(…, {axis!r}, {order!r}) has no order; expected 1, 2, 3, …")
        try:
            field = q.expand(self._shape)  # of a coefficient that all samples share, too
        except (AttributeError, RuntimeError):
            shape: object = type(q).__name__
            if isinstance(q, Tensor):
                shape = tuple(q.shape)
            raise ValueError(
                f"d takes a field of shape {tuple(self._shape)}, samples and space; got {shape}."
            ) from None
        return cast(AtPoints, self._method).derivative(field, self._axes.index(axis) + 1, order)


class Parameters(dict):
    """Parameters by name, as columns beside fields."""

    def __init__(self, equation: str, values: Mapping[str, Tensor]) -> None:
        super().__init__(values)
        self._equation = equation

    def __missing__(self, name: str) -> Tensor:
        raise ValueError(f"{self._equation!r} has no parameter {name!r}. {suggestion(str(name), list(self))}")
