"""VCNeF with the algebra that saves work: the answers of `models/vcnef.py` from the same modules.

1. Coordinates are a sum, c[t, s] = time[t] + space[s]: the first map of every MLP(C) sees t + s rows, not t · s.
2. Before the first modulation nothing depends on t, so `encode` goes as far as σ(W' z) of the first modulation block.
3. Linear maps fold: values and output projection of linear attention, patch decoders and their weighted sum.

How each part is computed was decided before (`engine.py`); this file only puts the parts together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.accelerate.blocks import Coordinates, OwnCoordinates, branches_together
from vcnef.accelerate.recognise import change_in
from vcnef.models.interface import check_shapes
from vcnef.models.vcnef import Nothing, VCNeF
from vcnef.models.vcnef_beyond import InterleavedVCNeF, interleaved, take_apart, together

SHARED_SHARE = 8
"""Features of coordinates that all samples share may take up to 1/8 of the tokens in a chunk."""


class SummedCoordinates(NamedTuple):
    """Coordinates whose features are a sum of one part for time and one for space."""

    encode_space: Callable[[Tensor], Tensor]
    encode_time: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Parts:
    """How each part of a model is computed: functions and blocks with the signatures of the reference's parts."""

    encoder: Callable[..., Tensor]
    coordinates: SummedCoordinates | nn.Module
    blocks: list[Any]
    norm: Callable[[Tensor], Tensor]
    modulations: list[Any]
    decoder: Any
    branches_at_once: bool = False
    """Whether MLP(C) of all blocks goes through the same products."""
    decodes_last: bool = False
    """Whether the last modulation block and the decoder are one kernel."""


class FastLatent(NamedTuple):
    """All of a question that no query time changes; `first` is the first modulation block, begun.

    `asked` is the initial state as it was given; `u0` that on the grids that are computed, interleaved ones apart.
    """

    asked: Float[Tensor, "_ *y i"]
    u0: Float[Tensor, "b *x i"]
    params: Float[Tensor, "b p"] | None
    first: Any
    x: Float[Tensor, "b_or_1 *x f"]
    space: Float[Tensor, "b_or_1 s d"] | None
    counts: tuple[int, ...]


