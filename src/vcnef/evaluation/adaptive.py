"""A surrogate that is judged on windows of adaptive lengths, and what is to be said of them."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.evaluation.tables import number
from vcnef.surrogate import Surrogate
from vcnef.surrogate.adaptive import Steps, check_tolerance


class AdaptiveAnswers:
    """`answer` of a surrogate with a tolerance; it remembers how each one was composed."""

    def __init__(self, surrogate: Any, tolerance: float | int) -> None:
        if not isinstance(surrogate, Surrogate):
            raise ValueError(
                f"tolerance is {tolerance:g}, but the model is none of vcnef's surrogates, whose windows could be "
                "chosen. Leave it out."
            )
        check_tolerance(tolerance, composes=surrogate.composes, name=surrogate.name, history=surrogate.history)
        self.surrogate, self.tolerance, self.scaling = surrogate, tolerance, surrogate.scaling
        self.taken: list[Steps] = []

    def answer(
        self,
        u0: Float[Tensor, "b *_ c"],
        grid: Float[Tensor, "*x D"],
        t: Float[Tensor, " t"],
        params: Float[Tensor, "b p"] | Float[Tensor, "b r p"],
        **known: Any,
    ) -> Float[Tensor, "b t *x c"]:
        """`known` is what an answer needs to know of time: `start` and `params_t`."""
        u, steps = self.surrogate.answer_adaptively(u0, grid, t, params, tolerance=self.tolerance, **known)
        self.taken.append(steps)
        return u

    def notes(self) -> list[str]:
        """How many windows there were so far, the estimated error, and reasons to doubt it."""
        error = torch.cat([each.error for each in self.taken])
        windows = torch.cat([each.windows for each in self.taken])
        failed = torch.cat([each.failed for each in self.taken])
        shortest, calls = min(each.shortest for each in self.taken), sum(each.calls for each in self.taken)
        together = Steps(self.tolerance, error, windows, shortest, failed, calls)
        said = (
            f"Windows were chosen with a tolerance of {self.tolerance:g}: {windows.double().mean():.1f} for a "
            f"trajectory, the shortest {shortest:.4g} long. By the end, the estimated error is "
            f"{number(error.mean().item())} in the mean and {number(error.max().item())} at most."
        )
        return [said, *together.doubts(self.surrogate.provenance)]
