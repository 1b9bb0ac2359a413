"""GELU with the bias before it, with gradients; equations in the folder's docstring."""

# No postponed annotations here: they are what operators read their signatures from.

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.kernels.layers.launch import TILINGS, floats, launch, shares_of, tiles_of
from vcnef.kernels.layers.sums import summed


def gelu(x: Float[Tensor, "*b h"], bias: Float[Tensor, " h"]) -> Float[Tensor, "*b h"]:
    return _gelu(x.contiguous(), bias)


@torch.library.custom_op("vcnef::gelu_layer", mutates_args=())
def _gelu(x: Tensor, bias: Tensor) -> Tensor:
    from vcnef.kernels.layers import activation_triton as kernels

    out, (count, sizes) = torch.empty_like(x), _sizes("activation", x)
    programs = tiles_of("activation", count) * _chunks(sizes)
    launch(kernels.activation, programs, x, bias, out, count, **sizes)
    return out


@_gelu.register_fake
def _(x: Tensor, bias: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("vcnef::gelu_layer_backward", mutates_args=())
def _gelu_backward(grad: Tensor, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    from vcnef.kernels.layers import activation_triton as kernels

    count, sizes = _sizes("activation_backward", x)
    tiles, chunks = tiles_of("activation_backward", count), _chunks(sizes)
    parts, share = shares_of("activation_backward", tiles, x.device, chunks)
    grad_x, bias_sums = torch.empty_like(x), floats(x, parts, len(bias))
    launch(
        kernels.activation_backward, parts * chunks, grad, x, bias, grad_x, bias_sums, count, tiles, share,
        STAGES=TILINGS["activation_backward"].stages, **sizes,
    )  # fmt: skip
    return grad_x, summed(bias_sums)


@_gelu_backward.register_fake
def _(grad: Tensor, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), floats(x, len(bias))


def _sizes(kernel: str, x: Tensor) -> tuple[int, dict[str, int]]:
    width = x.shape[-1]
    return x.numel() // width, {"D": width, "BLOCK_H": TILINGS[kernel].hidden}


def _chunks(sizes: dict[str, int]) -> int:
    return -(-sizes["D"] // sizes["BLOCK_H"])


def _save(ctx: Any, inputs: tuple, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    return _gelu_backward(grad.contiguous(), *ctx.saved_tensors)


_gelu.register_autograd(_differentiate, setup_context=_save)
