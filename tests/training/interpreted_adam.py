"""Whole runs of Adam and AdamW as one kernel against torch's own; run in Triton's interpreter."""

from copy import deepcopy

import interpreting  # noqa: F401, before any kernel is imported
import torch
from torch.optim import Adam, AdamW

from vcnef.accelerate.kernels import adam
from vcnef.training.adam import FusedAdam

# Of one chunk, of several, of complex numbers; the first has no gradient now and then, so that it counts other steps.
SHAPES = {(3,): torch.float32, (50, 45): torch.float32, (30, 20): torch.complex64, (): torch.float32}
assert 50 * 45 > 2 * adam.BLOCK > 30 * 20 * 2 > adam.BLOCK
OPTIONS = {"lr": 0.1, "weight_decay": 0.3, "eps": 1e-3, "betas": (0.8, 0.95)}


def make(kind, weights, **options):
    copies = [torch.nn.Parameter(weight.clone()) for weight in weights]
    return copies, kind([{"params": copies[:3]}, {"params": copies[3:], "lr": 0.02}], **OPTIONS, **options)


def advance(step, *optimised):
    gradients = [torch.randn(shape, dtype=dtype) for shape, dtype in SHAPES.items()]
    for weights, optimiser in optimised:
        for place, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            weight.grad = None if place == 0 and step % 3 == 1 else gradient.clone()
        optimiser.step()


def agree(mine, theirs):
    for one, other in zip(mine[0], theirs[0], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
        for name, value in theirs[1].state[other].items():
            torch.testing.assert_close(mine[1].state[one][name], value, rtol=1e-5, atol=1e-6)


for twin in (Adam, AdamW):
    torch.manual_seed(0)
    start = [torch.randn(shape, dtype=dtype) for shape, dtype in SHAPES.items()]
    mine, theirs = make(FusedAdam, start, decoupled_weight_decay=twin is AdamW), make(twin, start)
    for step in range(7):
        advance(step, mine, theirs)
        agree(mine, theirs)
        if step == 3:
            # As in a step that is recorded.
            mine[1].param_groups[0]["lr"] = torch.tensor(OPTIONS["lr"])
    # From where torch's has come, as when a run goes on that began without a GPU.
    going_on = make(FusedAdam, theirs[0], decoupled_weight_decay=twin is AdamW)
    state = deepcopy(theirs[1].state_dict()) | {"param_groups": going_on[1].state_dict()["param_groups"]}
    going_on[1].load_state_dict(state)
    advance(7, going_on, theirs)
    agree(going_on, theirs)
