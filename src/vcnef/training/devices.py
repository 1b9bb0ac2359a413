"""Where a run computes and with which numbers: devices, processes, precision, fusion."""

from __future__ import annotations

import atexit
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.accelerate.numbers import HALF, bf16_ends_the_process, single_precision
from vcnef.accelerate.training import fast_calls
from vcnef.data import Queries
from vcnef.data.batches import seed_of
from vcnef.models.rollout import Rollout
from vcnef.training.recipe import Recipe

if TYPE_CHECKING:
    from lightning_fabric import Fabric

COMPILED_FROM = 4.0
"""Minutes of a run from which compiling pays by itself: it takes 40 to 60 seconds, and steps are 1.5 times as fast."""


def precision_on(device_type: str, name: str) -> str:
    """A recipe's precision, "half" being what the device is fastest with."""
    if name == "half":
        return "fp16" if device_type == "cuda" else "bf16"
    return name


def precise(name: str, device_type: str) -> dict[str, Any]:
    """Return what `Fabric` is told of a recipe's precision."""
    from vcnef.training.half import MIXED, HalfInside

    name = precision_on(device_type, name)
    return {"plugins": [HalfInside(name, device_type)]} if name in MIXED else {"precision": "32-true"}


def start(recipe: Recipe, devices: int | str, nodes: int) -> Fabric:
    """The processes of a run. "auto" is one device, or what `torchrun` or SLURM has started; "cpu" is the processor."""
    from lightning_fabric import Fabric

    if devices not in ("auto", "cpu") and not (isinstance(devices, int) and devices > 0):
        raise ValueError(f"devices is {devices!r}; expected a number of at least 1, 'auto' or 'cpu'.")
    if not isinstance(nodes, int) or nodes < 1:
        raise ValueError(f"nodes is {nodes!r}; expected a number of at least 1. Leave it out on a single machine.")
    if isinstance(devices, int):
        # Before there are processes that would all end in it.
        check_share(recipe, devices * nodes)
    accelerator = "cpu" if devices == "cpu" else "auto"
    if isinstance(devices, str):
        devices, nodes = _started() or (1, nodes)
    if recipe.precision == "fp16" and (accelerator == "cpu" or not torch.cuda.is_available()):
        raise ValueError("precision is 'fp16', which needs a GPU; there is none. Use 'bf16' or 'fp32'.")
    available = torch.cuda.device_count() if accelerator == "auto" else 0
    if available and devices > available:
        raise ValueError(f"devices is {devices}, but this machine has {available}. Ask for at most {available}.")
    kind = "cuda" if available else "mps" if accelerator == "auto" and torch.backends.mps.is_available() else "cpu"
    if kind == "cpu" and precision_on(kind, recipe.precision) == "bf16" and bf16_ends_the_process():
        raise ValueError(
            f"precision is {recipe.precision!r}, but products in bf16 end a process on this CPU, which reports AMX and "
            "hides its tiles. Use 'fp32', or set ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 before you start."
        )
    # It would advise less precision than the recipe asks for.
    logging.getLogger("lightning_fabric.utilities.rank_zero").setLevel(logging.WARNING)
    fabric = Fabric(accelerator=kind, devices=devices, num_nodes=nodes, **precise(recipe.precision, kind))
    fabric.launch()
    if fabric.world_size > 1:
        # Fabric does so for GPUs alone; the threads of other connections may abort a process that ends with them.
        atexit.register(_part)
    return fabric


def _part() -> None:
    """End the connections to other processes."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def share(recipe: Recipe, fabric: Fabric) -> int:
    """Samples per step of each process."""
    check_share(recipe, fabric.world_size)
    return recipe.batch // fabric.world_size


def check_share(recipe: Recipe, processes: int) -> None:
    """Refuse a batch of which some processes would have more than others."""
    if recipe.batch % processes:
        raise ValueError(
            f"batch is {recipe.batch}, which {processes} devices cannot share equally. Use a multiple of {processes}."
        )


def seed_step(fabric: Fabric, recipe: Recipe, step: int) -> None:
    """Give each of several processes numbers of its own for dropout and the like, the same after it is resumed.

    The state of a run holds the random numbers of one process alone.
    """
    if fabric.world_size > 1:
        torch.manual_seed(seed_of(recipe.seed, "process", fabric.global_rank, step))


def mean_over(fabric: Fabric, value: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """Of all processes."""
    return fabric.all_reduce(value, reduce_op="mean") if fabric.world_size > 1 else value


@contextmanager
def numerics(recipe: Recipe) -> Iterator[None]:
    """Full single precision unless asked otherwise, and the same result every time."""
    cudnn = torch.backends.cudnn
    before, cudnn.deterministic = cudnn.deterministic, True
    try:
        with single_precision(recipe.precision), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
            yield
    finally:
        cudnn.deterministic = before


def fusion(recipe: Recipe, queries: Queries, device: torch.device) -> dict[str, bool | None] | None:
    """What the compiler is told, or None where nothing is to be compiled."""
    wanted = recipe.compile
    if wanted is None:
        wanted = device.type == "cuda" and (recipe.minutes is None or recipe.minutes >= COMPILED_FROM)
    # Fixed shapes give the fastest kernels; but here there are many of them.
    many = queries.passes or recipe.unroll == "curriculum"
    return {"dynamic": None if many else False} if wanted else None


@contextmanager
def fused(model: nn.Module, recipe: Recipe, queries: Queries, device: torch.device) -> Iterator[None]:
    """The model's calls fast and compiled meanwhile; of a model that steps, those of one step, since a rollout is a
    long loop."""
    target = model.stepper if isinstance(model, Rollout) else model
    half = HALF[precision_on(device.type, recipe.precision)]
    with fast_calls(target, device, half, fusion(recipe, queries, device)):
        yield


def _started() -> tuple[int, int] | None:
    """Processes per node and nodes, as the launcher of this process says."""
    from lightning_fabric.plugins.environments import SLURMEnvironment, TorchElasticEnvironment

    if TorchElasticEnvironment.detect():
        world, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
        return local, world // local
    if SLURMEnvironment.detect():
        nodes = int(os.environ.get("SLURM_NNODES", "1"))
        return int(os.environ["SLURM_NTASKS"]) // nodes, nodes
    return None
