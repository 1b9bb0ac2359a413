"""What the operations with gradients share: how their kernels are started and weights handed over."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from vcnef.accelerate.kernels.requirements import WIDEST_CAPPED
from vcnef.accelerate.kernels.weights import Affine, Tiling

TILINGS = {
    "mix": Tiling(64, 0, 8, 3, 128),
    "attention": Tiling(64, 0, 4, 2, together=2),
    "attention_backward": Tiling(128, 0, 8, 2),
    "mixing_backward": Tiling(64, 0, 8, 3, 128),
    "keys_backward": Tiling(128, 0, 8, 2),
    "modulation": Tiling(64, 0, 4, 3, together=2),
    "modulation_backward": Tiling(64, 0, 4, 2, together=2),
    "modulation_weights_backward": Tiling(64, 0, 8, 3, 255),
    "mlp": Tiling(128, 64, 8, 3, 128),
    "mlp_backward": Tiling(64, 64, 4, 2, 168),
    "mlp_weights_backward": Tiling(64, 128, 8, 3),
    "decoder": Tiling(64, 0, 4, 1),
    "decoder_backward": Tiling(64, 0, 4, 2),
    "products": Tiling(64, 0, 4, 5),
    "neighbours_backward": Tiling(64, 0, 2, 1),
    "residual": Tiling(32, 0, 8, 1),
    "residual_backward": Tiling(2, 0, 1, 4, together=16, features=256),
    "activation": Tiling(8, 256, 4, 1),
    "activation_backward": Tiling(2, 256, 1, 2, together=24),
    "wide_mixing": Tiling(64, 0, 4, 2, together=2),
    "wide_mixing_backward": Tiling(64, 0, 8, 2),
}
"""Of each kernel, by its name without "_kernel", as measured on an H200 at width 96, or at 256 for `residual`,
`activation` and `wide_mixing`, which serve wider models."""

Weights = list[Tensor]
"""Weight and bias, weight and bias, … of `nn.Linear` and `nn.LayerNorm`, as they are stored there."""


def launch(kernel: Any, programs: int, *given: Any, **sizes: Any) -> None:
    """Start a kernel in the tiles that suit it, with all registers where tokens are wide."""
    tiling = TILINGS[name_of(kernel)]
    if sizes["D"] > WIDEST_CAPPED:
        tiling = tiling._replace(registers=None)
    with torch.cuda.device_of(given[0]):
        kernel[(programs,)](*given, **sizes, BLOCK_S=tiling.tokens, **tiling.widened(sizes["D"]).launch)


def launch_in_turn(kernel: Any, tiles: int, *given: Any, **sizes: Any) -> None:
    """The same where a program takes tile after tile: it reads weights once, and the next tile while it computes."""
    programs, share = shares_of(name_of(kernel), tiles, given[0].device)
    launch(kernel, programs, *given, tiles, share, STAGES=stages_of(name_of(kernel), sizes["D"]), **sizes)


def launch_fetching(kernel: Any, programs: int, *given: Any, **sizes: Any) -> None:
    """As `launch`, where a program also has a tile fetched into the cache for one that starts later: as many tiles
    further on as there are multiprocessors."""
    launch(kernel, programs, *given, _multiprocessors(given[0].device), **sizes)


def name_of(kernel: Any) -> str:
    return kernel.__name__.removesuffix("_kernel")


def tiles_of(name: str, points: int) -> int:
    return -(-points // TILINGS[name].tokens)


def stages_of(name: str, width: int) -> int:
    """Return how many tiles are under way at once; there is no room on chip for two wide ones."""
    return TILINGS[name].stages if width <= WIDEST_CAPPED else 1


def shares_of(name: str, tiles: int, device: torch.device, others: int = 1) -> tuple[int, int]:
    """Return how many programs take tile after tile, and how many tiles each: with so many others for the same tiles,
    there are as many as a GPU runs at once."""
    each = -(-tiles // max(1, _multiprocessors(device) * TILINGS[name].together // others))
    return -(-tiles // each), each


@cache
def _multiprocessors(device: torch.device) -> int:
    """Return how many multiprocessors there are; two in an interpreter, where a program then has several tiles too."""
    if device.type != "cuda":
        return 2
    return torch.cuda.get_device_properties(device).multi_processor_count


def pack(tokens: Tensor, weights: list[Tensor]) -> list[Tensor]:
    """Return matrices as operands, stored `in out`; once for both passes.

    In one piece of memory: compilers then make one kernel of it, not one for every matrix.
    """
    matrices = [each.detach().mT for each in weights if each.ndim == 2]
    piece = torch.cat([each.flatten() for each in matrices]).to(tokens.dtype)
    parts = piece.split([each.numel() for each in matrices])
    return [part.view_as(each) for part, each in zip(parts, matrices, strict=True)]


def affine(weights: list[Tensor], packed: list[Tensor]) -> list[Affine]:
    matrices = iter(packed)
    pairs = zip(weights[::2], weights[1::2], strict=True)
    return [Affine(next(matrices) if weight.ndim == 2 else weight, bias) for weight, bias in pairs]


def like(x: Tensor | None, tokens: Tensor) -> Tensor | None:
    return None if x is None else x.to(tokens.dtype).contiguous()


def two_like(tokens: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(tokens), torch.empty_like(tokens)


def floats(like: Tensor, *shape: int) -> Tensor:
    return like.new_empty(shape, dtype=torch.float32)
