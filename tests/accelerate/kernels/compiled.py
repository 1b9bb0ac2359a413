"""Every kernel in the tiles that it has on a GPU: the compiler refuses things that the interpreter lets pass."""

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

import torch
from compiling import JITFunction, compiled
from harness import half_types, outcome, served, values_and_gradients

from vcnef.accelerate import kernels
from vcnef.accelerate.kernels.operation import Sizes
from vcnef.accelerate.kernels.registry import OPERATIONS

CANDIDATES = [Sizes(96, 8, 64, activation="gelu", channels=2), Sizes(256, 8, 64)]

for operation in OPERATIONS.values():
    dtype = half_types(operation)[0]
    sizes = served(operation, [replace(each, dtype=dtype) for each in CANDIDATES])[0]
    torch.manual_seed(0)
    for example in operation.examples(sizes):
        if operation.differentiable:
            values_and_gradients(example.fast, example.inputs, dtype)
        else:
            outcome(example.fast, example.inputs)

modules = [import_module(f"{kernels.__name__}.{each.name}") for each in iter_modules(kernels.__path__)]
functions = {each.__name__ for module in modules for each in vars(module).values() if isinstance(each, JITFunction)}
expected = {each for each in functions if each.endswith("_kernel")}
assert expected
assert compiled == expected, compiled ^ expected
