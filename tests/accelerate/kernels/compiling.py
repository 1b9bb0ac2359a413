"""Kernels are compiled for a Hopper GPU that need not be there, and not started."""

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import CudaDriver
from triton.runtime.jit import JITFunction

from vcnef.accelerate.kernels import requirements


class Absent(CudaDriver):
    """As much of a driver as a compiler asks for."""

    def __init__(self):
        self.get_current_device = self.get_current_stream = lambda *_: 0

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return torch.device("cpu")


compiled = set()
run = JITFunction.run


def only_compile(self, *args, **options):
    kernel = run(self, *args, **options | {"warmup": True})
    assert kernel.asm["ptx"]
    compiled.add(self.__name__)


triton.runtime.driver.set_active(Absent())
JITFunction.run = only_compile

requirements.lack = lambda device: None
