"""Figures for a page, as data URIs: curves as SVG, pictures as PNG."""

from __future__ import annotations

import warnings
from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from vcnef import plots
from vcnef.plots import style
from vcnef.report.numbers import finite
from vcnef.report.record import RunRecord

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
    """Of the picture on a screen; its own pixels are finer."""
    pixels = int.from_bytes(content[16:20], "big")
    return round(INCH * pixels / style.STYLE["figure.dpi"])


def svg_uri(figure: Figure) -> str:
    # The same figure gives the same bytes; what comes before the root would name an address.
    with matplotlib.rc_context({"svg.hashsalt": "vcnef"}):
        text = _render(figure, "svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return f"data:image/svg+xml;base64,{b64encode(text[text.index(b'<svg') :]).decode()}"


@style.styled
def training(runs: Sequence[RunRecord], over: str) -> Figure | None:
    """Loss and nRMSE on the valid split over "epoch" or "seconds", a curve for each run."""
    what, unit = AXES[over]
    panels = {"loss": "training loss", "valid_nrmse": "nRMSE on valid"}
    curves = {key: [_points(run, over, key, unit) for run in runs] for key in panels}
    drawn = [key for key in panels if any(curves[key])]
    if not drawn:
        return None
    figure, axes = style.panels(1, len(drawn), width=3.6, height=2.8)
    for axis, key in zip(axes[0], drawn, strict=True):
        named = {label(run.name): points for run, points in zip(runs, curves[key], strict=True)}
        for name, points, colour, marker in style.dressed(named):
            x, y = zip(*points, strict=True) if points else ((), ())
            axis.plot(x, y, color=colour, marker=marker, markevery=max(1, len(x) // 10), label=name)
        axis.set(xlabel=what, ylabel=panels[key], yscale="log")
        # Plain numbers; between powers of ten only where those alone would say too little.
        low, high = axis.get_ylim()
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}" if high < 10 * low else NullFormatter())
        axis.xaxis.set_major_locator(MaxNLocator("auto", integer=over == "epoch"))
    axes[0, 0].legend()
    return figure


def error_over_time(runs: Sequence[RunRecord]) -> list[Figure]:
    """A figure for all runs that were judged at the same times."""
    shared: dict[tuple[int | float, ...], dict[str, Any]] = {}
    for run in runs:
        curve = run.found("result", "scores", "over_time", "nrmse")
        if curve and any(map(finite, curve)):
            low, high = (run.found("result", "band", end) for end in ("low", "high"))
            drawn = plots.Band(low, curve, high) if low and high else curve
            shared.setdefault(tuple(run.found("result", "t")), {})[label(run.name)] = drawn
    return [plots.error_over_time(curves, t) for t, curves in shared.items()]


def super_resolution(runs: Sequence[RunRecord], axis: str) -> Figure | None:
    """nRMSE over points ("space") or numbers of times ("time")."""
    curves, trained = {}, set()
    for run in runs:
        known = {size(each, axis): each for each in run.results(axis)}
        errors = [each["scores"]["overall"].get("nrmse") for each in known.values()]
        if any(map(finite, errors)):
            curves[label(run.name)] = (list(known), errors)
            trained |= {points for points, each in known.items() if each.get("trained")}
    if not curves:
        return None
    what = {"space": "points along an axis", "time": "times"}[axis]
    return plots.super_resolution(curves, trained=trained.pop() if len(trained) == 1 else None, what=what)


def parameters(runs: Sequence[RunRecord], columns: Sequence[Mapping[str, Mapping[str, Any]]]) -> Figure | None:
    """Violins over the values of the parameters; each run with its groups by name."""
    errors = {
        label(run.name): {label(name): group["nrmse"] for name, group in groups.items() if group.get("nrmse")}
        for run, groups in zip(runs, columns, strict=True)
        if groups
    }
    shown = {name: groups for name, groups in errors.items() if groups}
    unseen = {label(name) for groups in columns for name, each in groups.items() if each.get("seen") is False}
    known = {name for groups in shown.values() for name in groups}
    return plots.violins(shown, unseen=unseen & known) if shown else None


def size(result: Mapping[str, Any], axis: str) -> int:
    return result["resolution"][0] if axis == "space" else result["frames"]


def label(name: str) -> str:
    """A name as matplotlib shows it: dollars would be mathematics, and a leading underscore hides a curve."""
    text = style.verbatim(name)
    return f" {text}" if text.startswith("_") else text


def _points(run: RunRecord, over: str, key: str, unit: float) -> list[tuple[int | float, int | float]]:
    pairs = [(record.get(over), record.get(key)) for record in run.history]
    return [(x / unit, y) for x, y in pairs if finite(x) and finite(y) and y > 0]


def _render(figure: Figure, kind: str, **options: Any) -> bytes:
    page = BytesIO()
    with warnings.catch_warnings():
        # Names in scripts that the font lacks are drawn as boxes; the page's text has them right.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(page, format=kind, **options)
    return page.getvalue()
