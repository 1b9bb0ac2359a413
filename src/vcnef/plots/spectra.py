"""Energy spectra: which scales a prediction has, and which it has lost or made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from vcnef.plots import style


def shell_energy(u: Any, ndim: int) -> np.ndarray:
    """Return the energy per shell of wave numbers, E(k) = Σ |û_κ|² over modes κ with ⌊|κ|⌋ = k, where û = FFT(u) / N.

    The last `ndim` axes of `u` are space and become one, k; the others stay. κ counts whole waves along each side of
    the box, so k does not depend on the resolution. Shells end at half of the smallest side: beyond it the grid holds
    only some of the directions. A field that is not periodic has a tail of its own, from the jump at the border.
    """
    array = style.as_numbers(u)
    if not 1 <= ndim <= array.ndim:
        raise ValueError(
            f"ndim is {ndim} for a field of shape {array.shape}; expected 1 to {array.ndim}. Give the number of space "
            "axes, which come last."
        )
    sides = array.shape[-ndim:]
    lines = [np.rint(np.fft.fftfreq(side, 1 / side)) for side in sides]
    waves = np.meshgrid(*lines, indexing="ij")
    # Exact: whole squares are summed before the root.
    shell = np.floor(np.sqrt(sum(wave**2 for wave in waves))).astype(int).ravel()
    modes = np.fft.fftn(array, axes=tuple(range(-ndim, 0)), norm="forward")
    energy = (np.abs(modes) ** 2).reshape(-1, shell.size)
    sums = np.stack([np.bincount(shell, weights=row) for row in energy])
    return sums[:, : min(sides) // 2 + 1].reshape(*array.shape[:-ndim], -1)


@style.styled
def spectra(
    truth: Any,
    predictions: Mapping[str, Any] | Any,
    t: Any,
    *,
    times: Sequence[int | float] | int | float | None = None,
    channel: str = "u",
    title: str = "",
) -> Figure:
    """Draw the mean energy per shell of wave numbers, ⟨E(k)⟩ over samples, of the truth and of each model.

    Fields of one channel are `[n t x]`, `[n t x y]` or `[n t x y z]`; a panel for each of `times`, by default the
    first, the middle and the last. `shell_energy` has the definition; k = 0, the mean, has no place on the axis.
    Trajectories that are not finite at a shown time are left out of a model's curve, and the legend counts them.
    """
    true = _trajectories(truth, "truth")
    named = predictions
    if not isinstance(predictions, Mapping):
        named = {"prediction": predictions}
    instants = style.as_array(t, "t", "t")
    style.check_axis(instants, "t", true.shape[1])
    frames = style.nearest_frames(instants, times)
    models = []
    for name, values, colour, marker in style.dressed(named):
        predicted = _trajectories(values, name)
        style.check_alike(**{"truth": true, f"prediction {name}": predicted})
        models.append((*_mean_energy(predicted[:, frames], name), colour, marker))
    expected, label = _mean_energy(true[:, frames], "truth")
    figure, axes = style.panels(1, len(frames), width=2.8, height=2.8, sharey=True)
    k = np.arange(1, expected.shape[-1])
    for i, (axis, frame) in enumerate(zip(axes[0], frames, strict=True)):
        # A shell between two without energy has no line, so it has a dot.
        look = {"color": "0.45", "linewidth": 2.4, "marker": "."}
        axis.loglog(k, _drawable(expected[i]), **look, label=label)
        for energy, name, colour, marker in models:
            drawn = {"color": colour, "marker": marker, "markevery": max(1, len(k) // 10)}
            axis.loglog(k, _drawable(energy[i]), **drawn, label=name)
        axis.set(title=f"t = {instants[frame]:.3g}", xlabel="wave number k")
        # Whole numbers; between powers of ten only where those alone would say too little.
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        if len(k) < 10:
            axis.xaxis.set_minor_formatter("{x:g}")
    axes[0, 0].set_ylabel(f"energy E(k) of {style.verbatim(channel)}")
    axes[0, 0].legend()
    if title:
        figure.suptitle(title)
    return figure


def _trajectories(values: Any, name: str) -> np.ndarray:
    """Return an array with samples, times, and one to three space axes."""
    axes = {3: "n t x", 4: "n t x y"}.get(np.ndim(values), "n t x y z")
    array = style.as_array(values, name, axes)
    if min(array.shape[2:]) < 2 or not len(array):
        raise ValueError(
            f"{name} has shape {array.shape}; expected at least one sample and two points along each space axis. "
            "Give fields with waves in them."
        )
    return array


def _mean_energy(u: np.ndarray, name: str) -> tuple[np.ndarray, str]:
    """Return the mean over the samples that are finite, `[t k]`, and the name with the number of the others."""
    finite = np.isfinite(u).all(axis=tuple(range(1, u.ndim)))
    if finite.all():
        return shell_energy(u, u.ndim - 2).mean(axis=0), name
    shells = min(u.shape[2:]) // 2 + 1
    mean = np.full((u.shape[1], shells), np.nan)
    if finite.any():
        mean = shell_energy(u[finite], u.ndim - 2).mean(axis=0)
    return mean, f"{name} ({(~finite).sum()} of {len(u)} not finite)"


def _drawable(energy: np.ndarray) -> np.ndarray:
    """Leave out the mean, and make a gap of a shell without energy."""
    return np.where(energy > 0, energy, np.nan)[1:]
