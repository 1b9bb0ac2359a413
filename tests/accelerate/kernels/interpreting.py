"""Triton's interpreter, put right, and a device that lacks nothing; to be imported before any kernel.

Triton 3.6's interpreter asks NumPy for the integer in an array of one number, which NumPy 2.4 refuses, and takes the
bits of bf16 for integers in a product.
"""

import torch
from triton.runtime import interpreter

from vcnef.accelerate.kernels import requirements, weights

patch = interpreter._patch_lang_tensor


def patch_with_index(tensor, scope):
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


interpreter._patch_lang_tensor = patch_with_index
weights.SPREAD = torch.float32


def lack_nothing(device):
    if torch.compiler.is_compiling():
        raise AssertionError("The device is asked while a step is compiled, which would cut it in pieces.")


requirements.lack = lack_nothing
