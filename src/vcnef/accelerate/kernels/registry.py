"""All operations by name. It imports Triton, and so is imported only where that is installed."""

from vcnef.accelerate.kernels.activation import GELU
from vcnef.accelerate.kernels.adam import ADAM
from vcnef.accelerate.kernels.attention import ATTENTION
from vcnef.accelerate.kernels.decoder import DECODE, DECODER
from vcnef.accelerate.kernels.inference import APPLY, ATTEND, MODULATE, TRANSFORM
from vcnef.accelerate.kernels.mix import MIX
from vcnef.accelerate.kernels.mixing import MIXING
from vcnef.accelerate.kernels.mlp import MLP
from vcnef.accelerate.kernels.modulation import MODULATION
from vcnef.accelerate.kernels.neighbours import MIX_NEIGHBOURS, NEIGHBOURS
from vcnef.accelerate.kernels.operation import Operation
from vcnef.accelerate.kernels.orthogonal import ORTHOGONALISE
from vcnef.accelerate.kernels.residual import RESIDUAL

TRAINING = (ATTENTION, MODULATION, MLP, RESIDUAL, GELU, MIXING, DECODER, NEIGHBOURS)
"""Operations with gradients."""

INFERENCE = (MIX, ATTEND, APPLY, MODULATE, TRANSFORM, DECODE, MIX_NEIGHBOURS)

OPTIMISERS = (ORTHOGONALISE, ADAM)

OPERATIONS: dict[str, Operation] = {each.name: each for each in (*TRAINING, *INFERENCE, *OPTIMISERS)}
