"""Operations in compiled code, in one piece, against eager calls: on a GPU, or in Triton's interpreter.

A script of its own, since the tests' shape checker cannot be compiled.
"""

import sys

import torch

if sys.argv[1] == "cpu":
    import interpreting  # noqa: F401, before any kernel is imported

from harness import change, served, values_and_gradients

from vcnef.accelerate.kernels import launch
from vcnef.accelerate.kernels.operation import Sizes
from vcnef.accelerate.kernels.registry import TRAINING
from vcnef.accelerate.kernels.weights import Tiling

DEVICE = torch.device(sys.argv[1])
if DEVICE.type == "cpu":
    launch.TILINGS |= dict.fromkeys(launch.TILINGS, Tiling(16, 64, 4, 2))
    WIDTHS, HEADS, POINTS, DTYPE, BACKEND, TOLERANCE = (16, 32), 2, 8, torch.float32, "aot_eager", 1e-4
else:
    WIDTHS, HEADS, POINTS, DTYPE, BACKEND, TOLERANCE = (96, 256), 8, 64, torch.bfloat16, "inductor", 1e-2

for operation in TRAINING:
    candidates = [Sizes(width, HEADS, POINTS, device=DEVICE, dtype=DTYPE) for width in WIDTHS]
    for example in operation.examples(served(operation, candidates)[0]):

        def call(*inputs, operation=operation, example=example):
            return operation(*example.arrange(*inputs))

        compiled = torch.compile(call, fullgraph=True, dynamic=False, backend=BACKEND)
        ways = [values_and_gradients(way, example.inputs, DTYPE) for way in (compiled, call)]
        for found, expected in zip(*ways, strict=True):
            assert change(found, expected) < TOLERANCE, (operation.name, example.label)
        torch.compiler.reset()
