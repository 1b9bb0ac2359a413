"""What every model is to the rest of the package: a map from an initial state to a trajectory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.kernels.precision import precision as chosen_precision

POINTS_ON_GPU = 2**20
POINTS_ON_CPU = {1: 2**13, 2: 2**16, 3: 2**18}
"""Points in flight by default in `predict`; on a CPU by the number of dimensions: models of more have larger weights to
read for every chunk, or tokens that stand for more points."""


class TrajectoryModel(nn.Module):
    """u(t, x | u₀, p): initial states, points, query times and PDE parameters in; the whole trajectory out.

    A bare network: times are scaled (the training horizon is (0, 1]), fields and parameters normalised.
    `forward` is `query(encode(…), t)`; calling the two apart lets one encoding serve many query times.
    """

    ndim: int
    channels: int
    params: int
    independent_times = True
    """Whether an answer costs the same asked alone; a rollout passes all earlier times on the way."""
    one_instance = False
    """Whether the model is the solution from one initial state, and knows no other."""
    scattered = False
    """Whether points may lie anywhere; otherwise they make a regular grid."""
    uneven = True
    """Whether distances between neighbours on a grid may differ."""
    half_kernels = False
    """Whether parts of it run as fused kernels on a GPU, which multiply in half precision."""
    fusible = True
    """Whether it can be compiled and a step of its training recorded; not if it reads numbers back from the device."""

    def forward(
        self,
        u0: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "b *x D"],
        t: Float[Tensor, " t"] | Float[Tensor, "b t"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> Float[Tensor, "b t *x c"]:
        check_shapes(self, u0, grid, t, params)
        return self.query(self.encode(u0, grid, params), t)

    @abstractmethod
    def encode(self, u0: Tensor, grid: Tensor, params: Tensor | None = None) -> Any:
        """Whatever of the initial state does not depend on the query times."""

    @abstractmethod
    def query(self, latent: Any, t: Tensor) -> Float[Tensor, "b t *x c"]:
        """The solution at times `t` from what `encode` gave."""

    def points_in_flight(self, device: torch.device) -> int:
        """Of a chunk in `predict` by default: as many as keep the device busy, which is far fewer than fit, so that
        caches are used too and memory stays free."""
        return POINTS_ON_GPU if device.type == "cuda" else POINTS_ON_CPU[self.ndim]

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        """Whether what was learnt on a grid of `trained` points a side is meant to hold on one of `sides`."""
        return True

    def times_in_flight(self, times: int) -> int:
        """How many of so many times are computed together, at the least."""
        return 1 if self.independent_times else times

    def query_in_parts(self, latent: Any, t: Tensor, times: int) -> Iterator[Float[Tensor, "b part *x c"]]:
        """`query` of so many times after so many; of all at once where each has to pass the earlier ones."""
        parts = t.split(times, dim=-1) if self.independent_times else (t,)
        return (self.query(latent, part) for part in parts)

    @torch.no_grad()
    def predict(
        self,
        u0: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "b *x D"],
        t: Float[Tensor, " t"] | Float[Tensor, "b t"],
        params: Float[Tensor, "b p"] | None = None,
        *,
        points_per_chunk: int | None = None,
        precision: str = "fp16",
    ) -> Float[Tensor, "b t *x c"]:
        """`forward` without gradients, with values checked, in chunks of samples and times that bound the memory.

        Neither samples nor query times interact, so chunks give the same answer as all at once. `points_per_chunk` is
        how many points (samples · times · points of the grid) are in flight; the default fits caches or the GPU.
        Of a model that steps, one step is in flight.

        `precision` is that of what VCNeF multiplies on a GPU, in fused kernels where they serve: "fp16" (changes its
        output by about 4e-4 of its norm) or "bf16"; "tf32" and "fp32" are without kernels, and so are other models.
        Where numbers are too large for fp16, the answer is given in bf16. A CPU computes in fp32, but for "bf16" where
        it has instructions for it (changes the output by about 2e-3 of its norm).
        """
        check_shapes(self, u0, grid, t, params)
        check_finite(u0=u0, grid=grid, t=t, params=params)
        shape = len(u0), t.shape[-1], *u0.shape[1:]
        if not prod(shape):
            return u0.new_empty(shape)  # transforms and convolutions differ in whether they take nothing
        budget = self.points_in_flight(u0.device) if points_per_chunk is None else points_per_chunk
        samples, times = _chunk_sizes(u0, budget, self.times_in_flight(t.shape[-1]))
        answer = u0.new_empty(shape)
        for start in range(0, len(u0), samples):
            rows = slice(start, start + samples)
            with chosen_precision(precision):
                latent = self.encode(u0[rows], _rows(grid, rows, shared=u0.ndim - 1), _rows(params, rows))
                _fill(answer[rows], self.query_in_parts(latent, _rows(t, rows, shared=1), times))
        halved = self.half_kernels and precision == "fp16" and answer.is_cuda
        if halved and not all_finite(answer):
            return self.predict(u0, grid, t, params, points_per_chunk=points_per_chunk, precision="bf16")
        return answer


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
        """As of a `TrajectoryModel`."""
        return True

    @abstractmethod
    def forward(
        self,
        u: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "_ *x D"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> Float[Tensor, "b *x c"]:
        """The next frame."""

    def advance(
        self,
        u: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "_ *x D"],
        params: Float[Tensor, "b p"] | None,
        t: Float[Tensor, " b"],
    ) -> Float[Tensor, "b k *x c"]:
        """The next `frames` frames after time `t`; a stepper that gives several at once, or needs to know the time,
        has its own."""
        return self(u, grid, params).unsqueeze(1)


def number_of_weights(model: nn.Module) -> int:
    """How many numbers a model has learnt or will learn; a complex weight is two."""
    return sum(weight.numel() * (1 + weight.is_complex()) for weight in model.parameters())


def _chunk_sizes(u0: Tensor, budget: int, least_times: int) -> tuple[int, int]:
    """How many samples, and how many times of each, make a chunk of about so many points."""
    if budget < 1:
        raise ValueError(f"points_per_chunk is {budget}; expected at least 1, or None for the default.")
    points = prod(u0.shape[1:-1])
    samples = min(max(budget // (points * least_times), 1), len(u0))
    return samples, max(budget // (points * samples), least_times)


def _rows(values: Tensor | None, rows: slice, shared: int | None = None) -> Tensor | None:
    """Those rows of what each sample has for itself; what all samples share, told by its rank, stays whole."""
    return values if values is None or values.ndim == shared else values[rows]


def _fill(answer: Float[Tensor, "b t *x c"], parts: Iterator[Tensor]) -> None:
    """Write parts one after the other, so that no two of them take memory at once."""
    first = 0
    for part in parts:
        answer[:, first : first + part.shape[1]] = part
        first += part.shape[1]
        del part


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
    if u0.ndim < 3 or u0.shape[-1] != model.channels:
        raise ValueError(
            f"{name} expects u0 of shape (batch, *space, {model.channels}), got {tuple(u0.shape)}. "
            "The last axis holds the channels."
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
        got = "none" if params is None else tuple(params.shape)
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
        if bad := int((~values.isfinite()).sum()):
            raise ValueError(
                f"{name} has {bad} non-finite values among {values.numel()}; expected finite numbers. "
                "Remove or repair those samples first."
            )


def all_finite(*tensors: Tensor) -> bool:
    """Asked of the device once, in few operations: x − x is 0, or NaN, which is as good as true."""
    return not bool(torch.stack([(each - each).any() for each in tensors]).any())
