"""Every registered operation on a GPU: its kernels against the compiled plain-PyTorch baseline, forward and backward.

    python benchmarks/operations.py [--only attention mlp] [--batch 64] [--times 40] [--points 256] [--kernels]

Times are µs of the GPU's kernels by torch's profiler, without what the host needs to start them. The baseline is
compiled and runs under autocast, as a plain model would. An operation that does not serve these sizes is left out, with
the reason. With --kernels each kernel of the fast implementation follows, with its share: to the kernels of the
operation itself, torch and libraries add sums over programs and the packing of weights.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from vcnef.accelerate.kernels.operation import Example, Operation, Sizes

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
SHORTEST = 2.0
"""Kernels below so many µs are left out."""


def obstacle(operation: Operation, sizes: Sizes) -> str | None:
    """Why an operation cannot serve these sizes, or None."""
    known = [name for name in signature(operation.obstacle).parameters if hasattr(sizes, name)]
    return operation.obstacle(**{name: getattr(sizes, name) for name in known})


def inputs_of(example: Example, sizes: Sizes) -> list[Tensor]:
    """Data of operations with gradients in half precision, as in training; the weights stay in single precision."""
    if not example.operation.differentiable:
        return example.inputs
    data = [each.to(sizes.dtype) for each in example.data]
    return [each.detach().requires_grad_() for each in (*data, *example.learnt)]


def passes(
    function: Callable[..., Any], example: Example, sizes: Sizes, *, autocast: bool
) -> dict[str, Callable[[], Any]]:
    """A forward pass and, where there are gradients, a forward and a backward pass one after the other."""
    inputs = inputs_of(example, sizes)
    arguments = example.arrange(*inputs)

    def forward() -> Any:
        with torch.autocast("cuda", sizes.dtype, enabled=autocast):
            return function(*arguments)

    if not example.operation.differentiable:
        return {"forward": torch.no_grad()(forward)}
    upstream = torch.randn_like(forward())

    def both() -> tuple[Tensor, ...]:
        return torch.autograd.grad(forward(), inputs, upstream)

    return {"forward": forward, "forward and backward": both}


def kernels_of(function: Callable[[], Any], repeats: int) -> Counter[str]:
    """µs of every kernel in one call."""
    for _ in range(2):
        function()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(repeats):
            function()
        torch.cuda.synchronize()
    taken: Counter[str] = Counter()
    for event in found.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            taken[event.name] += event.time_range.elapsed_us() / repeats
    return taken


def compare(example: Example, sizes: Sizes, repeats: int, *, show_kernels: bool) -> None:
    operation = example.operation
    torch.compiler.reset()
    fast = passes(operation.fast, example, sizes, autocast=False)
    # Under autocast a plain product is in half precision; optimisers have their own types.
    autocast = operation.differentiable or torch.float16 in operation.tolerance
    baseline = passes(torch.compile(operation.baseline, dynamic=False), example, sizes, autocast=autocast)
    for name, function in fast.items():
        taken = kernels_of(function, repeats)
        mine, plain = sum(taken.values()), sum(kernels_of(baseline[name], repeats).values())
        print(f"{example.label:44s} {name:21s} {mine:9.1f} {plain:9.1f} {plain / mine:7.2f}", flush=True)
        if show_kernels:
            for kernel, microseconds in taken.most_common():
                if microseconds >= SHORTEST:
                    print(f"    {microseconds:8.1f} {microseconds / mine:6.1%}  {kernel[:80]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these operations, not all of the registry")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--points", type=int, default=256)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--activation", choices=("relu", "gelu"), default="relu")
    parser.add_argument("--precision", choices=DTYPES, default="bf16")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--kernels", action="store_true", help="show each kernel of the fast implementation, too")
    options = parser.parse_args()

    # Imports Triton, which --help needs not have.
    from vcnef.accelerate.kernels.registry import OPERATIONS

    torch.manual_seed(0)
    sizes = Sizes(
        width=options.width,
        heads=options.heads,
        points=options.points,
        batch=options.batch,
        times=options.times,
        activation=options.activation,
        channels=options.channels,
        device=torch.device("cuda"),
        dtype=DTYPES[options.precision],
        between=DTYPES[options.precision],
    )
    print(f"{options.batch} × {options.times} × {options.points} tokens of {options.width} features; µs")
    print(f"{'':66s} {'kernels':>9s} {'baseline':>9s} {'ratio':>7s}")
    for name in options.only or OPERATIONS:
        operation = OPERATIONS[name]
        dtype = sizes.dtype if sizes.dtype in operation.tolerance else next(iter(operation.tolerance))
        own_sizes = replace(sizes, dtype=dtype)
        reason = obstacle(operation, own_sizes)
        if reason is not None:
            print(f"{name}: {reason}")
            continue
        for example in operation.examples(own_sizes):
            compare(example, own_sizes, options.repeats, show_kernels=options.kernels)


if __name__ == "__main__":
    main()
