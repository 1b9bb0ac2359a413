"""How a model is trained: every knob of the loop, with the paper's values as defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from numbers import Integral
from typing import Any, Literal, get_args, get_type_hints

import numpy as np

from vcnef.checks import check_choice


@dataclass(frozen=True)
class Recipe:
    """The paper's recipe for VCNeF, unless said otherwise: Adam, one cycle, plain mean squared error."""

    epochs: int = 500
    """Passes over the training split."""
    minutes: float | None = None
    """Stop after so much time; the schedule then follows the clock, so that it still ends where it should."""
    batch: int = 64
    """Samples per step, over all devices together."""

    optimiser: Literal["adam", "adamw", "muon"] = "adam"
    """"muon" takes the matrices inside the network; all other weights go to AdamW."""
    learning_rate: float = 3e-4
    """The largest one."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Factors of it for weights whose names begin with a key, e.g. {"siren": 0.005}."""
    weight_decay: float = 0.0
    """Share of the learning rate by which weights shrink in each step."""
    clip: float | None = 1.5
    """Largest norm of the gradient."""
    ema: float | None = None
    """Decay of an average of the weights, e.g. 0.999; the average is then evaluated and saved."""

    schedule: Literal["one_cycle", "step", "multi_step", "cosine", "constant"] = "one_cycle"
    warm_up: float = 0.2
    """Part of the run in which "one_cycle" rises from 1/1000 of the rate, and "cosine" from 0."""
    step_epochs: int = 100
    """Every so many epochs, "step" multiplies the rate by `step_factor`."""
    step_factor: float = 0.5
    """What "step" and "multi_step" multiply the learning rate by."""
    milestones: tuple[int, ...] = ()
    """After each of these epochs, "multi_step" multiplies the rate by `step_factor`."""

    loss: Literal["mse", "relative"] = "mse"
    """"relative" is the mean of ‖û − u‖ / ‖u‖ per sample, time and channel, which is what nRMSE measures."""
    unroll: Literal["full", "curriculum", "push_forward", "two_stage"] = "full"
    """For models that step: gradients through the whole rollout, a growing part of it, or the last step only.
    "two_stage" is for models that encode every frame: first the encoding, then the dynamics of the codes."""
    input_noise: float = 0.0
    """Standard deviation of noise on the state that a window or, with "curriculum", every step starts from, in the
    network's units."""
    semigroup: float = 0.0
    """Weight of a loss on windows that are asked in two parts, φ_{w − s}(φ_s(u)), with any s."""
    physics: float = 0.0
    """Weight of the residual of the equation."""
    physics_method: Literal["spectral", "finite_volume", "finite_difference"] = "spectral"
    """How derivatives in space are taken for it: exactly where the grid resolves the fields, as the benchmark's solvers
    do, or by differences of fourth order, which there are between walls too."""
    physics_warm_up: float = 0.0
    """Part of the run over which its weight rises from 0."""
    data_weight: float = 1.0
    """Weight of the loss on trajectories; 0 trains on the equation and the initial states alone."""

    precision: Literal["fp32", "tf32", "bf16", "fp16", "half"] = "fp32"
    """On a GPU "half" is fp16, which is eight times finer than bf16; elsewhere it is bf16."""
    compile: bool | None = None
    """Fuse the model with `torch.compile`; by default on a GPU, in runs of four minutes or more. Unless it is false,
    steps on one GPU are replayed as CUDA graphs."""
    seed: int = 0
    """Decides the initial weights, the order of the samples and whatever else is drawn."""
    validate_every: int = 1
    """Epochs between evaluations on the validation split."""
    save_every: int = 1
    """Epochs between saved states, from which an interrupted run resumes."""
    logs: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Beside the JSON lines that are always written."""

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, _plain(getattr(self, each.name)))
        self._check_choices()
        for name in ("epochs", "batch", "step_epochs", "validate_every", "save_every"):
            if not isinstance(getattr(self, name), Integral) or getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a whole number of at least 1.")
        # Torch takes 64 bits, and several processes count on from it.
        if not isinstance(self.seed, Integral) or abs(self.seed) >= 10**18:
            raise ValueError(f"seed is {self.seed}; expected a whole number of up to 18 digits.")
        for name in ("minutes", "learning_rate", "clip", "step_factor"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}; expected a number above 0.")
        for key, factor in self.rates.items():
            if not (isfinite(factor) and factor > 0):
                raise ValueError(f"rates has {factor} for {key!r}; expected a number above 0.")
        for name in ("weight_decay", "input_noise", "semigroup", "physics", "data_weight"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value}; expected 0 or more, and finite.")
        for name in ("warm_up", "physics_warm_up", "ema"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"{name} is {value}; expected a part of 1, at least 0 and below 1.")
        if any(milestone < 1 for milestone in self.milestones):
            raise ValueError(f"milestones is {tuple(self.milestones)}; expected epochs, each at least 1.")
        if not self.physics and not self.data_weight:
            raise ValueError("physics and data_weight are both 0, which leaves nothing to learn. Give one of them.")

    def _check_choices(self) -> None:
        """Of a configuration its types are checked; here, where a recipe is made in Python, nobody else does it."""
        hints = get_type_hints(Recipe)
        for name in ("optimiser", "schedule", "loss", "unroll", "physics_method", "precision"):
            check_choice(name, getattr(self, name), get_args(hints[name]))
        known, *_ = get_args(hints["logs"])
        for log in self.logs:
            check_choice("logs", log, get_args(known))


def _plain(value: Any) -> Any:
    """Numbers of NumPy as Python's: they can be neither written beside a model nor read from a state again."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return type(value)(map(_plain, value)) if isinstance(value, list | tuple) else value
