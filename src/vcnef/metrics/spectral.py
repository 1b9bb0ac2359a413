"""Energy spectra over shells of wave numbers, and the error in bands of them."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.metrics.table import Table, check_fields, complete, points, tabulate

BANDS = {"low": (0, 4), "mid": (4, 12), "high": (12, None)}
"""First shell of each band and the first beyond it, as in PDEBench."""


def energy_spectrum(u: Float[Tensor, "b t *x c"], *, one_sided: bool = False) -> Float[Tensor, "b t k c"]:
    """Energy per shell of wave numbers, E_k = Σ |û_κ|² over the modes κ with ⌊|κ|⌋ = k, where û = FFT(u) / N.

    κ counts whole waves along each side of the box, so k does not depend on the resolution. All modes are counted,
    up to the corners of the grid's spectrum: Σ_k E_k = ⟨u²⟩_x (Parseval). Every frame is used, the first one too.

    `one_sided` counts modes as PDEBench's fRMSE does: only those with no negative component, only shells below half
    of the smallest side (1D: up to and including half). It misses oblique waves such as κ = (1, −1).
    """
    check_fields(u, u, 0)
    return tabulate(_Shells(u, one_sided).energy, u, initial_frames=0)


def frmse(
    pred: Float[Tensor, "b t *x c"], target: Float[Tensor, "b t *x c"], *, initial_frames: int = 1, keep: str = ""
) -> dict[str, Float[Tensor, "*kept"]]:
    """RMSE in Fourier space, ⟨ ⟨√E_k(e)⟩_{k in band} ⟩_{b,t,c}, for the bands low [0, 4), mid [4, 12) and high [12, …).

    E_k(e) is the `one_sided` energy spectrum of the error. A band beyond the grid's resolution is left out.
    PDEBench takes the root after the mean over a batch, ⟨⟨ √⟨E_k(e)⟩_b ⟩_{k in band}⟩_{t,c}, which is at least as
    large and equal for batches of one: `energy_spectrum(pred - target, one_sided=True)[:, 1:].mean(0).sqrt()`,
    averaged over the band, for a test set in one batch. Both take the box to have sides of length 1. The paper
    does not use it.
    """
    tables = frmse_tables(pred, target, initial_frames)
    return {name.removeprefix("frmse_"): table.mean(keep) for name, table in tables.items()}


def frmse_tables(pred: Tensor, target: Tensor, initial_frames: int) -> dict[str, Table]:
    check_fields(pred, target, initial_frames)
    shells = _Shells(target, one_sided=True)
    amplitude = tabulate(lambda p, y: shells.energy(p - y).sqrt(), pred, target, initial_frames=initial_frames)
    bands = {name: amplitude[:, :, first:end] for name, (first, end) in BANDS.items()}
    return {f"frmse_{name}": complete("b t c", band.mean(dim=2)) for name, band in bands.items() if band.shape[2]}


class _Shells:
    """Which shell each mode of a real transform belongs to, and how many modes of the full transform it stands for."""

    def __init__(self, u: Float[Tensor, "b t *x c"], one_sided: bool) -> None:
        sides = u.shape[2:-1]
        lines = [torch.fft.fftfreq(n, 1 / n, dtype=torch.float64) for n in sides[:-1]]
        lines.append(torch.fft.rfftfreq(sides[-1], 1 / sides[-1], dtype=torch.float64))
        waves = torch.stack(torch.meshgrid(*(line.round() for line in lines), indexing="ij"))
        # Exact: whole squares are summed before the root.
        shell = waves.square().sum(dim=0).sqrt().floor().long()
        # Of each pair ±κ the transform of a real field stores one, told by its last component.
        weight = 2.0 - ((waves[-1] == 0) | (2 * waves[-1] == sides[-1])).double()
        self.count = int(shell.max()) + 1
        if one_sided:
            nyquist = 1 if len(sides) == 1 else 0
            ends = torch.tensor(sides) // 2 + nyquist
            self.count = int(ends.min())
            inside = ((waves >= 0) & (waves < ends.view(-1, *shell.ndim * [1]))).all(dim=0) & (shell < self.count)
            shell, weight = shell * inside, inside.double()
        self.shell, self.weight = shell.flatten(), weight.flatten()

    def energy(self, u: Float[Tensor, "b t *x c"]) -> Float[Tensor, "b t k c"]:
        modes = torch.fft.rfftn(u, dim=tuple(range(2, u.ndim - 1)), norm="forward")
        energy = points(modes.abs().square()) * self.weight.to(u.device)[:, None]
        sums = energy.new_zeros(*u.shape[:2], max(self.count, 1), u.shape[-1])
        return sums.index_add_(2, self.shell.to(u.device), energy)[:, :, : self.count]
