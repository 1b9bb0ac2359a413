"""Our forward pass and training step against a straightforward twin on the same weights and inputs, as ratios.

    python benchmarks/forward.py [--ndim 1] [--batch 16] [--times 40] [--points 256] [--device cpu] [--json FILE]

The twin is the paper's method written down without the exact algebra: tokens repeated for every query time before the
first modulation block, time and space concatenated and encoded for every sample, keys multiplied by a mask of ones (as
linear transformers with padding do), values and heads projected apart, fields of both patch sizes concatenated. It
computes the same function from the same modules, which the script checks before it times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

import vcnef
from vcnef.grid import cell_centres
from vcnef.kernels.weights import SWITCH
from vcnef.models.vcnef import VCNeF
from vcnef.nn.attention import LinearAttention
from vcnef.nn.modulation import ModulationBlock


def positive(x: Tensor) -> Tensor:
    return F.elu(x) + 1


def twin_attention(attention: LinearAttention, tokens: Tensor) -> Tensor:
    split = "... s (h e) -> ... h s e"
    queries = positive(rearrange(attention.query(tokens), split, h=attention.heads))
    keys = positive(rearrange(attention.key(tokens), split, h=attention.heads))
    keys = keys * tokens.new_ones(tokens.shape[:-1])[..., None, :, None]
    values = rearrange(attention.value(tokens), split, h=attention.heads)
    state = torch.einsum("...sk,...se->...ke", keys, values)
    normaliser = 1 / (torch.einsum("...sk,...k->...s", queries, keys.sum(-2)) + 1e-6)
    mixed = torch.einsum("...sk,...ke,...s->...se", queries, state, normaliser)
    return attention.out(rearrange(mixed, "... h s e -> ... s (h e)"))


def twin_block(block: ModulationBlock, tokens: Tensor, coordinates: Tensor) -> Tensor:
    attended = block.attention_norm(tokens + twin_attention(block.attention, tokens))
    field = block.branch.project(block.branch.lift(coordinates))
    if block.branch.residual is not None:
        field = field + block.branch.residual(F.gelu(field))
    modulated = block.modulation_norm(attended + block.out(positive(block.scale(attended)) * field))
    return block.mlp_norm(modulated + block.mlp(modulated))


def twin_coordinates(model: VCNeF, grid: Tensor, t: Tensor) -> Tensor:
    encode = model.coordinates
    if hasattr(encode, "patches"):
        half = encode.half
        space, time_features = encode.encode_space(grid)[..., half:], encode.encode_time(t)[..., :half]
    else:
        space, time_features = grid.flatten(1, -2), t.unsqueeze(-1)
    shape = (t.shape[0], t.shape[1], space.shape[1], -1)
    joined = torch.cat((time_features.unsqueeze(2).expand(shape), space.unsqueeze(1).expand(shape)), dim=-1)
    return joined if hasattr(encode, "patches") else encode.linear(joined)


def twin_decoder(model: VCNeF, tokens: Tensor, sides: tuple[int, ...]) -> Tensor:
    decoder = model.decoder
    if not hasattr(decoder, "patches"):
        return decoder(tokens, sides)
    shapes = [tuple(side // size for side in sides) for size in decoder.patches]
    rows = decoder.norm(tokens).split([torch.Size(shape).numel() for shape in shapes], dim=2)
    fields = []
    for k, (row, shape) in enumerate(zip(rows, shapes, strict=True)):
        latent = decoder.mlps[k % len(decoder.mlps)](row).flatten(0, 1).mT.unflatten(-1, shape)
        fields.append(decoder.paint[k](F.gelu(decoder.grow[k](latent))))
    return decoder.mix(torch.cat(fields, dim=1).movedim(1, -1)).unflatten(0, tokens.shape[:2])


# Plain products: what `nn` does in fewer passes is ours, not the twin's.
@patch.dict(os.environ, {SWITCH: "0"})
def twin(model: VCNeF, u0: Tensor, grid: Tensor, t: Tensor, params: Tensor) -> Tensor:
    batch, times = len(u0), len(t)
    tokens = model.encoder(u0, grid.expand(batch, *grid.shape), params)
    *blocks, norm = model.blocks
    for block in blocks:
        attended = block.attention_norm(tokens + twin_attention(block.attention, tokens))
        tokens = block.mlp_norm(attended + block.mlp(attended))
    tokens = norm(tokens).unsqueeze(1).repeat(1, times, 1, 1)
    coordinates = twin_coordinates(model, grid.expand(batch, *grid.shape), t.expand(batch, times))
    for block in model.modulations:
        tokens = twin_block(block, tokens, coordinates)
    return twin_decoder(model, tokens, u0.shape[1:-1])


def step(function, model: VCNeF, *inputs: Tensor) -> None:
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
    plain = partial(twin, model)

    half = partial(model.predict, precision="bf16")
    with torch.no_grad():
        reference = plain(*inputs)
        difference = max(float((f(*inputs) - reference).abs().max()) for f in (model, model.predict))
        rounding = float((half(*inputs) - reference).norm() / reference.norm())
        del reference
        functions = {"twin forward": plain, "our forward": model, "our predict": model.predict, "our bf16": half}
        inference = seconds({k: partial(f, *inputs) for k, f in functions.items()}, args.device, args.repeats)
    functions = {"twin step": plain, "our step": model}
    training = seconds({k: partial(step, f, model, *inputs) for k, f in functions.items()}, args.device, args.steps)
    return {
        "variant": variant,
        "largest difference": difference,
        "change by bf16": rounding,
        **inference,
        **training,
        "forward ratio": inference["twin forward"] / inference["our forward"],
        "predict ratio": inference["twin forward"] / inference["our predict"],
        "bf16 ratio": inference["twin forward"] / inference["our bf16"],
        "step ratio": training["twin step"] / training["our step"],
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
        print(f"{name:20s}", *(f"{v:>10.3g}" if isinstance(v, float) else f"{v:>10s}" for v in (r[name] for r in rows)))
    if args.json:
        where = {"torch": torch.__version__, "threads": torch.get_num_threads(), "machine": platform.processor()}
        case = {key: getattr(args, key) for key in ("ndim", "batch", "times", "points", "device", "repeats", "steps")}
        args.json.write_text(json.dumps({"case": case, **where, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
