"""The kernels of the layers that train, one by one: µs of each and its share of the layer, by torch's profiler.

    python benchmarks/layers.py [--batch 64] [--times 40 8] [--points 256] [--width 96] [--heads 8] [--repeats 5]

Forward and backward pass of every layer of a 1D block and of its decoder, each on its own, in bf16 on a GPU. A layer's
kernels are followed by what libraries and torch add: products for the gradients of weights, sums over programs.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from vcnef.kernels import layers

EPS = 1e-5
SHORTEST = 2.0
"""Kernels below so many µs are left out."""

Layer = Callable[..., Tensor]


def cases(batch: int, times: int, points: int, width: int, heads: int) -> Iterator[tuple[str, Layer, list[Tensor]]]:
    """Name, layer and inputs: tokens first, weights last."""

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, device="cuda")

    def linear(inputs: int, outputs: int) -> list[Tensor]:
        return [draw(outputs, inputs) / inputs**0.5, draw(outputs)]

    norm, tokens = [1 + 0.1 * draw(width), draw(width)], draw(batch, times, points, width).bfloat16()
    once, field = draw(batch, 1, points, width).bfloat16(), draw(1, times, points, width).bfloat16()
    maps = [each for _ in range(4) for each in linear(width, width)]
    mlp = [*linear(width, 4 * width), *linear(4 * width, width), *norm]
    yield "attention", lambda x, *w: layers.attention(x, None, list(w), heads, EPS), [tokens, *maps, *norm]
    yield "modulation", lambda x, c, *w: layers.modulation(x, None, c, list(w), EPS), [tokens, field, *maps[:4], *norm]
    yield (
        "modulation of the first block",
        lambda x, f, c, *w: layers.modulation(x, f, c, list(w), EPS),
        [once, once.abs(), field, *maps[:2], *norm],
    )
    for activation in ("relu", "gelu"):
        yield f"MLP, {activation}", lambda x, *w, a=activation: layers.mlp(x, list(w), a, EPS), [tokens, *mlp]
    yield "decoder", lambda x, *w: layers.decoder(x, list(w), EPS), [tokens, *norm, *maps[:2], *linear(width, 1)]


def kernels_of(layer: Layer, inputs: list[Tensor], repeats: int) -> Counter[str]:
    """µs of every kernel in a forward and a backward pass."""
    leaves = [each.detach().requires_grad_() for each in inputs]
    upstream = torch.randn_like(layer(*leaves))

    def once() -> None:
        torch.autograd.grad(layer(*leaves), leaves, upstream)

    for _ in range(2):
        once()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(repeats):
            once()
        torch.cuda.synchronize()
    taken: Counter[str] = Counter()
    for event in found.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            taken[event.name] += event.time_range.elapsed_us() / repeats
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--times", type=int, nargs="+", default=[40, 8])
    parser.add_argument("--points", type=int, default=256)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()

    torch.manual_seed(0)
    for times in asked.times:
        print(f"{asked.batch} × {times} × {asked.points} tokens of {asked.width} features")
        for name, layer, inputs in cases(asked.batch, times, asked.points, asked.width, asked.heads):
            taken = kernels_of(layer, inputs, asked.repeats)
            whole = sum(taken.values())
            print(f"  {name}: {whole:.0f} µs", flush=True)
            for kernel, microseconds in taken.most_common():
                if microseconds >= SHORTEST:
                    print(f"    {microseconds:8.1f} {microseconds / whole:6.1%}  {kernel[:80]}")


if __name__ == "__main__":
    main()
