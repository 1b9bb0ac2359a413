"""The method written down in a straightforward way against the reference and what is fast, as ratios.

    python benchmarks/forward.py [--ndim 1] [--batch 16] [--times 40] [--points 256] [--device cpu] [--json FILE]

The twin is the paper's method without any algebra: tokens repeated for every query time before the first modulation
block, time and space concatenated and encoded for every sample, keys multiplied by a mask of ones (as linear
transformers with padding do). The reference is the model itself, `models/vcnef.py`; "predict" and the engine's step are
`vcnef.accelerate`. All compute the same function from the same weights, which the script checks before it times. A
ratio is the twin's time over the other's, of a forward pass or of one with gradients.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

import vcnef
from vcnef.accelerate import predict
from vcnef.accelerate.engine import training_engine
from vcnef.grid import cell_centres
from vcnef.models.vcnef import FourierCoordinates, LinearAttention, Nothing, VCNeF, sigma


def twin_attention(attention: LinearAttention, z: Tensor) -> Tensor:
    split = "... s (h e) -> ... h s e"
    queries = sigma(rearrange(attention.query(z), split, h=attention.heads))
    keys = sigma(rearrange(attention.key(z), split, h=attention.heads))
    keys = keys * z.new_ones(z.shape[:-1])[..., None, :, None]
    values = rearrange(attention.value(z), split, h=attention.heads)
    state = torch.einsum("...sk,...se->...ke", keys, values)
    normaliser = 1 / (torch.einsum("...sk,...k->...s", queries, keys.sum(-2)) + 1e-6)
    mixed = torch.einsum("...sk,...ke,...s->...se", queries, state, normaliser)
    return attention.out(rearrange(mixed, "... h s e -> ... s (h e)"))


def twin_block(block: nn.Module, z: Tensor, c: Tensor | None = None) -> Tensor:
    """A transformer block, or a modulation block where there are coordinates; parts that are left out cost nothing."""
    z = block.attention_norm(z + twin_attention(block.attention, z))
    if c is not None:
        g = block.branch.project(block.branch.lift(c))
        if not isinstance(block.branch.residual, Nothing):
            g = g + block.branch.residual(F.gelu(g))
        z = block.modulation_norm(z + block.out(sigma(block.scale(z)) * g))
    return block.mlp_norm(z + block.mlp(z))


def twin_coordinates(model: VCNeF, grid: Tensor, t: Tensor) -> Tensor:
    encode = model.coordinates
    patches = isinstance(encode, FourierCoordinates)
    if patches:
        space, clock = encode.encode_space(grid)[..., encode.half :], encode.encode_time(t)[..., : encode.half]
    else:
        space, clock = grid.flatten(1, -2), t.unsqueeze(-1)
    shape = (*t.shape, space.shape[1], -1)
    joined = torch.cat((clock.unsqueeze(2).expand(shape), space.unsqueeze(1).expand(shape)), dim=-1)
    return joined if patches else encode.linear(joined)


def twin(model: VCNeF, u0: Tensor, grid: Tensor, t: Tensor, params: Tensor) -> Tensor:
    batch, times = len(u0), len(t)
    grid, t = grid.expand(batch, *grid.shape), t.expand(batch, times)
    *blocks, norm = model.blocks
    z = model.encoder(u0, grid, params)
    for block in blocks:
        z = twin_block(block, z)
    z = norm(z).unsqueeze(1).repeat(1, times, 1, 1)
    c = twin_coordinates(model, grid, t)
    for block in model.modulations:
        z = twin_block(block, z, c)
    return model.decoder(z, u0.shape[1:-1])


def step(function: Callable[..., Tensor], model: VCNeF, *inputs: Tensor) -> None:
    model.zero_grad(set_to_none=True)
    function(*inputs).square().mean().backward()


def seconds(functions: dict[str, Callable[[], object]], device: str, repeats: int) -> dict[str, float]:
    """Median time of each function after one warm-up; they take turns, so that a busy moment meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for repeat in range(repeats + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if device == "cuda":
                torch.cuda.synchronize()
            if repeat:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def compare(args: argparse.Namespace, variant: str) -> dict[str, float | str]:
    torch.manual_seed(0)
    model = vcnef.build("vcnef", ndim=args.ndim, channels=1, params=1, variant=variant).to(args.device).eval()
    sides = (args.points,) * args.ndim
    u0, params = torch.randn(args.batch, *sides, 1), torch.rand(args.batch, 1)
    grid = cell_centres(((0.0, 1.0),) * args.ndim, sides)
    t = torch.linspace(1 / args.times, 1, args.times)
    inputs = tuple(x.to(args.device) for x in (u0, grid, t, params))
    written, engine = partial(twin, model), training_engine(model, inputs[0].device, None, compiled=False)
    single, half = (partial(predict, model, precision=name) for name in ("fp32", "bf16"))
    with torch.no_grad():
        expected = written(*inputs)
        difference = max(float((f(*inputs) - expected).abs().max()) for f in (model, single, engine.forward))
        rounding = float((half(*inputs) - expected).norm() / expected.norm())
        del expected
        forward = {"twin forward": written, "reference forward": model, "predict": single, "predict bf16": half}
        taken = seconds({name: partial(f, *inputs) for name, f in forward.items()}, args.device, args.repeats)
    steps = {"twin step": written, "reference step": model, "engine step": engine.forward}
    taken |= seconds({k: partial(step, f, model, *inputs) for k, f in steps.items()}, args.device, args.steps)
    return {
        "variant": variant,
        "largest difference": difference,
        "change by bf16": rounding,
        **taken,
        **{f"{name} ratio": taken[twins] / taken[name] for twins, *others in (forward, steps) for name in others},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ndim", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--points", type=int, default=256, help="points a side")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=7, help="timed forward passes of each kind")
    parser.add_argument("--steps", type=int, default=2, help="timed training steps of each kind")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    rows = [compare(args, variant) for variant in ("paper", "release")]
    for name in rows[0]:
        print(f"{name:24s}", *(f"{v:>10.3g}" if isinstance(v, float) else f"{v:>10s}" for v in (r[name] for r in rows)))
    if args.json:
        where = {"torch": torch.__version__, "threads": torch.get_num_threads(), "machine": platform.processor()}
        case = {key: getattr(args, key) for key in ("ndim", "batch", "times", "points", "device", "repeats", "steps")}
        args.json.write_text(json.dumps({"case": case, **where, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
