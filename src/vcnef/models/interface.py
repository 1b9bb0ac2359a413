"""What every model is to the rest of the package: a map from an initial state to a trajectory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn


class TrajectoryModel(nn.Module):
    """u(t, x | u₀, p): initial states, points, query times and PDE parameters in; the whole trajectory out.

    A bare network: times are scaled (the training horizon is (0, 1]), fields and parameters normalised.
    `forward` is `query(encode(…), t)`; calling the two apart lets one encoding serve many query times. To predict in
    chunks that bound the memory, and faster, there is `vcnef.accelerate.predict`.
    """

    ndim: int
    channels: int
    params: int
    history = 1
    """How many frames `u0` holds, as channels: the oldest ones first, the initial state last."""
    independent_times = True
    """Whether an answer costs the same asked alone; a rollout passes all earlier times on the way."""
    continuous = True
    """Whether an answer has a derivative in time: that of a model that steps has none, or jumps at its frames."""
    one_instance = False
    """Whether the model is the solution from one initial state, and knows no other."""
    scattered = False
    """Whether points may lie anywhere; otherwise they make a regular grid."""
    uneven = True
    """Whether distances between neighbours on a grid may differ."""
    fusible = True
    """Whether it can be compiled and a step of its training recorded; not if it reads numbers back from the device."""

    def forward(
        self,
        u0: Float[Tensor, "b *x i"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "b *x D"],
        t: Float[Tensor, " t"] | Float[Tensor, "b t"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> Float[Tensor, "b t *x c"]:
        if params is not None and not params.shape[-1]:
            params = None  # batches of data without parameters have a table of none
        check_shapes(self, u0, grid, t, params)
        return self.query(self.encode(u0, grid, params), t)

    @abstractmethod
    def encode(self, u0: Tensor, grid: Tensor, params: Tensor | None = None) -> Any:
        """Whatever of the initial state does not depend on the query times."""

    @abstractmethod
    def query(self, latent: Any, t: Tensor) -> Float[Tensor, "b t *x c"]:
        """Return the solution at times `t` from what `encode` gave."""

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        """Return whether what was learnt on a grid of `trained` points a side is meant to hold on one of `sides`."""
        return True

    def times_in_flight(self, times: int) -> int:
        """Return how many of so many times are computed together, at the least."""
        if self.independent_times:
            return 1
        return times

    def query_in_parts(self, latent: Any, t: Tensor, times: int) -> Iterator[Float[Tensor, "b part *x c"]]:
        """Yield the answers at so many times after so many, or at all where each has to pass the earlier ones."""
        parts = (t,)
        if self.independent_times:
            parts = t.split(times, dim=-1)
        for part in parts:
            yield self.query(latent, part)


class Stepper(nn.Module):
    """u(t + Δt) from u(t), for one fixed step Δt; `Rollout` makes a `TrajectoryModel` of it."""

    ndim: int
    channels: int
    params: int
    frames = 1
    """Frames that one call of `advance` gives."""
    uneven = False
    """As of a `TrajectoryModel`: transforms and convolutions take them as equal."""

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        """Return what a `TrajectoryModel` does."""
        return True

    @abstractmethod
    def forward(
        self,
        u: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "_ *x D"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> Float[Tensor, "b *x c"]:
        """Return the next frame."""

    def advance(
        self,
        u: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "_ *x D"],
        params: Float[Tensor, "b p"] | None,
        t: Float[Tensor, " b"],
    ) -> Float[Tensor, "b k *x c"]:
        """Return the next `frames` frames after time `t`, for steppers that give several at once or need the time."""
        return self(u, grid, params).unsqueeze(1)


def with_samples(grid: Tensor, u0: Tensor) -> Float[Tensor, "_ *x D"]:
    """Return a grid with an axis of samples, of size one where all samples share it."""
    if grid.ndim == u0.ndim:
        return grid
    return grid.unsqueeze(0)


def times_with_samples(t: Tensor) -> Float[Tensor, "_ t"]:
    """Return times with an axis of samples, of size one where all samples share them."""
    if t.ndim == 2:
        return t
    return t.unsqueeze(0)


def number_of_weights(model: nn.Module) -> int:
    """Return how many numbers a model has learnt or will learn; a complex weight is two."""
    return sum(weight.numel() * (1 + weight.is_complex()) for weight in model.parameters())


def check_shapes(model: TrajectoryModel, u0: Tensor, grid: Tensor, t: Tensor, params: Tensor | None) -> None:
    """Raise a `ValueError` that names expected and got; no values are read, so nothing waits for the device."""
    name, weight = type(model).__name__, next(model.parameters(), None)
    if weight is not None and u0.dtype != weight.dtype:
        raise ValueError(
            f"{name} expects u0 of its weights' type, {weight.dtype}, got {u0.dtype}. "
            f"Convert the inputs with .to({weight.dtype}), or the model to theirs."
        )
    for label, values in (("grid", grid), ("t", t), ("params", params)):
        if values is not None and values.dtype != u0.dtype:
            raise ValueError(
                f"{name} expects {label} of u0's type, {u0.dtype}, got {values.dtype}. Convert it with .to(u0.dtype)."
            )
    inputs = model.channels * model.history
    if u0.ndim < 3 or u0.shape[-1] != inputs:
        frames = ""
        if model.history > 1:
            frames = f" of {model.history} frames"
        raise ValueError(
            f"{name} expects u0 of shape (batch, *space, {inputs}), got {tuple(u0.shape)}. "
            f"The last axis holds the channels{frames}."
        )
    batch, space = u0.shape[0], tuple(u0.shape[1:-1])
    if len(space) != model.ndim and not model.scattered:
        raise ValueError(
            f"{name} expects u0 on a grid of {model.ndim} axes, got shape {tuple(u0.shape)}. Interpolate scattered "
            "points to a grid, or use VCNeF with patches=() and local=0, or CORAL."
        )
    if tuple(grid.shape) not in ((*space, model.ndim), (batch, *space, model.ndim)):
        raise ValueError(
            f"{name} expects a grid of shape {(*space, model.ndim)}, or {(batch, *space, model.ndim)} if samples "
            f"differ, got {tuple(grid.shape)}. Give the coordinates of the points at which u0 is known."
        )
    if t.ndim not in (1, 2) or (t.ndim == 2 and t.shape[0] != batch):
        raise ValueError(
            f"{name} expects times of shape (t,), or ({batch}, t) if samples differ, got {tuple(t.shape)}. "
            "Wrap a single time in a list."
        )
    if model.params and (params is None or tuple(params.shape) != (batch, model.params)):
        got: object = "none"
        if params is not None:
            got = tuple(params.shape)
        raise ValueError(
            f"{name} expects PDE parameters of shape ({batch}, {model.params}), got {got}. "
            f"It was built with params={model.params}."
        )
    if not model.params and params is not None:
        raise ValueError(
            f"{name} was built without PDE parameters, got some of shape {tuple(params.shape)}. "
            "Build it with params= their number, or leave them out."
        )


def check_finite(**tensors: Tensor | None) -> None:
    """Raise a `ValueError` that names the first tensor with NaN or infinite values and how many there are."""
    given = {name: values for name, values in tensors.items() if values is not None}
    if all_finite(*given.values()):
        return
    for name, values in given.items():
        bad = int((~values.isfinite()).sum())
        if bad:
            raise ValueError(
                f"{name} has {bad} non-finite values among {values.numel()}; expected finite numbers. "
                "Remove or repair those samples first."
            )


def all_finite(*tensors: Tensor) -> bool:
    """Return whether no tensor has a value that is not finite; the device is asked once.

    x − x is 0, or NaN, which is as good as true.
    """
    return not bool(torch.stack([(each - each).any() for each in tensors]).any())
