"""The figures of an evaluation, as files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vcnef import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vcnef.evaluation import Evaluation

MANY = 128
"""Trajectories that a heat map averages."""


def draw(surrogate: Any, found: Evaluation, data: Any, folder: Path) -> list[Path]:
    """Save every figure that the evaluation has data for; returns the files."""
    from vcnef.evaluation.inputs import choose_judged

    folder.mkdir(parents=True, exist_ok=True)
    judged, *_ = choose_judged(surrogate, data, found.split)
    paths = []
    for name, figure in [*curves(found), *pictures(surrogate, found, judged)]:
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1])
    return paths


def curves(found: Evaluation) -> Iterator[tuple[str, Figure]]:
    """Errors over time and over resolutions."""
    result = found.result
    yield "error_over_time", plots.error_over_time({found.model: result.scores["over_time"]["nrmse"]}, result.t)
    axes = {
        "space": ([each.resolution[0] for each in found.space], result.resolution[0], "points along an axis"),
        "time": ([each.frames for each in found.time], result.frames, "times"),
    }
    for name, (sizes, trained, what) in axes.items():
        if len(sizes) > 1:
            errors = [each.value("nrmse") for each in getattr(found, name)]
            chart = {found.model: (sizes, errors)}
            yield (
                f"super_resolution_{name}",
                plots.super_resolution(chart, trained=trained if result.trained else None, what=what),
            )


def pictures(surrogate: Any, found: Evaluation, data: Any) -> Iterator[tuple[str, Figure]]:
    """The median and the worst trajectory of each channel; in 1D the heat map too. Scattered points have none."""
    from vcnef.evaluation import predict_trajectories

    problem = data.problem
    if data.grid.ndim != problem.ndim + 1:
        return
    # What is not finite is worst of all.
    order = np.argsort(np.nan_to_num(found.nrmse, nan=np.inf), kind="stable")
    rows = {"median": int(order[(len(order) - 1) // 2]), "worst": int(order[-1])}
    selection, truth, prediction = predict_trajectories(surrogate, data, list(rows.values()))
    t, grid = selection.times(data).numpy(), selection.grid(data).cpu().numpy()
    for c, channel in enumerate(problem.channels):
        suffix = f"_{channel}" if len(problem.channels) > 1 else ""
        for i, (kind, row) in enumerate(rows.items()):
            title = f"{kind} trajectory, nRMSE {found.nrmse[row]:.3g}"
            pair = (truth[i, ..., c].numpy(), prediction[i, ..., c].numpy())
            yield f"{kind}{suffix}", _picture(pair, t, grid, problem, channel, title)
    if problem.ndim == 1:
        some = np.linspace(0, len(data) - 1, min(MANY, len(data))).round().astype(int).tolist()
        _, truth, prediction = predict_trajectories(surrogate, data, some)
        for c, channel in enumerate(problem.channels):
            error = plots.relative_point_error(truth[..., c], prediction[..., c])
            suffix = f"_{channel}" if len(problem.channels) > 1 else ""
            yield f"heat_map{suffix}", plots.error_heat_map({found.model: error}, t, grid[:, 0])


def _picture(pair: tuple[np.ndarray, np.ndarray], t, grid, problem, channel: str, title: str) -> Figure:
    if problem.ndim == 1:
        return plots.space_time(*pair, t, grid[:, 0], channel, title=title)
    # Of a box, the slice through its middle.
    flat = [each[..., each.shape[-1] // 2] if problem.ndim == 3 else each for each in pair]
    return plots.fields(*flat, t, problem.domain[:2], channel, title=title)
