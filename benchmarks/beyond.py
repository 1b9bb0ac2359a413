"""Packaged models beyond their horizon: composed of windows, as `predict` does, and asked directly.

    python benchmarks/beyond.py [--cases burgers-0.004 burgers-0.04 cns1d advection] [--device cpu]

nRMSE at the end of every horizon of training, mean over states of seed 77 that no model has seen, solved at 1024
points.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import vcnef
from vcnef.metrics.errors import nrmse_table

RAISED = {"constant_offsets": True}
"""Initial states like those that `burgers` was trained on."""

CASES: dict[str, dict[str, Any]] = {
    "burgers-0.004": {"model": "burgers", "params": {"nu": 0.004}, "samples": 16, "options": RAISED},
    "burgers-0.04": {"model": "burgers", "params": {"nu": 0.04}, "samples": 16, "options": RAISED},
    "cns1d": {"model": "cns1d", "params": {"eta": 0.01, "zeta": 0.01}, "samples": 8, "horizons": 2},
    "advection": {"model": "advection", "params": {"beta": 0.4}, "samples": 16},
}
FRAMES = 20
"""To each horizon."""


def ends(case: dict[str, Any], device: str) -> tuple[list[float], float]:
    """The errors at the end of each horizon, and that of the last one asked directly."""
    surrogate, horizons = vcnef.load(case["model"]).to(device), case.get("horizons", 5)
    data = vcnef.generate(
        case["model"],
        samples=case["samples"],
        params=case["params"],
        resolution=1024,
        frames=FRAMES * horizons + 1,
        horizon=surrogate.horizon * horizons,
        seed=77,
        device=device,
        **case.get("options", {}),
    )
    (points,) = surrogate.provenance["resolution"]
    data = data.view(space_stride=1024 // points).to(device)
    question = data.u[:, 0], data.grid, data.t[FRAMES::FRAMES], data.params
    truth = data.u[:, FRAMES::FRAMES]
    composed, direct = (
        nrmse_table(answer(*question), truth, 0).mean("t").tolist()
        for answer in (surrogate.answer, surrogate.answer_directly)
    )
    return composed, direct[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    for name in asked.cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            composed, direct = ends(CASES[name], asked.device)
        print(f"{name:14s}", *(f"{error:.4f}" for error in composed), f"directly {direct:.4f}", flush=True)


if __name__ == "__main__":
    main()
