"""Message passing between the points of a grid: from one frame to a bundle of frames."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.checks import check_at_least
from vcnef.models.interface import Stepper
from vcnef.models.rollout import Rollout
from vcnef.nn.layer_norm import instance_norm
from vcnef.periodicity import Periodic, per_axis

OFFSETS = (-3, -2, -1, 1, 2, 3)
"""The neighbours of a node, in nodes."""


def gather(nodes: Float[Tensor, "b s d"]) -> Float[Tensor, "j b s d"]:
    """Return every node's neighbours; the grid is taken for a ring."""
    return torch.stack([nodes.roll(-offset, dims=1) for offset in OFFSETS])


def normalise(nodes: Float[Tensor, "b s d"]) -> Float[Tensor, "b s d"]:
    """Return each feature with mean 0 and variance 1 over the nodes of its sample, in single precision at least."""
    exact = nodes
    if nodes.dtype != torch.float64:
        exact = nodes.float()
    return instance_norm(exact.mT).mT


class MessagePassing(nn.Module):
    """h_i ← norm(h_i + ψ(h_i, ⟨φ(h_i, h_j, u_i − u_j, x_i − x_j, θ)⟩_j, θ)), with ⟨·⟩_j the mean over neighbours."""

    def __init__(self, width: int, gaps: int, conditions: int) -> None:
        super().__init__()
        self.parts = (width + conditions, width, gaps)
        self.edge = nn.Linear(sum(self.parts), width)
        self.message = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.update = nn.Sequential(
            nn.Linear(2 * width + conditions, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )

    def forward(
        self,
        nodes: Float[Tensor, "b s d"],
        gaps: Float[Tensor, "j b s g"],
        theta: Float[Tensor, "b s q"],
        shares: Float[Tensor, "j 1 s 1"],
    ) -> Float[Tensor, "b s d"]:
        # The first layer is linear: what receiver and sender add to it is worked out once per node, not per edge.
        receive, send, differ = self.edge.weight.split(self.parts, dim=1)
        received = F.linear(torch.cat([nodes, theta], dim=-1), receive, self.edge.bias)
        messages = self.message(received + gather(F.linear(nodes, send)) + F.linear(gaps, differ))
        inputs = torch.cat([nodes, (shares * messages).sum(0), theta], dim=-1)
        return normalise(nodes + self.update(inputs)).to(self.edge.weight.dtype)


class MPPDE(Stepper):
    """u(t + kΔt) = u(t) + kΔt d_k for k = 1 … 5 at once, d from message passing in 1D (Brandstetter et al. 2022).

    Nodes are the points of the grid, h_i = MLP(u_i ‖ x_i ‖ θ) at first, with θ = (t, p); after the last layer the
    features of a node are read as a signal and two convolutions along it give d, all channels in the last one. One
    frame goes in, not five, and the decoder is (18, 6, 15): the paper's count demands the former and allows the latter.

    x is measured in lengths of the domain, N spacings, and t in horizons, so Δt = 1 / `steps`. The three neighbours on
    each side are those on a ring if `periodic` (the originals never close it), and x_i − x_j is then the shorter way.
    The map then commutes with shifts but for the x_i in the first MLP; without `absolute` that input is left out. News
    travel 3 nodes per layer, 18 per call; beyond, nodes feel each other only through the mean and variance of the norm.
    """

    def __init__(
        self,
        channels: int,
        params: int,
        *,
        width: int,
        depth: int,
        bundle: int,
        steps: int,
        periodic: bool,
        absolute: bool,
    ) -> None:
        super().__init__()
        self.offsets: Tensor
        self.ndim, self.channels, self.params, self.frames = 1, channels, params, bundle
        self.steps, self.periodic, self.absolute = steps, periodic, absolute
        self.encoder = nn.Sequential(
            nn.Linear(channels + absolute + 1 + params, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.layers = nn.ModuleList(MessagePassing(width, channels + 1, 1 + params) for _ in range(depth))
        self.register_buffer("offsets", torch.tensor(OFFSETS), persistent=False)
        # The rule of (18, 6, 15) for other widths and bundles.
        stride = max(width // 20, 1)
        length = (width - 3 * stride) // stride + 1
        if length < bundle:
            raise ValueError(f"width is {width}, which leaves {length} values for {bundle} frames. Choose a wider one.")
        self.decoder = nn.Sequential(
            nn.Conv1d(1, 8, 3 * stride, stride), nn.SiLU(), nn.Conv1d(8, channels, length - bundle + 1)
        )

    def suits(self, sides: tuple[int, ...], trained: tuple[int, ...]) -> bool:
        """Return whether the distance is that of training: neighbours are so many nodes away."""
        return sides == trained

    def forward(
        self,
        u: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "_ *x D"],
        params: Float[Tensor, "b p"] | None,
        t: Float[Tensor, " b"],
    ) -> Float[Tensor, "b k *x c"]:
        """Return the next frames after time `t`, all of the bundle."""
        batch, points = u.shape[:2]
        physical = grid.expand(batch, points, 1)
        x = physical / ((physical[:, -1:] - physical[:, :1]) * (points / (points - 1)))
        conditions = t[:, None]
        if params is not None:
            conditions = torch.cat([conditions, params], dim=-1)
        theta = conditions[:, None].expand(-1, points, -1)
        nodes = self.encoder(torch.cat([u, x, theta] if self.absolute else [u, theta], dim=-1))

        apart = x - gather(x)
        gaps = torch.cat([u - gather(u), apart - apart.round() if self.periodic else apart], dim=-1)
        shares = self._shares(u)
        for layer in self.layers:
            nodes = layer(nodes, gaps, theta, shares)

        slopes = rearrange(self.decoder(nodes.reshape(-1, 1, nodes.shape[-1])), "(b s) c k -> b k s c", b=batch)
        times = torch.arange(1, self.frames + 1, device=u.device, dtype=u.dtype) / self.steps
        return u[:, None] + times[:, None, None] * slopes

    def advance(
        self,
        u: Float[Tensor, "b *x c"],
        grid: Float[Tensor, "*x D"] | Float[Tensor, "_ *x D"],
        params: Float[Tensor, "b p"] | None,
        t: Float[Tensor, " b"],
    ) -> Float[Tensor, "b k *x c"]:
        return self(u, grid, params, t)

    def _shares(self, u: Tensor) -> Float[Tensor, "j 1 s 1"]:
        """Return what each neighbour counts for in the mean: nothing if it lies beyond the ends."""
        here = torch.arange(u.shape[1], device=u.device)
        there = here + self.offsets[:, None]
        inside = (there >= 0) & (there < len(here)) | self.periodic
        return (inside / inside.sum(0)).to(u.dtype)[:, None, :, None]


def mp_pde(
    ndim: int,
    channels: int,
    params: int = 0,
    *,
    steps: int = 40,
    width: int = 128,
    depth: int = 6,
    bundle: int = 5,
    periodic: Periodic = True,
    absolute: bool = True,
) -> Rollout:
    """Message-passing solver in 1D, rolled out: autoregressive, `bundle` of the `steps` to the horizon at a time.

    steps: frames to the training horizon.
    width: features of a node.
    depth: message-passing layers; each carries news 3 nodes further.
    bundle: frames that one application of the network gives.
    periodic: whether the first node is a neighbour of the last one.
    absolute: whether nodes know where they are; without it the model commutes with shifts on a ring.
    """
    if ndim != 1:
        raise ValueError(f"ndim is {ndim!r}; expected 1, since MP-PDE is for 1D only.")
    sizes = {"width": width, "depth": depth, "bundle": bundle, "steps": steps}
    check_at_least(1, **sizes)
    (closes,) = per_axis(periodic, ndim)
    return Rollout(MPPDE(channels, params, **sizes, periodic=closes, absolute=absolute), steps)
