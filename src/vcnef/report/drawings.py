"""Figures for a page, as data URIs: curves as SVG, pictures as PNG."""

from __future__ import annotations

import warnings
from base64 import b64encode
from collections.abc import Hashable, Mapping, Sequence
from io import BytesIO
from itertools import chain
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from vcnef import plots
from vcnef.plots import style
from vcnef.report.page_numbers import finite
from vcnef.report.run_record import RunRecord

AXES = {"epoch": ("epoch", 1.0), "seconds": ("minutes of training", 60.0)}

INCH = 96
"""Of a screen's pixels in a figure's inch, as browsers have it for curves."""
PHONE = 600
"""Pixels; a picture that is wider is hard to read on a phone unless it scrolls."""


def png(figure: Figure) -> bytes:
    return _render(figure, "png")


def png_uri(content: bytes) -> str:
    return f"data:image/png;base64,{b64encode(content).decode()}"


def png_width(content: bytes) -> int:
    """Return the width of a picture on a screen; its own pixels are finer."""
    pixels = int.from_bytes(content[16:20], "big")
    return round(INCH * pixels / style.STYLE["figure.dpi"])


def svg_uri(figure: Figure) -> str:
    # The same figure gives the same bytes; what comes before the root would name an address.
    with matplotlib.rc_context({"svg.hashsalt": "vcnef"}):
        text = _render(figure, "svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return f"data:image/svg+xml;base64,{b64encode(text[text.index(b'<svg') :]).decode()}"


@style.styled
def training(runs: Sequence[RunRecord], over: str) -> Figure | None:
    """Draw loss and nRMSE on the valid split over "epoch" or "seconds", a curve for each run."""
    what, unit = AXES[over]
    panels = {}
    for key, words in (("loss", "training loss"), ("valid_nrmse", "nRMSE on valid")):
        curves = {label(run.name): _points(run, over, key, unit) for run in runs}
        if any(curves.values()):
            panels[words] = curves
    if not panels:
        return None
    figure, axes = style.panels(1, len(panels), width=3.6, height=2.8)
    for axis, (words, curves) in zip(axes[0], panels.items(), strict=True):
        for name, points, colour, marker in style.dressed(curves):
            x, y = np.reshape(points, (-1, 2)).T
            axis.plot(x, y, color=colour, marker=marker, markevery=max(1, len(x) // 10), label=name)
        axis.set(xlabel=what, ylabel=words, yscale="log")
        # Plain numbers; between powers of ten only where those alone would say too little.
        low, high = axis.get_ylim()
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        if high < 10 * low:
            axis.yaxis.set_minor_formatter("{x:g}")
        axis.xaxis.set_major_locator(MaxNLocator("auto", integer=over == "epoch"))
    axes[0, 0].legend()
    return figure


def error_over_time(runs: Sequence[RunRecord]) -> list[Figure]:
    """Draw a figure for all runs that were judged at the same times."""
    shared: dict[tuple[int | float, ...], dict[str, Any]] = {}
    for run in runs:
        curve = run.found("result", "scores", "over_time", "nrmse")
        if curve and any(map(finite, curve)):
            low, high = run.found("result", "band", "low"), run.found("result", "band", "high")
            drawn = curve
            if low and high:
                drawn = plots.Band(low, curve, high)
            shared.setdefault(tuple(run.found("result", "t")), {})[label(run.name)] = drawn
    return [plots.error_over_time(curves, t) for t, curves in shared.items()]


def super_resolution(runs: Sequence[RunRecord], axis: str) -> Figure | None:
    """Draw nRMSE over points ("space") or numbers of times ("time")."""
    curves, trained = {}, set()
    for run in runs:
        errors: dict[int, Any] = {}
        trained_here = set()
        for result in run.results(axis):
            errors[size(result, axis)] = result["scores"]["overall"].get("nrmse")
            if result.get("trained"):
                trained_here.add(size(result, axis))
        if any(map(finite, errors.values())):
            curves[label(run.name)] = (list(errors), list(errors.values()))
            trained |= trained_here
    if not curves:
        return None
    marked = None
    if len(trained) == 1:
        marked = trained.pop()
    what = {"space": "points along an axis", "time": "times"}[axis]
    return plots.super_resolution(curves, trained=marked, what=what)


def parameters(runs: Sequence[RunRecord], columns: Sequence[Mapping[str, Mapping[str, Any]]]) -> Figure | None:
    """Draw violins over the values of the parameters, from each run's groups by name."""
    errors: dict[str, dict[Hashable, Any]] = {}
    unseen = set()
    for run, groups in zip(runs, columns, strict=True):
        for name, group in groups.items():
            if group.get("nrmse"):
                errors.setdefault(label(run.name), {})[label(name)] = group["nrmse"]
            if group.get("seen") is False:
                unseen.add(label(name))
    if not errors:
        return None
    return plots.violins(errors, unseen=unseen.intersection(chain.from_iterable(errors.values())))


def size(result: Mapping[str, Any], axis: str) -> int:
    """Return the number of points along an axis, or of times, that a result of super-resolution is about."""
    if axis == "space":
        return result["resolution"][0]
    return result["frames"]


def label(name: str) -> str:
    """Return a name as matplotlib shows it: dollars would be mathematics, and a leading underscore hides a curve."""
    text = style.verbatim(name)
    if text.startswith("_"):
        text = f" {text}"
    return text


def _points(run: RunRecord, over: str, key: str, unit: float) -> list[tuple[int | float, int | float]]:
    """Return the points of a curve that a log axis can show."""
    points = []
    for record in run.history:
        x, y = record.get(over), record.get(key)
        if finite(x) and finite(y) and y > 0:
            points.append((x / unit, y))
    return points


def _render(figure: Figure, kind: str, **options: Any) -> bytes:
    page = BytesIO()
    with warnings.catch_warnings():
        # Names in scripts that the font lacks are drawn as boxes; the page's text has them right.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(page, format=kind, **options)
    return page.getvalue()
