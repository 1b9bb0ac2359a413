"""One step of the optimiser: as the loop reads it, and recorded once and replayed on a GPU."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vcnef.data import Batch
from vcnef.training.gradients import clip
from vcnef.training.objectives import Objective
from vcnef.training.optimisers import set_rate
from vcnef.training.recipe import Recipe

if TYPE_CHECKING:
    from lightning_fabric import Fabric

WARM_UP = 3
"""Steps of a shape before it is recorded: compilers and libraries settle meanwhile."""
MOST_GRAPHS = 4
"""Shapes that are recorded: an epoch has two, that of its last batch among them."""

Tensors = tuple[Tensor, ...]


class Step:
    """θ ← optimiser(θ, clip(∇ loss(batch)))."""

    def __init__(self, fabric: Fabric, loss: Any, optimiser: Any, recipe: Recipe) -> None:
        self.fabric, self.loss, self.optimiser, self.recipe = fabric, loss, optimiser, recipe

    def __call__(self, batch: Batch, progress: float, rate: float) -> Tensor:
        """The loss before the step, on the device."""
        set_rate(self.optimiser, rate)
        return self._step(_tensors(batch), progress)

    def _step(self, tensors: Tensors, progress: float) -> Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.loss(*tensors, progress)
        self.fabric.backward(loss)
        if self.recipe.clip:
            precision = self.fabric.strategy.precision
            precision.unscale_gradients(self.optimiser)
            clip(precision.main_params(self.optimiser), self.recipe.clip)
        self.optimiser.step()
        return loss.detach()


class GraphedStep(Step):
    """The same step as a CUDA graph for each shape of batch: hundreds of kernels for the price of one launch.

    Small models are otherwise bound by the host that launches them. It is for steps that launch the same kernels
    throughout a phase of the run; `phases` are the parts of the run after which another one begins. The rate is the
    number that changes, so it lives on the device.
    """

    def __init__(
        self, fabric: Fabric, loss: Any, optimiser: Any, recipe: Recipe, phases: tuple[float, ...] = ()
    ) -> None:
        super().__init__(fabric, loss, optimiser, recipe)
        for group in optimiser.param_groups:
            group["lr"] = torch.tensor(float(group["lr"]), device=fabric.device)
        self.phases, self.phase = sorted(phases), 0
        # What its kernels compute beside others comes second.
        self.stream = torch.cuda.Stream(fabric.device, priority=-1)
        self.seen: Counter[tuple[torch.Size, ...]] = Counter()
        self.graphs: dict[tuple[torch.Size, ...], tuple[torch.cuda.CUDAGraph, Tensors, Tensor]] = {}

    def _step(self, tensors: Tensors, progress: float) -> Tensor:
        self._enter(bisect_left(self.phases, progress))
        # Strides like those of the recorded copies: others would make the compiler start again while recording.
        tensors = tuple(each.contiguous() for each in tensors)
        shapes = tuple(each.shape for each in tensors)
        if shapes in self.graphs:
            graph, inputs, loss = self.graphs[shapes]
            torch._foreach_copy_(inputs, tensors)
            graph.replay()
            return loss
        self.seen[shapes] += 1
        if self.seen[shapes] <= WARM_UP or len(self.graphs) == MOST_GRAPHS:
            return self._on_own_stream(tensors, progress)
        self._record(shapes, tensors, progress)
        return self._step(tensors, progress)

    def _enter(self, phase: int) -> None:
        """Recordings of another phase are of no use any more."""
        if phase != self.phase:
            self.phase = phase
            self.seen.clear()
            self.graphs.clear()

    def _on_own_stream(self, tensors: Tensors, progress: float) -> Tensor:
        """Gradients remember the stream that they were first made on, which must be the one that is recorded."""
        current = torch.cuda.current_stream(self.fabric.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            loss = super()._step(tensors, progress)
        current.wait_stream(self.stream)
        return loss

    def _record(self, shapes: tuple[torch.Size, ...], tensors: Tensors, progress: float) -> None:
        inputs = tuple(each.clone() for each in tensors)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            loss = super()._step(inputs, progress)
        self.graphs[shapes] = graph, inputs, loss


def build_step(fabric: Fabric, loss: Any, optimiser: Any, recipe: Recipe, objective: Objective) -> Step:
    """Recorded on one GPU, if the objective launches the same kernels throughout a phase."""
    possible = fabric.device.type == "cuda" and fabric.world_size == 1
    if possible and getattr(objective, "static", False) and recipe.compile is not False:
        return GraphedStep(fabric, loss, optimiser, recipe, getattr(objective, "phases", ()))
    return Step(fabric, loss, optimiser, recipe)


def _tensors(batch: Batch) -> Tensors:
    return batch.u0, batch.grid, batch.t, batch.params, batch.u
