"""CORAL: a code per frame, found by gradient descent, and an ordinary differential equation for the codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import ceil, sqrt
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.checks import check_at_least, check_lengths
from vcnef.models.interface import TrajectoryModel, with_samples
from vcnef.models.rollout import pick_frames, refuse_past

BATCHES_REMEMBERED = 100
"""Batches that the statistics of the codes look back on."""

FIELDS_PER_CODE = 4
"""So many fields take the memory of finding one code, for which the gradient keeps something of every layer."""


def integrator() -> Callable[..., Any]:
    """Return torchdiffeq's integrator; asking before training says at once where it is not installed."""
    try:
        from torchdiffeq import odeint
    except ImportError:
        raise ValueError(
            "CORAL integrates its codes with torchdiffeq, which is not installed. "
            "Install it with: pip install 'vcnef[ode]'."
        ) from None
    return odeint


class Siren(nn.Module):
    """f(x; z) with h ← sin(w₀ (W h + b + s)) and a linear last layer (Sitzmann et al. 2020); the shifts s are W z + b.

    It wants coordinates and fields of order one.
    """

    def __init__(self, ndim: int, channels: int, *, latent: int, width: int, depth: int, w0: float) -> None:
        super().__init__()
        self.w0 = w0
        sides = [ndim, *[width] * (depth - 1), channels]
        layers = [nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sides)]
        self.layers = nn.ModuleList(layers)
        self.shifts = nn.Linear(latent, width * (depth - 1))
        for number, layer in enumerate(layers):
            # So that every layer sees the whole of the sine: the first through x itself, the others through w₀.
            bound = 1 / ndim
            if number:
                bound = sqrt(6 / width) / w0
            nn.init.uniform_(layer.weight, -bound, bound)
            nn.init.uniform_(layer.bias, -bound, bound)

    def forward(self, x: Float[Tensor, "#*n s D"], code: Float[Tensor, "#*n d"]) -> Float[Tensor, "*n s c"]:
        *inner, last = self.layers
        hidden = x
        for layer, shift in zip(inner, self.shifts(code).unsqueeze(-2).chunk(len(inner), dim=-1), strict=True):
            hidden = torch.sin(self.w0 * (layer(hidden) + shift))
        return last(hidden)


class Swish(nn.Module):
    """x σ(x softplus β) / 1.1 with a β that is learnt: its slope never exceeds one."""

    def __init__(self) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        return x * torch.sigmoid(x * F.softplus(self.beta)) / 1.1


class Dynamics(nn.Sequential):
    """g in dz/dt = g(z, p), time counted in frames; p is our addition, the published g knows z alone."""

    def __init__(self, latent: int, params: int, *, width: int, depth: int) -> None:
        sides = [latent + params, *[width] * depth]
        hidden: list[nn.Module] = []
        for inputs, outputs in pairwise(sides):
            hidden += [nn.Linear(inputs, outputs), Swish()]
        super().__init__(*hidden, nn.Linear(sides[-1], latent))


def outside_inference(tensor: Tensor) -> Tensor:
    """Return a tensor that may have gradients: one that inference mode has made may not, but its copy may."""
    if tensor.is_inference():
        return tensor.clone()
    return tensor


class CodeStart(NamedTuple):
    """What the dynamics begin with: a standardised code, the points to decode at, and the parameters."""

    code: Float[Tensor, "b d"]
    grid: Float[Tensor, "_ *x D"]
    params: Float[Tensor, "b p"] | None


