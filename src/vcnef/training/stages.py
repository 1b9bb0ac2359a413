"""The loss of CORAL: first how a frame is encoded, then how its code moves, in one run."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data import Batch
from vcnef.models.coral import Coral
from vcnef.training.losses import Error, mean_square

FORCING, NO_FORCING = 0.99, 1e-3
"""The first share of frames from which the dynamics start anew, also its factor; what is smaller is none."""
FRAMES_AT_ONCE = 512
"""Frames whose codes are found together in the second stage, which bounds the memory."""


@dataclass(frozen=True, eq=False)
class TwoStages:
    """First ⟨error(f(x; z(u)), u)⟩ over some frames, for the SIREN; then ⟨(ẑ − z)²⟩ over all, for the dynamics alone.

    Until `switch`, gradients run through the inner steps (second order), and mean and deviation of the codes are
    noted. After it all that is fixed. The dynamics start anew from a true code in a random share ε of the frames, 0.99
    at first, times 0.99 again and again. The published schedule multiplies 50 times (every 10 of 500 epochs), which
    leaves ε at 0.60: the model never practises what it is asked for. `decays` is 700 here, so that ε ends at 0.

    Codes are found anew in every step of the second stage, since batches do not say which trajectories they hold.
    """

    error: Error
    switch: float = 2 / 3
    """Part of the run for the first stage: 1000 of 1500 epochs."""
    frames_per_sample: int = 4
    """Of each trajectory, drawn anew in each step of the first stage; u₀ is one of those that may be drawn."""
    decays: int = 700

    def __call__(self, model: Coral, batch: Batch, progress: float) -> Float[Tensor, ""]:
        frames = torch.cat([batch.u0[:, None], batch.u], dim=1)
        if progress <= self.switch:
            return self._reconstruct(model, frames, batch.grid[None])
        params = batch.params if model.params else None
        return self._follow(model, frames, batch.grid[None], params, self.forcing(progress))

    def forcing(self, progress: float) -> float:
        """The share ε of frames from which the dynamics start anew."""
        part = (progress - self.switch) / (1 - self.switch)
        share = FORCING ** (1 + int(self.decays * part))
        return share if share >= NO_FORCING else 0.0

    def _reconstruct(self, model: Coral, frames: Tensor, grid: Tensor) -> Float[Tensor, ""]:
        # Drawn on the host, so that no step waits for the device.
        chosen = torch.rand(frames.shape[:2]).argsort(dim=1)[:, : self.frames_per_sample]
        some = frames[torch.arange(len(frames))[:, None], chosen].flatten(0, 1)
        codes = model.find_codes(some, grid)
        model.note_codes(codes.detach())
        return self.error(model.decode(codes[:, None], grid), some[:, None])

    def _follow(
        self, model: Coral, frames: Tensor, grid: Tensor, params: Tensor | None, forcing: float
    ) -> Float[Tensor, ""]:
        with torch.no_grad():
            codes = torch.cat([model.find_codes(some, grid) for some in frames.flatten(0, 1).split(FRAMES_AT_ONCE)])
        true = model.standardise(codes).unflatten(0, frames.shape[:2])
        anew = torch.rand(true.shape[1] - 1) < forcing
        anew[0] = True
        starts = anew.nonzero().flatten()
        # The step to frame k + 1 belongs to the last start up to frame k; all starts go the way of the longest.
        start = anew.cumsum(dim=0) - 1
        since = torch.arange(1, len(anew) + 1) - starts[start]
        repeated = None if params is None else params.repeat_interleave(len(starts), dim=0)
        path = model.integrate(true[:, starts].flatten(0, 1), int(since.max()), repeated)
        return mean_square(path.unflatten(0, (len(true), -1))[:, start, since], true[:, 1:])
