"""Feed-forward network and the transformer block around an attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jaxtyping import Float
from torch import Tensor, nn

from vcnef.kernels import modulation as kernels
from vcnef.kernels.autocast import half_precision
from vcnef.nn.fused import (
    attend_and_norm,
    drops,
    gelu_of_map,
    half_products,
    mix_alone,
    mix_local,
    pack_block,
    training_operands,
    widen_and_norm,
)
from vcnef.nn.linear import Linear, only_values_matter
from vcnef.nn.local import Layout, LocalMix
from vcnef.nn.norms import ResidualNorm

Activation = Callable[[], nn.Module]


class FeedForward(nn.Sequential):
    """W₂ act(W₁ x + b₁) + b₂, from `width` through `hidden` to `out` (default: back to `width`)."""

    def __init__(self, width: int, hidden: int, activation: Activation, out: int | None = None) -> None:
        super().__init__(Linear(width, hidden), activation(), Linear(hidden, width if out is None else out))

    @property
    def bias(self) -> Tensor:
        return self[-1].bias

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        return self[-1](self.hidden(x))

    def unbiased(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        """All but the last bias."""
        return self[-1].unbiased(self.hidden(x))

    def hidden(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b h"]:
        widen, activation, _ = self
        if only_values_matter() or type(activation) is not nn.GELU:
            return widen(x, activation)
        return gelu_of_map(x, widen.weight, widen.bias)


class TransformerBlock(nn.Module):
    """z ← LN(z + Attn(z)); z ← LN(z + MLP(z)): post-norm, MLP four times as wide.

    `attention=None` leaves the attention out (the paper's ablation); tokens then never see each other. `local`, which
    the paper does not have, adds a mixing of neighbours to the attention.
    """

    def __init__(
        self,
        width: int,
        attention: nn.Module | None,
        activation: Activation,
        dropout: float,
        local: LocalMix | None = None,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.local = local
        self.attention_norm = ResidualNorm(width)
        self.mlp = FeedForward(width, 4 * width, activation)
        self.mlp_norm = ResidualNorm(width)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, tokens: Float[Tensor, "*b s d"], layout: Layout = ()) -> Float[Tensor, "*b s d"]:
        if (weights := pack_block(self, tokens)) is not None:
            alone = tokens.unsqueeze(1)
            extra = mix_local(self.local, alone, layout, weights)
            return kernels.transform(alone, *kernels.mix(alone, weights), weights, extra).squeeze(1)
        with half_products(tokens):
            return feed(self, attend(self, tokens, layout))


def attend(block: nn.Module, tokens: Float[Tensor, "*b s d"], layout: Layout) -> Float[Tensor, "*b s d"]:
    """LN(z + Attn(z) + Local(z)), of which a block may have neither."""
    if (dtype := training_operands(block, tokens)) is not None:
        return attend_and_norm(block, tokens.to(dtype), layout)
    update, bias = (None, None) if block.attention is None else update_of(block, block.attention, tokens)
    if block.local is not None:
        mixed = mix_alone(block.local, tokens, layout)
        update = mixed if update is None else update + mixed
    return block.attention_norm(tokens, update, bias)


def feed(block: nn.Module, tokens: Float[Tensor, "*b s d"]) -> Float[Tensor, "*b s d"]:
    """LN(z + MLP(z))."""
    if training_operands(block, tokens) is not None:
        return widen_and_norm(block, tokens)
    return block.mlp_norm(tokens, *update_of(block, block.mlp, tokens))


def update_of(
    block: nn.Module, layer: nn.Module, x: Float[Tensor, "*b s d"]
) -> tuple[Float[Tensor, "*b s d"], Float[Tensor, " d"] | None]:
    """What a layer adds to a residual, and its last bias if the kernel of the norm is to add that: it has the gradient
    at hand, of which another kernel would read all tokens again."""
    if half_precision(x) is None or drops(block):
        return block.dropout(layer(x)), None
    return layer.unbiased(x), layer.bias


class Transformer(nn.Sequential):
    """Blocks one after the other, and a norm at the end."""

    def __init__(self, width: int, blocks: Iterable[TransformerBlock]) -> None:
        super().__init__(*blocks, ResidualNorm(width))

    def forward(self, tokens: Float[Tensor, "*b s d"], layout: Layout) -> Float[Tensor, "*b s d"]:
        *blocks, norm = self
        for block in blocks:
            tokens = block(tokens, layout)
        with half_products(tokens):
            return norm(tokens)
