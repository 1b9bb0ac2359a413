"""An operation: its fast implementation, its baseline, its requirements and its examples, in one object.

Parity tests and benchmarks take all of it from here: an operation that `registry` lists is tested and timed with no
further code.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

EPS = 1e-5
"""Of the norms in examples."""

TRAINING_TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
INFERENCE_TOLERANCE = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}


@dataclass(frozen=True)
class Sizes:
    """Sizes of an example's inputs, and how these are drawn."""

    width: int = 96
    heads: int = 8
    points: int = 64
    batch: int = 2
    times: int = 3
    activation: str = "relu"
    channels: int = 3
    shared: bool = True
    """Whether all samples have one modulating field."""
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    dtype: torch.dtype = torch.float32
    """The type of the operands in products."""
    between: torch.dtype = torch.float32
    """The type in which inference is given its tokens."""

    def draw(self, *shape: int) -> Tensor:
        return torch.randn(*shape, device=self.device)

    def tokens(self) -> Tensor:
        return self.draw(self.batch, self.times, self.points, self.width)

    def modulating_field(self) -> Tensor:
        return self.draw(1 if self.shared else self.batch, self.times, self.points, self.width)

    def linear(self, inputs: int, outputs: int) -> list[Tensor]:
        """Weight, stored `out in`, and bias, of a trained map's size."""
        return [self.draw(outputs, inputs) / inputs**0.5, 0.3 * self.draw(outputs)]

    def norm(self) -> list[Tensor]:
        return [1 + 0.2 * self.draw(self.width), 0.2 * self.draw(self.width)]

    def square(self) -> list[Tensor]:
        return self.linear(self.width, self.width)


@dataclass(frozen=True)
class Example:
    """Tensors that an operation may be given: what comes from data, and what a model has learnt.

    `arrange` makes the arguments of the operation from all of them, in this order.
    """

    label: str
    data: list[Tensor]
    learnt: list[Tensor]
    arrange: Callable[..., tuple[Any, ...]]
    operation: "Operation | None" = None

    @property
    def inputs(self) -> list[Tensor]:
        return [*self.data, *self.learnt]

    def fast(self, *inputs: Tensor) -> Any:
        return self.operation.fast(*self.arrange(*inputs))

    def baseline(self, *inputs: Tensor) -> Any:
        return self.operation.baseline(*self.arrange(*inputs))


@dataclass(frozen=True)
class Operation:
    """`fast` and `baseline` take the same arguments; a call is one of `fast`, with no check.

    `obstacle` says why `fast` cannot serve inputs of some kind, or gives None; its arguments are named as in `Sizes`.
    `tolerance` is the most that ‖fast − baseline‖ / ‖baseline‖ may be, where both are given the same rounded numbers
    and the baseline computes in single precision; operands in single precision are for Triton's interpreter alone,
    unless there are no others.
    """

    name: str
    fast: Callable[..., Any]
    baseline: Callable[..., Any]
    obstacle: Callable[..., str | None]
    make_examples: Callable[[Sizes], Iterator[Example]]
    differentiable: bool
    tolerance: Mapping[torch.dtype, float]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fast(*args, **kwargs)

    def examples(self, sizes: Sizes) -> Iterator[Example]:
        """Yield labelled inputs in every way that the operation may be called."""
        for each in self.make_examples(sizes):
            yield Example(f"{self.name} {each.label}".strip(), each.data, each.learnt, each.arrange, self)
