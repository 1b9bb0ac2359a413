"""The figures of an evaluation, as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vcnef import plots
from vcnef.data.rows import spread
from vcnef.evaluation import predict_trajectories
from vcnef.evaluation.held_out import choose_judged
from vcnef.grid import axes, is_scattered
from vcnef.plots import cells
from vcnef.spelling import spell_values
from vcnef.surrogate.points import UNIFORM, arrangement
from vcnef.whole import naming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vcnef.evaluation import Evaluation

TRAJECTORIES_AVERAGED = 128
"""Trajectories that a heat map or a spectrum averages."""
NUMBERS_IN_MEMORY = 2**25
"""Of their fields that are held at once; large fields are averaged over fewer trajectories."""


def draw(surrogate: Any, found: Evaluation, data: Any, folder: Path) -> list[Path]:
    """Save every figure that the evaluation has data for; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    judged = choose_judged(surrogate, data, found.split).data
    paths = []
    for name, figure in [*curves(found), *pictures(surrogate, found, judged)]:
        # A channel may be a quotient, as u/U, and no folder.
        paths.append(folder / f"{name.replace('/', '-')}.png")
        with naming(paths[-1]):
            figure.savefig(paths[-1])
    return paths


def curves(found: Evaluation) -> Iterator[tuple[str, Figure]]:
    """Draw errors over time, over resolutions and over parameter values."""
    result = found.result
    band = plots.Band(result.band["low"], result.scores["over_time"]["nrmse"], result.band["high"])
    yield "error_over_time", plots.error_over_time({found.model: band}, result.t)
    axes = {
        "space": ([each.resolution[0] for each in found.space], result.resolution[0], "points along an axis"),
        "time": ([each.frames for each in found.time], result.frames, "times"),
    }
    for name, (sizes, trained, what) in axes.items():
        if len(sizes) > 1:
            errors = [each.value("nrmse") for each in getattr(found, name)]
            chart = {found.model: (sizes, errors)}
            marked = None
            if result.trained:
                marked = trained
            yield f"super_resolution_{name}", plots.super_resolution(chart, trained=marked, what=what)

    drawn = {spell_values(group.values): group for group in found.parameters if len(group.nrmse)}
    if len(drawn) > 1:
        by_value: dict[Any, Any] = {values: group.nrmse for values, group in drawn.items()}
        unseen = [values for values, group in drawn.items() if group.seen is False]
        yield "parameters", plots.violins({found.model: by_value}, unseen=unseen)


def pictures(surrogate: Any, found: Evaluation, data: Any) -> Iterator[tuple[str, Figure]]:
    """Draw trajectories and means over many, of each channel. Scattered points have none."""
    if not is_scattered(data.grid):
        yield from trajectories(surrogate, found, data)
        yield from averages(surrogate, found, data)


def trajectories(surrogate: Any, found: Evaluation, data: Any) -> Iterator[tuple[str, Figure]]:
    """Draw the median and the worst trajectory; in 3D their last time as a box too."""
    problem = data.problem
    # NaN comes last: trajectories whose targets are zero have no error, and are chosen only where none has.
    order = np.argsort(found.nrmse, kind="stable")[: np.count_nonzero(~np.isnan(found.nrmse)) or None]
    rows = {"median": int(order[(len(order) - 1) // 2]), "worst": int(order[-1])}
    selection, truth, prediction = predict_trajectories(surrogate, data, list(rows.values()))
    t, lines = selection.times(data).numpy(), axes(selection.grid(data).cpu())
    for c, channel in enumerate(problem.channels):
        for i, (kind, row) in enumerate(rows.items()):
            name = f"{kind}{_suffix(problem, channel)}"
            title = f"{kind} trajectory, nRMSE {found.nrmse[row]:.3g}"
            pair = (truth[i, ..., c].numpy(), prediction[i, ..., c].numpy())
            yield name, _picture(pair, t, lines, channel, title)
            if problem.ndim == 3:
                last = [each[-1] for each in pair]
                title = f"{title}, t = {t[-1]:.3g}"
                yield f"boxes_{name}", plots.boxes(*last, channel=channel, x=lines, title=title)


def averages(surrogate: Any, found: Evaluation, data: Any) -> Iterator[tuple[str, Figure]]:
    """Draw energy spectra of uniform grids, and in 1D the heat map."""
    problem, result = data.problem, found.result
    numbers = result.frames * prod(result.resolution) * len(problem.channels)
    count = min(TRAJECTORIES_AVERAGED, len(data), max(1, NUMBERS_IN_MEMORY // numbers))
    selection, truth, prediction = predict_trajectories(surrogate, data, spread(len(data), count).tolist())
    t, grid = selection.times(data).numpy(), selection.grid(data).cpu().numpy()
    for c, channel in enumerate(problem.channels):
        suffix, pair = _suffix(problem, channel), (truth[..., c], prediction[..., c])
        if min(result.resolution) > 3 and arrangement(data.grid) == UNIFORM:
            yield f"spectra{suffix}", plots.spectra(pair[0], {found.model: pair[1]}, t, channel=channel)
        if problem.ndim == 1:
            # Values near zero would rule a mean.
            error = plots.relative_point_error(*pair)
            yield f"heat_map{suffix}", plots.error_heat_map({found.model: error}, t, grid[:, 0])


def _suffix(problem: Any, channel: str) -> str:
    return f"_{channel}" if len(problem.channels) > 1 else ""


def _picture(
    pair: tuple[np.ndarray, np.ndarray], t: np.ndarray, lines: Sequence[Any], channel: str, title: str
) -> Figure:
    truth, prediction = pair
    if len(lines) == 1:
        return plots.space_time(truth, prediction, t, lines[0], channel, title=title)
    if len(lines) == 2:
        return plots.fields(truth, prediction, t, channel=channel, x=lines, title=title)
    # Of a box, the slice through its middle.
    *_, depth = cells.along_axes(truth.shape[1:], None, lines)
    middle = cells.middle(depth)
    return plots.fields(truth[..., middle], prediction[..., middle], t, channel=channel, x=lines[:2], title=title)
