"""Fused kernels of the modulation block against the plain code on the same weights and inputs, on a GPU.

    python benchmarks/kernels.py [--batch 64] [--times 40] [--points 256] [--compiled fp16 bf16] [--json FILE]
    python benchmarks/kernels.py --predict 1 2 3

First one block (not a model's first, which attends once for all times): eager in fp32, compiled under autocast, and
both kernels in every tiling of their tables. Then `predict` of the paper's models, as the ratio of plain fp32 to
half-precision operands in fp16. `change` is ‖found − fp32‖ / ‖fp32‖. --predict is that part alone, in these dimensions.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from vcnef.kernels import modulation as kernels
from vcnef.kernels.precision import precision
from vcnef.nn.coordinates import Coordinates
from vcnef.nn.fused import block_weights

import vcnef
from vcnef.grid import cell_centres
from vcnef.models.vcnef import VCNeF

FLOP_PER_TOKEN = {"mix": 4 * 96**2, "apply": 2 * 96**2 * 12, "modulate": 2 * 96**2 * 9, "block": 2 * 96**2 * 14}
"""Products over tokens at width 96 with values and output projection folded, normaliser and layer norms left out."""


PREDICTED = {1: ((1000, 40, 256, 5), (1000, 240, 256, 2)), 2: ((1000, 20, 64, 3),), 3: ((100, 10, 32, 3),)}
"""Dimensions -> initial states, times, points of a side and repeats."""


def measure(function: Callable[[], object], repeats: int) -> dict[str, float]:
    """Median time after a warm-up, and the most memory that was taken beyond what lay there already."""
    for _ in range(2):
        function()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return {"ms": statistics.median(times), "MiB": (torch.cuda.max_memory_allocated() - before) / 2**20}


def change(found: Tensor, expected: Tensor) -> float:
    return float((found.float() - expected).norm() / expected.norm())


def show(name: str, row: dict[str, float]) -> None:
    print(f"{name:44s}", *(f"{key} {value:<9.4g}" for key, value in row.items()), flush=True)


def compare_block(model: VCNeF, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    block = model.modulations[1]
    tokens = torch.randn(args.batch, args.times, args.points, 96, device="cuda")
    field = block.branch(Coordinates(*(torch.randn(1, n, 96, device="cuda") for n in (args.times, args.points))))
    expected = block(tokens, field)
    count = tokens[..., 0].numel()
    rows: dict[str, dict[str, float]] = {}

    def add(name: str, part: str, function: Callable[[], object], compared: bool = False) -> None:
        try:
            row = measure(function, args.repeats)
        except Exception as error:  # a tiling may not fit this GPU; the others still count
            print(f"{name:44s} {type(error).__name__}: {str(error)[:120]}", flush=True)
            return
        row["TFLOP/s"] = FLOP_PER_TOKEN[part] * count / row["ms"] / 1e9
        rows[name] = row | ({"change": change(function(), expected)} if compared else {})
        show(name, rows[name])

    add("block, eager fp32", "block", lambda: block(tokens, field))
    for name in args.compiled:
        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[name]
        compiled = torch.compile(block)

        def autocast(compiled=compiled, dtype=dtype) -> Tensor:
            with torch.autocast("cuda", dtype):
                return compiled(tokens, field)

        add(f"block, compiled {name} autocast", "block", autocast, compared=True)

    with precision("fp16"):
        add("block, kernels fp16, tokens fp32", "block", lambda: block(tokens, field), compared=True)
        half = tokens.half()
        add("block, kernels fp16, tokens fp16", "block", lambda: block(half, field), compared=True)

    weights = block_weights(block, torch.float16)
    attended = tokens[:, :1].contiguous()
    mixed = kernels.mix(half, weights)
    for tiling in kernels.MIX_TILINGS:
        add(f"mix, {tuple(tiling)}", "mix", partial(kernels.mix, half, weights, tiling))
    for tiling in kernels.APPLY_TILINGS:
        run = partial(kernels.apply, half, *mixed, field, weights, tiling=tiling)
        add(f"apply, {tuple(tiling)}", "apply", run, compared=True)
    for tiling in kernels.MODULATE_TILINGS:
        run = partial(kernels.modulate, attended, attended.abs(), field, weights, tiling)
        add(f"modulate, {tuple(tiling)}", "modulate", run)
    return rows


def compare_predict(ndim: int, samples: int, times: int, side: int, repeats: int) -> dict[str, float]:
    torch.manual_seed(0)
    channels, sides = 1 if ndim == 1 else ndim + 2, (side,) * ndim
    model = vcnef.build("vcnef", ndim=ndim, channels=channels).cuda().eval()
    u0 = torch.randn(samples, *sides, channels, device="cuda")
    inputs = u0, cell_centres(((0.0, 1.0),) * ndim, sides).cuda(), torch.linspace(1 / times, 1, times, device="cuda")
    found, expected = (model.predict(*inputs, precision=name) for name in ("fp16", "fp32"))
    error = change(found, expected)
    del found, expected
    fused, plain = (measure(partial(model.predict, *inputs, precision=p), repeats) for p in ("fp16", "fp32"))
    return {
        "kernels ms": fused["ms"],
        "plain ms": plain["ms"],
        "ratio": plain["ms"] / fused["ms"],
        "kernels MiB": fused["MiB"],
        "plain MiB": plain["MiB"],
        "change": error,
    }


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--points", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--compiled", nargs="*", choices=["fp16", "bf16"], default=["fp16"], help="~15 s each")
    parser.add_argument("--predict", type=int, nargs="+", choices=sorted(PREDICTED), help="no blocks, these dimensions")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    torch.manual_seed(0)
    rows = {} if args.predict else compare_block(vcnef.build("vcnef", ndim=1, channels=1).cuda().eval(), args)
    for ndim in args.predict or [1]:
        for samples, times, side, repeats in PREDICTED[ndim]:
            name = f"predict, {samples} × {times} × {'×'.join([str(side)] * ndim)}"
            rows[name] = compare_predict(ndim, samples, times, side, repeats)
            show(name, rows[name])
    if args.json:
        where = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}
        case = {key: getattr(args, key) for key in ("batch", "times", "points", "repeats")}
        args.json.write_text(json.dumps({"case": case, **where, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
