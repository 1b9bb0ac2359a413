"""What tokens need to know of each other in an attention, without gradients: M and k̄, per sample and time.

With φ = ELU + 1, s tokens X of one sample and time, and m the matrix of ones within a head, zeros between heads:

    K = φ(X Wk + bk),  k̄ = mean K,  G = KᵀX/s,  S = (G Wv + k̄ bvᵀ) ∘ m,  M = S Wo

k̄ and M are means where the attention has sums: the quotient is the same, and fp16 holds it for any number of tokens.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate.kernels import formulas
from vcnef.accelerate.kernels.heads import within_heads
from vcnef.accelerate.kernels.operation import EPS, INFERENCE_TOLERANCE, Example, Operation, Sizes
from vcnef.accelerate.kernels.parts import (
    add,
    as_columns,
    cast,
    columns,
    dot,
    matrix,
    positive,
    put,
    reverse,
    scaled,
    vector,
    weight,
    zeros,
)
from vcnef.accelerate.kernels.requirements import obstacle
from vcnef.accelerate.kernels.weights import BlockWeights, Tiling, first_for, padded

MIX_TILINGS = (Tiling(64, 0, 8, 3, 128), Tiling(64, 0, 4, 1))


def mix(
    tokens: Float[Tensor, "b t s d"], weights: BlockWeights
) -> tuple[Float[Tensor, "b t d d"], Float[Tensor, "b t d"]]:
    """M in the type of the operands and k̄ in fp32."""
    batch, times, points, width = tokens.shape
    tiling = first_for(width, MIX_TILINGS)
    tokens = tokens.contiguous()
    mixing = tokens.new_empty(batch, times, width, width, dtype=weights.operands)
    key_mean = tokens.new_empty(batch, times, width, dtype=torch.float32)
    with torch.cuda.device_of(tokens):
        mix_kernel[(batch * times,)](
            *(tokens, None, None, mixing, key_mean, weights.key, weights.value, weights.join.weight, points),
            HEAD=width // weights.heads,
            BLOCK_D=padded(width),
            D=width,
            BLOCK_S=tiling.tokens,
            **tiling.launch,
        )
    return mixing, key_mean


@triton.jit(do_not_specialize=["points"])
@no_type_check
def mix_kernel(
    tokens, gram_out, state_out, mixing, key_mean, key, value, join_weight, points,
    D: tl.constexpr, HEAD: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One program per sample and time. Keys are computed as `d s`: a product then leaves them where the next one reads
    its left side, in registers. Their d is in one part, since tensor cores take 64 rows or none.

    `gram_out` and `state_out`, which gradients need, may be None."""
    row = tl.program_id(0).to(tl.int64)
    feature, whole = columns(D), tl.arange(0, BLOCK_D)
    operands = key.weight.dtype.element_ty
    key_weight = reverse(weight(key.weight, feature, (whole,), D, D))[0]
    key_bias = tl.load(key.bias + whole, mask=whole < D, other=0.0)[:, None]

    gram = zeros(BLOCK_D, feature)
    key_sum = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, points, BLOCK_S):
        point = start + tl.arange(0, BLOCK_S)
        x = cast(matrix(tokens + row * points * D, point, feature, points, D), operands)
        keys = positive(add(dot(key_weight, as_columns(x)), (key_bias,)))
        keys = (tl.where(point[None, :] < points, keys[0], 0.0),)
        key_sum += tl.sum(keys[0], 1)
        gram = dot(keys, (x,), gram)

    share = 1.0 / points
    key_sum *= share
    gram = cast(scaled(gram, share), operands)
    state = dot(gram, weight(value.weight, feature, feature, D, D))
    state = add(state, scaled(vector(value.bias, feature, D), key_sum[:, None]))
    state = within_heads(state, whole, feature, HEAD)
    if gram_out is not None:
        put(gram_out + row * D * D, gram, whole, feature, D, D)
        put(state_out + row * D * D, state, whole, feature, D, D)
    put(mixing + row * D * D, dot(state, weight(join_weight, feature, feature, D, D)), whole, feature, D, D)
    tl.store(key_mean + row * D + whole, key_sum, mask=whole < D)


def mix_baseline(
    tokens: Float[Tensor, "b t s d"], weights: BlockWeights
) -> tuple[Float[Tensor, "b t d d"], Float[Tensor, "b t d"]]:
    mixing, key_mean = formulas.mix(tokens.float(), weights.key, weights.value, weights.join.weight, weights.heads)
    return mixing.to(weights.operands), key_mean


BLOCK_MAPS = ("query", "key", "value", "join", "scale", "out", "widen", "narrow")
BLOCK_NORMS = ("attention_norm", "modulation_norm", "mlp_norm")


def draw_block(sizes: Sizes) -> list[Tensor]:
    """Return what a modulation block has learnt, as `pack_block` takes it."""
    width = sizes.width
    maps = [sizes.square() for _ in BLOCK_MAPS[:-2]]
    maps += [sizes.linear(width, 4 * width), sizes.linear(4 * width, width)]
    maps += [sizes.norm() for _ in BLOCK_NORMS]
    return list(chain.from_iterable(maps))


def pack_block(sizes: Sizes, learnt: Sequence[Tensor]) -> BlockWeights:
    parts = dict(zip((*BLOCK_MAPS, *BLOCK_NORMS), zip(learnt[::2], learnt[1::2], strict=True), strict=True))
    return BlockWeights.pack(sizes.dtype, heads=sizes.heads, activation=sizes.activation, eps=EPS, **parts)


def examples(sizes: Sizes) -> Iterator[Example]:
    tokens = sizes.tokens().to(sizes.between)
    yield Example("", [tokens], draw_block(sizes), lambda x, *w: (x, pack_block(sizes, w)))


MIX = Operation("mix", mix, mix_baseline, obstacle, examples, differentiable=False, tolerance=INFERENCE_TOLERANCE)
