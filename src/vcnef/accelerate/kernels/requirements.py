"""What kernels require of a device and of tokens; an obstacle is the reason why they cannot run, as part of a sentence.

Nothing here imports Triton.
"""

import os
from functools import cache
from importlib.util import find_spec

import torch

WIDEST = 128
"""Width up to which a tile of tokens stays in registers; cuBLAS serves wider models well."""

WIDEST_NORM = 1024
"""The same for operations that compute nothing but a norm or an activation."""

WIDEST_CAPPED = 96
"""Width up to which a tile stays in registers where their number per thread is capped."""

SWITCH = "VCNEF_KERNELS"
"""The environment variable that is 0 where plain code is wanted, to compare or to look for a fault."""

CAPABILITIES = {(8, 0), (9, 0), (10, 0), (10, 3)}
"""NVIDIA's data-centre GPUs since A100; others have less shared memory than the tilings take."""

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
"""The types that tokens may have."""


def switched_off() -> bool:
    return os.environ.get(SWITCH) == "0"


def obstacle(device: torch.device, dtype: torch.dtype, width: int, heads: int = 1, widest: int = WIDEST) -> str | None:
    """Return why kernels cannot serve tokens of this kind, or None. Empty tokens are for the caller to handle."""
    if switched_off():
        return f"{SWITCH} is 0"
    missing = lack(device)
    if missing is not None:
        return missing
    if dtype not in DTYPES:
        return f"tokens are {dtype}"
    if width > widest or width % heads:
        return f"width {width} with {heads} heads, where at most {widest} and a multiple of the heads is served"
    return None


def norm_obstacle(device: torch.device, dtype: torch.dtype, width: int) -> str | None:
    """Return the same for operations that have no products."""
    return obstacle(device, dtype, width, widest=WIDEST_NORM)


@cache
def lack(device: torch.device) -> str | None:
    """Return what a device lacks for kernels; found out once, since it does not change."""
    if device.type != "cuda":
        return f"tokens are on {device.type}, not on a GPU"
    capability = torch.cuda.get_device_capability(device)
    if torch.version.hip is not None or capability not in CAPABILITIES:
        return f"a GPU of compute capability {capability}, where one of {sorted(CAPABILITIES)} by NVIDIA is served"
    return None if find_spec("triton") else "Triton is not installed"