class FastVCNeF:
    """An engine: `forward` for training, `encode` and `query_in_parts` for prediction."""

    def __init__(self, model: VCNeF, parts: Parts, plan: dict[str, str], half: torch.dtype | None) -> None:
        """`plan` says of each part how it is computed; `half` is the type of operands in half precision, if any."""
        self.model, self.parts, self.plan, self.half = model, parts, plan, half
        self.has_clocks = type(model.clocks) is not Nothing
        self.has_start = change_in(model.start, [Nothing]) is not None

    def forward(
        self,
        u0: Float[Tensor, "b *x i"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "b *x D"],
        t: Float[Tensor, " t"] | Float[Tensor, "b t"],
        params: Float[Tensor, "b p"] | None = None,
    ) -> Float[Tensor, "b t *x c"]:
        check_shapes(self.model, u0, grid, t, params)
        latent = self._encode(u0, grid, params)
        t = self._rows(latent, t)
        return self._answer(latent, self._fields(latent, t), t)

    def encode(self, u0: Tensor, grid: Tensor, params: Tensor | None) -> FastLatent:
        with self.precision(u0):
            return self._encode(u0, grid, params)

    def query_in_parts(self, latent: FastLatent, t: Tensor, times: int) -> Iterator[Float[Tensor, "b part *x c"]]:
        """Yield answers for `times` times after each other; what only coordinates make is computed for many of them."""
        shared = t.ndim == 1 and len(latent.x) == 1 and not self.has_clocks
        t = self._rows(latent, t)
        if not shared:
            for chunk in t.split(times, dim=1):
                yield self._part(latent, self._fields(latent, chunk), chunk)
            return
        for chunk in t.split(times * max(1, len(latent.u0) // SHARED_SHARE), dim=1):
            with self.precision(chunk):
                fields = list(self._fields(latent, chunk))
            for first in range(0, chunk.shape[1], times):
                here = slice(first, first + times)
                yield self._part(latent, iter([field[:, here] for field in fields]), chunk[:, here])

    def _part(
        self, latent: FastLatent, fields: Iterator[Tensor], t: Float[Tensor, "b_or_1 t"]
    ) -> Float[Tensor, "b part *x c"]:
        with self.precision(latent.u0):
            return self._answer(latent, fields, t)

    def precision(self, x: Tensor) -> AbstractContextManager:
        """Autocasting to `half` on the device of `x`, around a prediction; in training, it is on already."""
        return nullcontext() if self.half is None else torch.autocast(x.device.type, self.half)

    def _encode(self, u0: Tensor, grid: Tensor, params: Tensor | None) -> FastLatent:
        model, parts = self.model, self.parts
        grid = grid if grid.ndim == u0.ndim else grid.unsqueeze(0)
        asked, counts = u0, (1,) * (u0.ndim - 2)
        if type(model) is InterleavedVCNeF:
            counts = interleaved(tuple(u0.shape[1:-1]), model.training_sides)
            u0, grid, params = take_apart(u0, grid, params, counts)
        x, sides = model.features(grid), tuple(u0.shape[1:-1])
        z = parts.encoder(u0, x, params)
        for block in parts.blocks:
            z = block.transform(z, sides)
        summed = isinstance(parts.coordinates, SummedCoordinates)
        space = parts.coordinates.encode_space(x) if summed else None
        begun = parts.modulations[0].begin(parts.norm(z).unsqueeze(1), sides)
        return FastLatent(asked, u0, params, begun, x, space, counts)

    def _rows(self, latent: FastLatent, t: Float[Tensor, " t"] | Float[Tensor, "_ t"]) -> Float[Tensor, "b_or_1 t"]:
        """Return the times of each of the samples that are computed, or of all."""
        return t.repeat_interleave(prod(latent.counts), 0) if t.ndim == 2 else t.unsqueeze(0)

    def _fields(self, latent: FastLatent, t: Float[Tensor, "b_or_1 t"]) -> Iterator[Float[Tensor, "b_or_1 t *sd"]]:
        """MLP(C) of each modulation block, one after the other."""
        coordinates, modulations = self._coordinates(latent, t), self.parts.modulations
        if self.parts.branches_at_once and len(coordinates.time) == len(coordinates.space) == 1:
            yield from branches_together([each.block.branch for each in modulations], coordinates)
            return
        for modulation in modulations:
            yield modulation.field(coordinates)

    def _coordinates(self, latent: FastLatent, t: Float[Tensor, "b_or_1 t"]) -> Coordinates | OwnCoordinates:
        coordinates = self.parts.coordinates
        if latent.space is None:
            return OwnCoordinates(coordinates(t, latent.x) + self.model.clocks(t, latent.params))
        time = coordinates.encode_time(t)
        if self.has_clocks:
            time = time + self.model.clocks(t, latent.params).squeeze(2)
        return Coordinates(time, latent.space)

    def _answer(
        self, latent: FastLatent, fields: Iterator[Tensor], t: Float[Tensor, "b_or_1 t"]
    ) -> Float[Tensor, "b t *x c"]:
        parts, sides = self.parts, tuple(latent.u0.shape[1:-1])
        first, *others = parts.modulations
        z = first.finish(latent.first, next(fields))
        last = others.pop() if parts.decodes_last and others else None
        for modulation in others:
            z = modulation.apply(z, next(fields), sides)
        if last is None:
            u = parts.decoder(z, sides)
        else:
            u = last.apply(z, next(fields), sides, parts.decoder.weights).unflatten(2, sides)
        u = together(u.to(latent.u0.dtype), latent.counts)
        if self.has_start:
            # Interleaved grids of a sample share its times.
            u = u + self.model.start(u, latent.asked, t[:: prod(latent.counts)])
        return u
