"""A world that a tiny network learns in seconds, and a run in it that can be slowed down and killed; also a script."""

import atexit
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import torch

from vcnef.data import Queries, Shift, from_arrays
from vcnef.surrogate import Surrogate
from vcnef.training import Recipe, Stopped, fit
from vcnef.training.losses import mean_square
from vcnef.training.objectives import ask

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "dropout": 0.1}
RECIPE = {"epochs": 4, "batch": 4, "learning_rate": 2e-3, "ema": 0.9, "seed": 3}


def make_data(samples=24, frames=4, points=8):
    """u = exp(−nu t) cos 2π(x − phase): one decaying mode per sample, under a name whose symmetries hold."""
    generator = torch.Generator().manual_seed(0)
    t, x = torch.linspace(0.0, 2.0, frames), (torch.arange(points) + 0.5) / points
    nu, phase = torch.rand(2, samples, generator=generator)
    waves = torch.cos(2 * torch.pi * (x - phase[:, None, None]))
    u = torch.exp(-nu[:, None, None] * t[:, None]) * waves
    return from_arrays(u[..., None], t=t, x=x, params={"nu": nu}, name="burgers")


def make_surrogate(data, **options):
    return Surrogate.build("vcnef", TINY | options, data.split("train"), seed=1)


def slow(pause, steps_file=None):
    """The usual loss, after a pause; each step is noted in a file."""

    def objective(model, batch, progress):
        time.sleep(pause)
        if steps_file:
            with steps_file.open("a") as file:
                file.write(".")
        return mean_square(ask(model, batch), batch.u)

    return objective


class StopAfter:
    """A file of steps that asks the process to stop when it is opened for the nth time."""

    def __init__(self, last):
        self.left = last

    def open(self, mode):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGTERM)
        return Path(os.devnull).open(mode)


def run(out, *, pause=0.0, resume=False, steps_file=None, random=True, **recipe):
    """A run with everything in it that is random: order, query times, shifts and dropout."""
    torch.set_num_threads(1)
    data = make_data()
    surrogate = make_surrogate(data, dropout=0.1 if random else 0.0)
    views = {"queries": Queries(times=2), "symmetries": (Shift(),)} if random else {}
    return fit(
        surrogate, data.split("train", valid=0.2), data.split("valid", valid=0.2), Recipe(**RECIPE | recipe),
        out=Path(out), objective=slow(pause, steps_file), resume=resume, devices="cpu", **views,
    )  # fmt: skip


def run_together(folder):
    """Of several processes: a run with nothing random in it, and one that is stopped in its first epoch and resumed.
    At the very end, the first process writes down whether it is still connected."""
    if os.environ["RANK"] == "0":
        atexit.register(lambda: (folder / "connected").write_text(str(torch.distributed.is_initialized())))
    run(folder / "plain", random=False)
    run(folder / "whole", epochs=2)
    with suppress(Stopped):
        run(folder / "stopped", epochs=2, steps_file=StopAfter(1))
    run(folder / "stopped", epochs=2, resume=True)


if __name__ == "__main__":
    if sys.argv[2] == "together":
        run_together(Path(sys.argv[1]))
    else:
        run(sys.argv[1], pause=0.05, steps_file=Path(sys.argv[2]))
