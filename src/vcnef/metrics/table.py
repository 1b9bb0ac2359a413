"""From fields to small tables of numbers: checks, given frames, double precision and averages, for all metrics."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from einops import reduce
from jaxtyping import Bool, Float
from torch import Tensor

CHUNK = 2**22
"""Numbers converted to double at once; bounds the extra memory of a metric to some hundred megabytes."""


@dataclass(frozen=True)
class Table:
    """A value for each sample `b`, time `t` and channel `c`, or for some of these, as `axes` says.

    Entries that are not `defined` (a relative error where the target is zero) hold NaN and stay out of averages.
    A NaN that a prediction brought in is defined, and makes every average it belongs to NaN.
    """

    axes: str
    values: Float[Tensor, "*axes"]
    defined: Bool[Tensor, "*axes"]

    def mean(self, keep: str = "") -> Float[Tensor, "*kept"]:
        """Average of the defined entries over the axes not named in `keep`; NaN where none is defined."""
        pattern = reduction(self.axes, keep)
        total = reduce(self.values.where(self.defined, 0.0), pattern, "sum")
        return total / reduce(self.defined.to(total.dtype), pattern, "sum")

    def sums(self) -> Float[Tensor, " 2"]:
        """Sum and number of the defined entries: over batches, the first by the second is the mean of them all."""
        return torch.stack([self.values.where(self.defined, 0.0).sum(), self.defined.sum().to(self.values)])

    def largest(self, keep: str = "") -> Float[Tensor, "*kept"]:
        """Maximum over the axes not named in `keep`; NaN wins."""
        return reduce(self.values, reduction(self.axes, keep), "max")

    def warn_left_out(self, metric: str, why: str) -> Table:
        """Say how many entries the averages leave out, in a warning that points at the caller of the metric."""
        left_out = int((~self.defined).sum())
        if left_out:
            message = f"{metric} leaves out {left_out} of {self.defined.numel()} values: {why}."
            warnings.warn(message, UserWarning, stacklevel=3)
        return self


def reduction(axes: str, keep: str) -> str:
    """The einops pattern that leaves the axes in `keep`."""
    if not isinstance(keep, str) or len(set(keep.split())) < len(keep.split()):
        raise ValueError(f"keep is {keep!r}; expected names in one string, each once. Write them as in keep='b t'.")
    if not set(keep.split()) <= set(axes.split()):
        raise ValueError(
            f"keep={keep!r} names an axis that is not among {axes!r}. Name some of these, or none for one number."
        )
    return f"{axes} -> {keep}"


def complete(axes: str, values: Float[Tensor, "*axes"]) -> Table:
    """A table with every entry defined."""
    return Table(axes, values, torch.ones_like(values, dtype=torch.bool))


def ratio(axes: str, error: Float[Tensor, "*axes"], size: Float[Tensor, "*axes"]) -> Table:
    """error / size, undefined where the size is exactly zero and the error finite."""
    defined = (size != 0) | ~error.isfinite()
    return Table(axes, (error / size).where(defined, torch.nan), defined)


def check_tensor(what: str, given: Any) -> None:
    if not isinstance(given, Tensor):
        raise TypeError(
            f"The {what} is of type {type(given).__name__}; expected a tensor. "
            "Convert it with torch.as_tensor(u), a labelled array with torch.as_tensor(u.values)."
        )


def check_fields(pred: Any, target: Any, initial_frames: int) -> None:
    """The border of this room: both fields are tensors `b t *x c`, of one shape, with frames left to judge."""
    check_tensor("prediction", pred)
    check_tensor("target", target)
    if pred.shape != target.shape:
        raise ValueError(
            f"The prediction has shape {tuple(pred.shape)} and the target {tuple(target.shape)}. "
            "Both must have the same axes: sample, time, 1 to 3 of space, channel."
        )
    if not 4 <= pred.ndim <= 6 or pred.numel() == 0:
        raise ValueError(
            f"Expected non-empty fields with axes sample, time, 1 to 3 of space, channel; got {tuple(pred.shape)}. "
            "Add axes of length one where one is missing, and flatten space where it has more."
        )
    if not 0 <= initial_frames < pred.shape[1]:
        raise ValueError(
            f"Of {pred.shape[1]} frames, {initial_frames} count as given, which leaves none to judge. "
            "Pass initial_frames=0 if the prediction does not contain the initial state."
        )


def tabulate(core: Callable[..., Tensor], *fields: Tensor, initial_frames: int) -> Tensor:
    """core(*fields) for all frames but the first `initial_frames`, in double precision and a bounded amount of memory.

    A core maps fields `b t *x c` to a tensor `b t …` frame by frame, so samples and times can be done in any portions.
    """
    judged = [field[:, initial_frames:] for field in fields]
    times = judged[0].shape[1]
    frames = max(1, CHUNK // judged[0][0, 0].numel())
    rows = []
    for samples in zip(*(field.split(max(1, frames // times)) for field in judged), strict=True):
        portions = zip(*(part.split(min(times, frames), dim=1) for part in samples), strict=True)
        rows.append(torch.cat([core(*map(_double, portion)) for portion in portions], dim=1))
    return torch.cat(rows)


def points(u: Float[Tensor, "b t *x c"]) -> Float[Tensor, "b t n c"]:
    """All space axes as one."""
    return u.flatten(2, -2)


def mean_square(u: Float[Tensor, "b t *x c"]) -> Float[Tensor, "b t c"]:
    """Mean over space of u²."""
    return points(u).square().mean(dim=2)


def _double(field: Tensor) -> Tensor:
    # Apple GPUs have no double precision; the processor takes over there.
    return (field.cpu() if field.device.type == "mps" else field).double()
