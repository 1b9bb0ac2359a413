"""How metrics, parameters and costs are written, on a screen and on a page alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten

TITLES = {
    "nrmse": "nRMSE", "nrmse_raw": "nRMSE without floor", "rmse": "RMSE", "brmse": "bRMSE",
    "frmse_low": "fRMSE low", "frmse_mid": "fRMSE mid",
    "frmse_high": "fRMSE high", "conserved": "conserved", "max_error": "max error", "relative_l2": "relative L2",
    "correlation": "correlation", "brmse_pdebench_3d": "bRMSE (channels summed)",
}  # fmt: skip
"""Of the metrics."""

BASELINES = {
    "persistence": "initial state, repeated", "level": "mean of the initial state",
    "mean": "mean of the training split", "constant": "mean of each channel in training",
}  # fmt: skip
"""Of answers without a model."""

DATA_ERROR = "nRMSE of the data, at most about"


def spell_error(value: int | float) -> str:
    """0.0123, or 1.23e-05."""
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e3 or value == 0 else f"{value:.2e}"


def spell_seconds(value: int | float) -> str:
    """12.3 ms, 2.5 s or 1,234 s; limits lie where three digits would round up to a thousand."""
    size, unit = (1e3 * value, "ms") if value < 0.9995 else (value, "s")
    return f"{size:.3g} {unit}" if size < 999.5 else f"{size:,.0f} {unit}"


def spell_memory(value: int | float) -> str:
    """1,234 MiB, of bytes."""
    return f"{value / 2**20:,.0f} MiB"


def spell_values(values: Mapping[str, Sequence[int | float]]) -> str:
    """nu=0.001, or nu=0.001…0.1."""
    return ", ".join(f"{name}={low:g}" + (f"…{high:g}" if high != low else "") for name, (low, high) in values.items())


def spell_bytes(size: int | float) -> str:
    """512 B, 12.3 kB, 4.2 MB or 1,234 GB."""
    units = iter(("B", "kB", "MB", "GB"))
    unit = next(units)
    while size >= 999.5 and unit != "GB":
        size, unit = size / 1000, next(units)
    return f"{size:.3g} {unit}" if size < 999.5 else f"{size:,.0f} {unit}"


def spell_speed_up(value: int | float, *, at_most: bool = False) -> str:
    """12.3×, or at most 12.3×."""
    return f"{'at most ' * at_most}{value:.3g}×"


def spell_solves(solves: int | float | None, *, never: bool, at_least: bool = False) -> str:
    """1,234, at least 1,234, or never."""
    if never:
        return "never"
    if solves is None:
        return "–"
    return f"{'at least ' * at_least}{solves:,.0f}"


def spell_value(value: object) -> str:
    """What was given, on one line and no longer than that: arrays are printed on several.

    >>> spell_value([1, 2])
    '[1, 2]'
    """
    return shorten(repr(value), 80, placeholder=" …")
