"""The operations of the group that the command line names against their baselines; run in Triton's interpreter."""

import sys
from dataclasses import replace

import interpreting  # noqa: F401, before any kernel is imported
import torch
from harness import change, check, outcome, served, values_and_gradients

from vcnef.accelerate.kernels import decoder, inference, launch, mix, modulation, registry
from vcnef.accelerate.kernels.operation import Sizes
from vcnef.accelerate.kernels.weights import Tiling

HALF, SINGLE = torch.float16, torch.float32

launch.TILINGS |= dict.fromkeys(launch.TILINGS, Tiling(16, 64, 4, 2))
# Three samples come in two parts then, of which the second is smaller.
modulation.MOST_IN_TURN |= dict.fromkeys(modulation.MOST_IN_TURN, 2)
# Nine sets of tokens are four tiles and a half of heads with 16 features, nine of those with 32.
launch.TILINGS |= dict.fromkeys(("wide_mixing", "wide_mixing_backward"), Tiling(32, 64, 4, 2, together=2))
mix.MIX_TILINGS = inference.BLOCK_TILINGS = (Tiling(16, 128, 4, 1),)
decoder.DECODE_TILING = Tiling(16, 0, 4, 1)

# Six and four tiles, for two programs that take one after the other.
NARROW = [Sizes(20, 2, 5, 3, 2, "gelu"), Sizes(40, 4, 17, 2, 1, "relu", shared=False)]
WIDE = [Sizes(32, 2, 5, 3, 3), Sizes(96, 3, 5, 3, 3)]
"""For operations that serve none of the others: their heads have to be of certain widths."""
INFERENCE = [
    Sizes(16, 2, 20, 2, 2, "relu"),
    Sizes(48, 8, 16, 2, 2, "gelu", shared=False),
    Sizes(40, 1, 5, 2, 2, "relu", dtype=HALF, between=HALF),
    Sizes(96, 8, 11, 2, 2, "relu", dtype=HALF),
]


def check_training(operation):
    try:
        candidates = served(operation, NARROW)
    except AssertionError:
        candidates = served(operation, WIDE)
    for sizes in candidates:
        for dtype in (SINGLE, HALF):
            check(operation, replace(sizes, dtype=dtype))
        for example in operation.examples(sizes):
            pairs = zip(*(outcome(way, example.inputs) for way in (example.fast, example.baseline)), strict=True)
            assert max(change(*pair) for pair in pairs) < 1e-5, example.label
    for example in operation.examples(candidates[-1]):
        check_compiled(operation, example)


def check_compiled(operation, example):
    """What a compiler is told of the operators' results is what they give."""

    def call(*inputs):
        return operation(*example.arrange(*inputs))

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=False)
    ways = [values_and_gradients(way, example.inputs) for way in (compiled, call)]
    assert all(change(*pair) < 1e-6 for pair in zip(*ways, strict=True)), example.label
    torch.compiler.reset()


if sys.argv[1] == "training":
    for operation in registry.TRAINING:
        check_training(operation)
else:
    for operation in registry.OPERATIONS.values():
        if not operation.differentiable:
            for sizes in served(operation, INFERENCE):
                check(operation, sizes)