class Coral(TrajectoryModel):
    """u(t, x) = f(x; z(t)), dz/dt = g(z), z(0) = argmin_z ⟨(f(x; z) − u₀)²⟩ by few steps (Serrano et al. 2023).

    One code per frame for all channels, as in the VCNeF paper. Codes are standardised before g sees them. The equation
    is integrated by RK4 with one step per frame of training, whatever times are asked for; between frames the code is
    the cubic with the values z and slopes g(z) at both ends. So finer times change neither clock nor integrator, both
    of which they do in the published code. Coordinates are divided by `lengths`, so that the SIREN sees order one.

    Trained by `unroll: two_stage` (`training/stages.py`). Breaks when: fields are far from order one, since the inner
    rate does not know their scale; or in half precision.
    """

    independent_times = False
    scattered = True
    lengths: Tensor
    mean: Tensor
    std: Tensor
    seen: Tensor

    def __init__(
        self,
        siren: Siren,
        dynamics: Dynamics,
        *,
        ndim: int,
        channels: int,
        params: int,
        steps: int,
        lengths: tuple[float, ...],
        inner_steps: int,
        inner_rate: float,
    ) -> None:
        super().__init__()
        self.ndim, self.channels, self.params = ndim, channels, params
        self.siren, self.dynamics = siren, dynamics
        self.steps, self.inner_steps = steps, inner_steps
        self.inner_rate = nn.Parameter(torch.tensor(inner_rate))
        latent = siren.shifts.in_features
        self.register_buffer("lengths", torch.tensor(lengths), persistent=False)
        self.register_buffer("mean", torch.zeros(latent))
        self.register_buffer("std", torch.ones(latent))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def encode(self, u0: Tensor, grid: Tensor, params: Tensor | None = None) -> CodeStart:
        per_sample = with_samples(grid, u0)
        return CodeStart(self.standardise(self.find_codes(u0, per_sample)), per_sample, params)

    def query(self, latent: CodeStart, t: Float[Tensor, " t"] | Float[Tensor, "b t"]) -> Float[Tensor, "b t *x c"]:
        return self.decode(self.codes_at(latent, t), latent.grid)

    def times_in_flight(self, times: int) -> int:
        """Return as many times as take the memory of the code that they begin with."""
        return min(times, FIELDS_PER_CODE)

    def query_in_parts(
        self, latent: CodeStart, t: Float[Tensor, " t"] | Float[Tensor, "b t"], times: int
    ) -> Iterator[Float[Tensor, "b part *x c"]]:
        """Yield the fields in parts; codes are small and pass all times at once."""
        return (self.decode(part, latent.grid) for part in self.codes_at(latent, t).split(times, dim=1))

    def codes_at(self, latent: CodeStart, t: Float[Tensor, " t"] | Float[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        """Return the codes at any times, as the SIREN takes them."""
        refuse_past(t)
        position = t * self.steps
        last = 1
        if t.numel():
            last = max(ceil(float(position.detach().max())), last)
        path = self.integrate(latent.code, last, latent.params)
        before = position.detach().floor().long().clamp(max=last - 1)
        code = self._between(path, self._slope(path, latent.params), before, (position - before)[..., None])
        return code * self.std + self.mean

    @torch._disable_dynamo  # a compiled gradient cannot be differentiated again
    def find_codes(self, u: Float[Tensor, "b *x c"], grid: Float[Tensor, "_ *x D"]) -> Float[Tensor, "b d"]:
        """Return the codes of frames: steps down the gradient of each one's reconstruction error, from zero.

        Differentiable while training, and where u or the grid want a gradient; otherwise the answer is a constant.
        Gradients may be switched off.
        """
        differentiable = torch.is_grad_enabled() and (self.training or u.requires_grad or grid.requires_grad)
        # Inference mode has no gradients to switch on, and its tensors have none outside it.
        with torch.inference_mode(False), torch.enable_grad():
            u, grid = outside_inference(u), outside_inference(grid)
            code = u.new_zeros(len(u), len(self.mean), requires_grad=True)
            for _ in range(self.inner_steps):
                # A sum over frames: none of them feels how many others there are.
                error = (self.decode(code[:, None], grid)[:, 0] - u).square().flatten(1).mean(dim=1).sum()
                (slope,) = torch.autograd.grad(error, code, create_graph=differentiable)
                code = code - self.inner_rate * slope
                if not differentiable:
                    code = code.detach().requires_grad_()
        if not differentiable:
            code = code.detach()
        return code

    def decode(self, code: Float[Tensor, "b t d"], grid: Float[Tensor, "_ *x D"]) -> Float[Tensor, "b t *x c"]:
        """Return the fields of codes, at any points."""
        sides = grid.shape[1:-1]
        return self.siren((grid / self.lengths).flatten(1, -2).unsqueeze(1), code).unflatten(2, sides)

    def integrate(
        self, code: Float[Tensor, "b d"], steps: int, params: Float[Tensor, "b p"] | None
    ) -> Float[Tensor, "b k d"]:
        """Return standardised codes at whole frames, the given one first."""
        odeint = integrator()
        clock = torch.arange(steps + 1, device=code.device, dtype=code.dtype)
        path = odeint(lambda _, now: self._slope(now[:, None], params)[:, 0], code, clock, method="rk4")
        return path.movedim(0, 1)

    def standardise(self, code: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return (code - self.mean) / self.std

    @torch.no_grad()
    def note_codes(self, code: Float[Tensor, "n d"]) -> None:
        """Let mean and standard deviation follow the codes of recent batches."""
        self.seen += 1
        share = (1 / self.seen).clamp(min=1 / BATCHES_REMEMBERED).to(code)
        self.mean.lerp_(code.mean(dim=0), share)
        # A dimension that no frame uses is left as it is.
        self.std.lerp_(code.std(dim=0, correction=0).clamp(min=1e-6), share)

    def _slope(self, code: Float[Tensor, "b k d"], params: Float[Tensor, "b p"] | None) -> Float[Tensor, "b k d"]:
        if params is None:
            return self.dynamics(code)
        return self.dynamics(torch.cat([code, params[:, None].expand(*code.shape[:2], -1)], dim=-1))

    def _between(self, path: Tensor, slope: Tensor, before: Tensor, share: Tensor) -> Float[Tensor, "b t d"]:
        """Return Hermite's cubic on the step from frame `before`, at a share of it."""
        first, last = pick_frames(path, before), pick_frames(path, before + 1)
        rise, fall = pick_frames(slope, before), pick_frames(slope, before + 1)
        rest = 1 - share
        ends = rest.square() * (1 + 2 * share) * first + share.square() * (1 + 2 * rest) * last
        return ends + share * rest.square() * rise - share.square() * rest * fall


def coral(
    ndim: int,
    channels: int,
    params: int = 0,
    *,
    steps: int = 40,
    latent: int = 256,
    width: int = 256,
    depth: int = 6,
    w0: float = 30.0,
    dynamics_width: int = 512,
    dynamics_depth: int = 3,
    inner_steps: int = 3,
    inner_rate: float = 0.01,
    lengths: tuple[float, ...] | None = None,
) -> Coral:
    """CORAL: every frame a code of a SIREN, found by gradient steps; the codes follow a neural differential equation.

    steps: RK4 steps to the training horizon, one per frame.
    latent: numbers in the code of a frame.
    width: features of a hidden layer of the SIREN.
    depth: layers of the SIREN, its linear last one included.
    w0: factor before the sines of the SIREN's first layer; larger ones fit finer structures.
    dynamics_width: features of a hidden layer of g.
    dynamics_depth: hidden layers of g.
    inner_steps: gradient steps that find the code of a frame.
    inner_rate: the rate of those steps to begin with; it is learnt.
    lengths: of the domain, by which coordinates are divided; 1 by default.
    """
    if ndim not in (1, 2, 3):
        raise ValueError(f"ndim is {ndim!r}; expected 1, 2 or 3.")
    check_at_least(1, steps=steps, latent=latent, width=width, dynamics_width=dynamics_width)
    check_at_least(2, depth=depth)
    check_at_least(1, dynamics_depth=dynamics_depth, inner_steps=inner_steps)
    check_lengths(ndim, lengths)
    if not (w0 > 0 and inner_rate > 0):
        raise ValueError(f"w0 is {w0:g} and inner_rate {inner_rate:g}; expected numbers above 0.")
    return Coral(
        Siren(ndim, channels, latent=latent, width=width, depth=depth, w0=w0),
        Dynamics(latent, params, width=dynamics_width, depth=dynamics_depth),
        ndim=ndim,
        channels=channels,
        params=params,
        steps=steps,
        lengths=lengths or (1.0,) * ndim,
        inner_steps=inner_steps,
        inner_rate=inner_rate,
    )
