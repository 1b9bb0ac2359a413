"""Errors of single trajectories over the values of a PDE parameter, and which of them a model has never seen."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.mlab import GaussianKDE
from matplotlib.patches import Patch

from vcnef.plots import style

UNSEEN_COLOUR = style.COLOURS[1]
GROUND = "#FBE9DC"
"""A pale tone of the same, behind the violins of unseen values."""
FEWEST_FOR_A_SHAPE = 5
"""Trajectories with a distribution worth a shape; fewer are shown one by one."""
LETTER, LINE = 0.08, 0.18
"""Inches, of names beside and below the violins."""
DECADE = 10.0
"""Factor between medians from which on the axis goes by factors."""


@style.styled
def violins(
    errors: Mapping[str, Mapping[Hashable, Any]],
    *,
    unseen: Collection[Hashable] = (),
    parameter: str = "",
    label: str = "nRMSE",
    log: bool | None = None,
    title: str = "",
) -> Figure:
    """Draw the distribution of errors for each value of a parameter: model -> value -> errors `[n]` of trajectories.

    Values are numbers or names, in the order of the first model; models stand side by side. A dot is the median, a
    bar the middle half. Values in `unseen` were not trained on: a ground of their own, a bold coloured label and,
    where there is one model only, another colour of the violin. `log` is by default chosen from the medians.
    """
    groups = _groups(errors)
    values = list(dict.fromkeys(chain.from_iterable(groups.values())))
    unknown = [value for value in unseen if value not in values]
    if unknown:
        raise ValueError(
            f"unseen has {unknown}; expected values among {values}. Name the values as the errors do.",
        )
    by_factors = bool(log)
    if log is None:
        by_factors = _spans_decades(groups)
    names = list(map(_spell, values))
    width = max(4.0, 0.8 * len(values) * len(groups) ** 0.5)
    columns = _columns(groups, width)
    words = LETTER * max(map(len, names)) * _crowded(names) + LINE * (len(groups) // columns)
    figure, axes = style.panels(1, 1, width=width, height=3.0 + words)
    axis = axes[0, 0]
    if by_factors:
        axis.set_yscale("log")
    for place, value in enumerate(values):
        if value in unseen:
            axis.axvspan(place - 0.5, place + 0.5, color=GROUND, linewidth=0, zorder=0)
    part = 0.8 / len(groups)
    for i, (_, by_value, colour, _) in enumerate(style.dressed(groups)):
        for value, array in by_value.items():
            centre = values.index(value) + (i - (len(groups) - 1) / 2) * part
            own = colour
            if len(groups) == 1 and value in unseen:
                own = UNSEEN_COLOUR
            _violin(axis, centre, 0.45 * part, array, own, by_factors)
    axis.set(xlabel=parameter, ylabel=label, xlim=(-0.5, len(values) - 0.5))
    _name_values(axis, names, [value in unseen for value in values])
    if not by_factors:
        style.from_zero(axis)
    _legend(axis, list(groups), bool(unseen), columns)
    if title:
        figure.suptitle(title)
    return figure


def _groups(errors: Mapping[str, Mapping[Hashable, Any]]) -> dict[str, dict[Hashable, np.ndarray]]:
    groups: dict[str, dict[Hashable, np.ndarray]] = {}
    for model, by_value in errors.items():
        groups[model] = {}
        for value, given in by_value.items():
            groups[model][value] = style.as_array(given, f"errors of {model} at {value}", "n")
    if not groups or not all(groups.values()):
        raise ValueError(
            f"There is no error to draw: got {dict(errors)}, expected model -> value -> errors. "
            "Give each model at least one value."
        )
    for model, by_value in groups.items():
        for value, array in by_value.items():
            if not array.size or (array < 0).any():
                raise ValueError(
                    f"errors of {model} at {value} are {array.tolist()}; expected at least one, and none below zero. "
                    "Give one error for each trajectory."
                )
    return groups


def _spell(value: Hashable) -> str:
    """Return a name as it is, and a number in short."""
    return value if isinstance(value, str) else f"{value:g}"


def _spans_decades(groups: Mapping[str, Mapping[Hashable, np.ndarray]]) -> bool:
    medians = []
    for by_value in groups.values():
        for errors in by_value.values():
            finite = errors[np.isfinite(errors)]
            if finite.size:
                medians.append(float(np.median(finite)))
    return bool(medians) and min(medians) > 0 and max(medians) / min(medians) >= DECADE


def _violin(axis: Axes, centre: float, half: float, errors: np.ndarray, colour: str, by_factors: bool) -> None:
    """Draw shape, middle half and median of one distribution; what is not finite is said in words."""
    shown = errors[np.isfinite(errors) & ((errors > 0) | (not by_factors))]
    lost = int((~np.isfinite(errors)).sum())
    if lost:
        place = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
        axis.annotate(f"{lost} of {len(errors)}\nnot finite", (centre, 1.01), fontsize=6.5, color=colour, **place)
    if not shown.size:
        return
    if len(shown) < FEWEST_FOR_A_SHAPE or np.ptp(shown) <= 1e-9 * shown.max():
        axis.plot(np.full(len(shown), centre), shown, linestyle="", marker="_", color=colour, markersize=8)
    else:
        # On an axis by factors the density is that of the logarithm, as the eye sees it.
        points = shown
        if by_factors:
            points = np.log(shown)
        at = np.linspace(points.min(), points.max(), 100)
        density = GaussianKDE(points).evaluate(at)
        reach = half * density / density.max()
        if by_factors:
            at = np.exp(at)
        axis.fill_betweenx(at, centre - reach, centre + reach, facecolor=colour, alpha=0.45, edgecolor=colour)
        axis.vlines(centre, *np.percentile(shown, (25, 75)), color=colour, linewidth=3.0)
    axis.plot(
        centre, np.median(shown), linestyle="", marker="o", markersize=5, zorder=4,
        markerfacecolor="white", markeredgecolor=colour, markeredgewidth=1.2,
    )  # fmt: skip


def _crowded(names: list[str]) -> bool:
    """Return whether the names of the values stand slanted, which takes height."""
    return sum(map(len, names)) > 60


def _name_values(axis: Axes, names: list[str], unseen: list[bool]) -> None:
    slant: dict[str, Any] = {}
    if _crowded(names):
        slant = {"rotation": 45, "ha": "right"}
    axis.set_xticks(range(len(names)), names, **slant)
    for text, marked in zip(axis.get_xticklabels(), unseen, strict=True):
        if marked:
            text.set(fontweight="bold", color=UNSEEN_COLOUR)


def _columns(models: Collection[str], width: float) -> int:
    """Return the number of columns of the legend: as many as the figure is wide enough for."""
    longest = max(map(len, models))
    return min(4, max(1, int(width / (LETTER * longest + 0.5))))


def _legend(axis: Axes, models: list[str], marked: bool, columns: int) -> None:
    several = len(models) > 1
    if not several and not marked:
        return
    shapes = []
    for name, _, colour, _ in style.dressed(dict.fromkeys(models)):
        shapes.append(Patch(color=colour, alpha=0.45, label=name))
    if marked:
        look = {"color": UNSEEN_COLOUR, "alpha": 0.45}
        if several:
            look = {"color": GROUND, "alpha": 1.0}
        shapes.append(Patch(**look, label="not in training"))
    # Violins leave no corner that is surely free.
    axis.figure.legend(handles=shapes, loc="outside upper right", ncols=columns)
