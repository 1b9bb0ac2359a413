"""The layers of a block as fused kernels with gradients, for training.

With φ = ELU + 1, tokens X of one sample and time, and m the matrix of ones within a head, zeros between heads:

    attention    K = φ(X Wk + bk),  k̄ = mean K,  G = KᵀX/s,  S = (G Wv + k̄ bvᵀ) ∘ m,  M = S Wo,
                 Q = φ(X Wq + bq),  LN(X + (Q / (Q (k̄ ∘ m))) M + bo + extra)
    modulation   LN(Y + (F ∘ C) W + b),  F = φ(Y Ws + bs), or given with Y for all times at once
    mlp          LN(Z + W₂ act(W₁ Z + b₁) + b₂)
    residual     LN(Z + U + b), for a norm alone and for models too wide for the others
    gelu         GELU(H + b), for these too
    mixing       M = ((G Wv + k̄ bvᵀ) ∘ m) Wo, as in an attention, for these too
    decoder      W₂ GELU(W₁ LN(Z) + b₁) + b₂
    neighbours   out_i = Σ_k w_k ∘ z_(i + o_k), on grids that go on from their other end

Each is an operator of its own, which compilers leave as it is. Tokens come and go in the operands' type; norms, sums,
the last map of the decoder and the gradients of weights are in fp32. What is kept for the backward pass is, beside a
layer's input, the input of its norm with mean 0 and variance 1, Q / (Q (k̄ ∘ m)) of an attention and S of a mixing;
everything else is computed again there. What is right is what the modules of `nn` compute, and their gradients.

Compiled code is kept between runs and found by the names of the operators of the forward pass: where the results of one
change shape, or those of its backward pass or that one's name, it needs a new name.
"""

from vcnef.kernels.layers.activation_layer import gelu
from vcnef.kernels.layers.attention_layer import attention
from vcnef.kernels.layers.decoder_layer import decoder
from vcnef.kernels.layers.mixing_layer import mixing, serves_mixing
from vcnef.kernels.layers.mlp_layer import mlp
from vcnef.kernels.layers.modulation_layer import modulation
from vcnef.kernels.layers.neighbours_layer import neighbours
from vcnef.kernels.layers.residual_layer import residual

__all__ = ["attention", "decoder", "gelu", "mixing", "mlp", "modulation", "neighbours", "residual", "serves_mixing"]
