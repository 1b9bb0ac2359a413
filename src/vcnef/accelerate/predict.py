"""Predictions in chunks that bound the memory, by the fastest engine that computes the same."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.engine import Engine, inference_engine
from vcnef.accelerate.numbers import multiplying
from vcnef.models.interface import TrajectoryModel, all_finite, check_finite, check_shapes
from vcnef.models.vcnef import PatchEncoder, VCNeF

POINTS_ON_GPU = 2**20
POINTS_ON_CPU = {1: 2**13, 2: 2**16, 3: 2**18}
"""Default size of a chunk, in points; on a CPU by the number of dimensions: models of more have larger weights to read
for every chunk, or tokens that stand for more points."""

MORE_FOR_PATCHES = 4
"""On a GPU, chunks are larger by this factor where a token is a patch: there are fewer tokens then."""


def predict(
    model: TrajectoryModel,
    u0: Float[Tensor, "b *x i"],
    grid: Float[Tensor, "*x D"] | Float[Tensor, "b *x D"],
    t: Float[Tensor, " t"] | Float[Tensor, "b t"],
    params: Float[Tensor, "b p"] | None = None,
    *,
    points_per_chunk: int | None = None,
    precision: str = "fp16",
) -> Float[Tensor, "b t *x c"]:
    """`model(u0, grid, t, params)` without gradients, with values checked, in chunks of samples and times.

    Neither samples nor query times interact, so chunks give the same answer as all at once. `points_per_chunk` is how
    many points (samples · times · points of the grid) are computed at once; the default fits caches or the GPU. Of a
    model that steps, one step is computed at once.

    `precision` is that of what VCNeF multiplies on a GPU: "fp16" (changes its output by about 4e-4 of its norm) or
    "bf16", by fused kernels where they serve; "tf32" and "fp32" are single precision, and so are other models. Where
    numbers are too large for fp16, the answer is given in bf16. A CPU computes in fp32, but for "bf16" where it has
    instructions for it (changes the output by about 2e-3 of its norm).
    """
    return Predictor(model)(u0, grid, t, params, points_per_chunk=points_per_chunk, precision=precision)


class Predictor:
    """`predict` of one model, again and again: how it is computed is decided once, so its weights must stay."""

    def __init__(self, model: TrajectoryModel) -> None:
        self.model = model
        self._engines: dict[tuple[torch.device, str], Engine] = {}

    @torch.no_grad()
    def __call__(
        self,
        u0: Float[Tensor, "b *x i"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "b *x D"],
        t: Float[Tensor, " t"] | Float[Tensor, "b t"],
        params: Float[Tensor, "b p"] | None = None,
        *,
        points_per_chunk: int | None = None,
        precision: str = "fp16",
    ) -> Float[Tensor, "b t *x c"]:
        model = self.model
        check_shapes(model, u0, grid, t, params)
        check_finite(u0=u0, grid=grid, t=t, params=params)
        shape = len(u0), t.shape[-1], *u0.shape[1:-1], model.channels
        if not prod(shape):
            return u0.new_empty(shape)  # transforms and convolutions differ in whether they take nothing
        budget = points_in_flight(model, u0.device) if points_per_chunk is None else points_per_chunk
        samples, times = _chunk_sizes(u0, budget, model.times_in_flight(t.shape[-1]))
        answer = u0.new_empty(shape)
        with multiplying(precision):
            engine = self._engine(u0.device, precision)
            for start in range(0, len(u0), samples):
                rows = slice(start, start + samples)
                latent = engine.encode(u0[rows], _rows(grid, rows, shared=u0.ndim - 1), _rows(params, rows))
                _fill(answer[rows], engine.query_in_parts(latent, _rows(t, rows, shared=1), times))
        if engine.half is torch.float16 and not all_finite(answer):
            return self(u0, grid, t, params, points_per_chunk=points_per_chunk, precision="bf16")
        return answer

    def _engine(self, device: torch.device, precision: str) -> Engine:
        if (device, precision) not in self._engines:
            self._engines[device, precision] = inference_engine(self.model, device, precision)
        return self._engines[device, precision]


def points_in_flight(model: TrajectoryModel, device: torch.device) -> int:
    """Default size of a chunk: enough points to keep the device busy, few enough to stay in caches and leave memory
    free."""
    patches = isinstance(model, VCNeF) and isinstance(model.encoder, PatchEncoder)
    if device.type == "cuda":
        return POINTS_ON_GPU * (MORE_FOR_PATCHES if patches else 1)
    # With a token per point, a CPU's caches hold as many in all dimensions.
    return POINTS_ON_CPU[1 if isinstance(model, VCNeF) and not patches else model.ndim]


def _chunk_sizes(u0: Tensor, budget: int, least_times: int) -> tuple[int, int]:
    """Return how many samples, and how many times of each, make a chunk of about so many points."""
    if budget < 1:
        raise ValueError(f"points_per_chunk is {budget}; expected at least 1, or None for the default.")
    points = prod(u0.shape[1:-1])
    samples = min(max(budget // (points * least_times), 1), len(u0))
    return samples, max(budget // (points * samples), least_times)


def _rows(values: Tensor | None, rows: slice, shared: int | None = None) -> Tensor | None:
    """Return those rows of what each sample has for itself; what all samples share, told by its rank, stays whole."""
    return values if values is None or values.ndim == shared else values[rows]


def _fill(answer: Float[Tensor, "b t *x c"], parts: Iterator[Tensor]) -> None:
    """Write parts one after the other, so that no two of them take memory at once."""
    first = 0
    for part in parts:
        answer[:, first : first + part.shape[1]] = part
        first += part.shape[1]
        del part
