"""What the training loop costs over the bare step: samples per second of both, in one run on one device.

    python benchmarks/train.py [--device cuda] [--batch 64] [--times 40] [--points 256] [--precision bf16] [--json FILE]

The bare step is forward, loss, backward, clip and optimiser on one batch that lies ready; on a GPU launched kernel by
kernel and also replayed as one CUDA graph. The loop is `vcnef.fit`, which also draws batches, follows the schedule,
notes the loss, looks at the clock and writes the log. The overhead is that over the faster bare step.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from vcnef.data import Batch, Batches, Trajectories, generate
from vcnef.surrogate import Surrogate
from vcnef.training import Recipe, fit
from vcnef.training.devices import numerics
from vcnef.training.losses import mean_square


def loop_seconds(data: Trajectories, recipe: Recipe, device: str) -> float:
    """Seconds per step of the loop, of the epochs after the first, which compiles."""
    surrogate = Surrogate.build("vcnef", {}, data, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        devices = "cpu" if device == "cpu" else 1
        run = fit(surrogate, data, None, recipe, out=Path(folder) / "run", devices=devices)
    first, *_, last = run.history
    return (last["seconds"] - first["seconds"]) / (last["step"] - first["step"])


def bare_seconds(data: Trajectories, recipe: Recipe, device: str, steps: int, *, graph: bool) -> float:
    """Seconds per step with nothing around it."""
    surrogate = Surrogate.build("vcnef", {}, data, seed=0).to(device)
    model = torch.compile(surrogate.model, dynamic=False) if device == "cuda" else surrogate.model
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=device == "cuda", capturable=device == "cuda")
    batch: Batch = next(iter(Batches(data, recipe.batch, device=device, scaling=surrogate.scaling)))
    half = torch.autocast(device, dtype=torch.bfloat16, enabled=recipe.precision == "bf16")

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with half:
            u = model(batch.u0, batch.grid, batch.t, batch.params)
        mean_square(u, batch.u).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimiser.step()

    with numerics(recipe):
        for _ in range(5):
            step()
        _wait(device)
        run = _recorded(step) if graph else step
        began = time.perf_counter()
        for _ in range(steps):
            run()
        _wait(device)
    return (time.perf_counter() - began) / steps


def _recorded(step: Callable[[], None]) -> Callable[[], None]:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        step()
    return graph.replay


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--points", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--precision", default="bf16", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()

    size = {"samples": asked.samples, "resolution": asked.points, "frames": asked.times + 1}
    data = generate("burgers", **size, device=asked.device)
    epochs = {"epochs": asked.epochs, "save_every": asked.epochs}
    recipe = Recipe(batch=asked.batch, precision=asked.precision, **epochs)
    steps = (asked.epochs - 1) * (asked.samples // asked.batch)
    ways = (False, True) if asked.device == "cuda" else (False,)

    def bare() -> dict[str, float]:
        return {
            "recorded" if graph else "launched": bare_seconds(data, recipe, asked.device, steps, graph=graph)
            for graph in ways
        }

    # Once more, the other way round: a difference below that of two equal runs is noise.
    measured = [bare(), loop_seconds(data, recipe, asked.device), loop_seconds(data, recipe, asked.device), bare()]
    loop = measured[1:3]
    least = min(seconds for each in (measured[0], measured[3]) for seconds in each.values())

    figures = {
        "case": vars(asked) | {"json": None},
        "torch": torch.__version__,
        "bare ms per step": [{way: 1e3 * each for way, each in run.items()} for run in (measured[0], measured[3])],
        "loop ms per step": [1e3 * each for each in loop],
        "samples per second of the loop": asked.batch / min(loop),
        "overhead": min(loop) / least - 1,
    }
    for name, value in figures.items():
        print(f"{name}: {value}")
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
