"""Fonts, sizes and colours that all figures share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which colour-blind readers tell apart; yellow is left out, being too pale for a line."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Lines differ by marker too, for print in grey."""
FIELD_MAP = "viridis"
ERROR_MAP = "PuOr_r"
"""Diverging around zero."""
SIZE_MAP = "magma"
"""Errors without a sign."""

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "figure.dpi": 160.0,
}
styled = matplotlib.rc_context(STYLE)
"""Decorates a function that draws; matplotlib's own settings are as before when it returns."""


def panels(
    rows: int, columns: int, *, width: float = 3.0, height: float = 2.6, sharey: bool = False
) -> tuple[Figure, np.ndarray]:
    """Make a figure with rows × columns axes of the given inches each. Shared, all have the limits of all curves."""
    figure = Figure(figsize=(width * columns + 0.6, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharey=sharey)


def bare(axis: Axes) -> None:
    """Show the frame on all sides, as a picture has it."""
    for spine in axis.spines.values():
        spine.set_visible(True)


def from_zero(axis: Axes) -> None:
    """Start the axis at zero, since errors are seen against none at all, with room above the largest."""
    axis.margins(y=0.0)
    axis.set_ylim(0.0, 1.08 * axis.get_ylim()[1])


def verbatim(name: str) -> str:
    """Escape a name of the data, in which matplotlib would take dollars for mathematics."""
    return name.replace("$", r"\$")


def field_scale(*arrays: np.ndarray) -> dict[str, float]:
    """Return one colour scale for several fields, from what is finite in them."""
    values = np.concatenate(list(map(np.ravel, arrays)))
    finite = values[np.isfinite(values)]
    low, high = 0.0, 1.0
    if finite.size:
        low, high = float(finite.min()), float(finite.max())
    if high <= low:
        high = low + 1e-12 * max(1.0, abs(low))
    return {"vmin": low, "vmax": high}


def error_scale(*arrays: np.ndarray) -> dict[str, float]:
    """Return a colour scale that is symmetric around zero."""
    scale = field_scale(*arrays)
    size = max(abs(scale["vmin"]), abs(scale["vmax"])) or 1e-12
    return {"vmin": -size, "vmax": size}


def as_numbers(values: Any) -> np.ndarray:
    """Return a NumPy array in double precision."""
    if hasattr(values, "detach"):
        # NumPy itself knows neither gradients nor bfloat16.
        values = values.detach().cpu().double()
    return np.asarray(values, dtype=np.float64)


def as_array(values: Any, name: str, axes: str) -> np.ndarray:
    """Return a NumPy array with as many axes as `axes` names, or raise an error that says so."""
    array = as_numbers(values)
    if array.ndim != len(axes.split()):
        raise ValueError(
            f"{name} has shape {array.shape}; expected the axes [{axes}]. Choose one sample and one channel."
        )
    return array


def check_alike(**arrays: np.ndarray) -> None:
    """Raise an error unless fields have one shape, and something in them."""
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) > 1:
        told = " and ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"Shapes differ: {told}; expected the same. Compare fields at the same points and times.")
    for name, shape in shapes.items():
        if 0 in shape:
            raise ValueError(f"{name} has shape {shape}; expected at least one time and point. Give fields with some.")


def check_axis(values: np.ndarray, name: str, length: int) -> None:
    if len(values) != length:
        raise ValueError(f"{name} has {len(values)} values; expected {length}, one for each entry of the field.")


def dressed(curves: Mapping[str, Any]) -> Iterator[tuple[str, Any, str, str]]:
    """Yield each curve with a colour and a marker of its own."""
    if not curves:
        raise ValueError("There is no curve to draw: got an empty mapping, expected name -> values. Give at least one.")
    for index, (name, values) in enumerate(curves.items()):
        yield name, values, COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]


def compared(truth: np.ndarray, prediction: np.ndarray, channel: str) -> tuple[tuple[str, np.ndarray, str, dict], ...]:
    """Return truth, prediction and error: the name, the values, the label of their colours, and the colours."""
    # A prediction that blows up must not wash out the truth, so the truth alone sets the colours, unless it has one.
    at_rest = (truth == truth.ravel()[:1]).all()
    scale = field_scale(truth)
    if at_rest:
        scale = field_scale(truth, prediction)
    field = {"cmap": FIELD_MAP, **scale}
    error, label = prediction - truth, verbatim(channel)
    return (
        ("Truth", truth, label, field),
        ("Prediction", prediction, label, field),
        ("Error", error, f"error of {label}", {"cmap": ERROR_MAP, **error_scale(error)}),
    )


def nearest_frames(instants: np.ndarray, times: Sequence[int | float] | int | float | None) -> list[int]:
    """Return the numbers of the frames nearest to `times`, by default the first, the middle and the last."""
    if times is None:
        return sorted({0, len(instants) // 2, len(instants) - 1})
    wanted = np.atleast_1d(times).tolist()
    low, high = float(instants.min()), float(instants.max())
    slack = 1e-6 * (high - low or 1.0)
    if not wanted or min(wanted) < low - slack or max(wanted) > high + slack:
        raise ValueError(f"times are {wanted}; expected some between {low:g} and {high:g}. Choose from t.")
    return [int(np.abs(instants - time).argmin()) for time in wanted]


def edges(centres: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the borders of the cells around points, for pictures with correct coordinates."""
    points = np.asarray(centres, dtype=np.float64)
    if len(points) == 1:
        return np.array([points[0] - 0.5, points[0] + 0.5])
    steps = np.diff(points)
    if not ((steps > 0).all() or (steps < 0).all()):
        raise ValueError(
            "Times or points go to and fro, so their cells would lie upon each other; expected an order. Sort them."
        )
    middle = (points[1:] + points[:-1]) / 2
    return np.concatenate([[2 * points[0] - middle[0]], middle, [2 * points[-1] - middle[-1]]])
