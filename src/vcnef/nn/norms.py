"""The norm at the end of every layer of a block."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from vcnef.kernels import layers
from vcnef.kernels.autocast import half_precision
from vcnef.nn.fused import learnt
from vcnef.nn.linear import only_values_matter


class ResidualNorm(nn.LayerNorm):
    """LN(z + update + bias), or LN(z) alone; times that z has in common are one.

    Under autocasting on a GPU it is one kernel each way, whose tokens are in half precision: compilers make several of
    it, for sums over all tokens, and keep tokens in single precision between them.
    """

    def forward(
        self,
        tokens: Float[Tensor, "b *t_or_1 s d"],
        update: Float[Tensor, "b *t s d"] | None = None,
        bias: Float[Tensor, " d"] | None = None,
    ) -> Float[Tensor, "b *t s d"]:
        if (dtype := half_precision(tokens)) is not None:
            tokens = tokens if update is None else tokens.expand_as(update)
            return layers.residual(tokens.to(dtype), update, bias, learnt(self), self.eps)
        if update is None:
            return super().forward(tokens.to(self.weight.dtype))
        if bias is not None:
            update = update + bias
        # If it may, in the memory of the update, which nobody else has.
        in_place = only_values_matter() and update.dtype == tokens.dtype
        return super().forward(update.add_(tokens) if in_place else tokens + update)
