"""All metrics of a test set that arrives in batches, equal to those of the whole set at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from einops import reduce
from jaxtyping import Float
from torch import Tensor

from vcnef.metrics import boundary, errors, similarity, spectral
from vcnef.metrics.table import Table, check_fields, reduction

TABLES: dict[str, Callable[[Tensor, Tensor, int], Table | dict[str, Table]]] = {
    "nrmse": errors.nrmse_table,
    "rmse": errors.rmse_table,
    "brmse": boundary.brmse_table,
    "frmse": spectral.frmse_tables,
    "conserved": errors.conserved_table,
    "max_error": errors.max_error_table,
    "relative_l2": errors.relative_l2_table,
    "correlation": similarity.correlation_table,
    "brmse_pdebench_3d": boundary.brmse_pdebench_3d_table,
}
STANDARD = tuple(name for name in TABLES if name != "brmse_pdebench_3d")
RAW = "nrmse_raw"
"""nRMSE without the floor, beside the one with it."""
FURTHER = {3: ("brmse_pdebench_3d",)}
"""Metrics that exist in one dimension only."""


def existing_in(ndim: int) -> tuple[str, ...]:
    """All metrics of fields with so many space axes."""
    return STANDARD + FURTHER.get(ndim, ())


@dataclass
class Tally:
    """Sum (or maximum) over samples for each time and channel, and how many samples each sum holds."""

    axes: str
    total: Tensor
    count: Tensor
    samples: int
    largest: bool

    @classmethod
    def of(cls, table: Table, largest: bool) -> Tally:
        """A tally of one batch; the first axis of a table is the sample."""
        total = table.values.amax(dim=0) if largest else table.values.where(table.defined, 0.0).sum(dim=0)
        axes = table.axes.removeprefix("b").strip()
        return cls(axes, total, table.defined.sum(dim=0), len(table.values), largest)

    def add(self, other: Tally) -> None:
        if self.total.shape != other.total.shape:
            raise ValueError(
                f"Earlier batches have shape {tuple(self.total.shape)} over {self.axes!r} and this one "
                f"{tuple(other.total.shape)}. Use one Scores per number of frames and channels."
            )
        there = self.total.device
        combine = torch.maximum if self.largest else torch.add
        self.total = combine(self.total, other.total.to(there))
        self.count = self.count + other.count.to(there)
        self.samples += other.samples

    def value(self, keep: str) -> Tensor:
        pattern = reduction(self.axes, keep)
        if self.largest:
            return reduce(self.total, pattern, "max")
        return reduce(self.total, pattern, "sum") / reduce(self.count.to(self.total), pattern, "sum")


class Scores:
    """Collects metrics batch by batch: `update` for each batch, then `compute`.

    Every sample has the same weight whatever the batch sizes; PDEBench averages batch averages instead, which gives
    the samples of a short last batch more. Only sums are kept, so memory does not grow with the test set.

    >>> scores = Scores(["nrmse"])
    >>> scores.update(torch.ones(2, 3, 8, 1), 2 * torch.ones(2, 3, 8, 1))
    >>> overall = scores.compute()["overall"]
    >>> overall["nrmse"]
    0.5
    """

    def __init__(self, names: Sequence[str] | None = None, *, initial_frames: int = 1) -> None:
        """Without `names`, all metrics that exist in the data's dimension (`STANDARD`, `FURTHER`)."""
        if unknown := sorted(set(names or ()) - set(TABLES)):
            raise ValueError(f"There are no metrics {unknown}. Choose from {sorted(TABLES)}.")
        self.names = None if names is None else tuple(names)
        self.initial_frames = initial_frames
        self.samples = 0
        self._tallies: dict[str, Tally] = {}

    def update(
        self,
        pred: Float[Tensor, "b t *x c"],
        target: Float[Tensor, "b t *x c"],
        initial: Float[Tensor, "b *x c"] | None = None,
    ) -> None:
        """Add a batch of any number of samples; frames and channels must stay the same, resolution need not.

        With the `initial` state of fields that hold predicted times only, "nrmse" is `floored_nrmse`, and "nrmse_raw"
        the one without a floor.
        """
        check_fields(pred, target, self.initial_frames)
        names = self.names or existing_in(pred.ndim - 3)
        batch: dict[str, Tally] = {}
        for name in names:
            found = TABLES[name](pred.detach(), target.detach(), self.initial_frames)
            tables = found if isinstance(found, dict) else {name: found}
            if name == "nrmse" and initial is not None:
                tables = {"nrmse": errors.floored_nrmse_table(pred.detach(), target.detach(), initial), RAW: found}
            batch |= {key: Tally.of(table, largest=name == "max_error") for key, table in tables.items()}
        self._add(batch, len(pred))

    def merge(self, other: Scores) -> None:
        """Add what another process has collected."""
        self._add(other._tallies, other.samples)

    def value(self, name: str, keep: str = "") -> Float[Tensor, "*kept"]:
        """One metric so far, over the axes in `keep`: e.g. `value("nrmse", keep="t c")`. `frmse` has three names."""
        if name not in self._tallies:
            raise ValueError(f"There is no metric {name!r} among {sorted(self._tallies)}. Call update first.")
        return self._tallies[name].value(keep)

    def compute(self) -> dict[str, Any]:
        """Plain numbers: `samples`, `overall`, `per_channel`, `over_time` and `left_out`, the last four by metric.

        `left_out` counts undefined values (see `nrmse`) where there are any; a warning repeats it.
        """
        if not self._tallies:
            raise ValueError("No batch has been scored yet. Call update(pred, target) first.")
        tallies = self._tallies
        expected = {name: tally.samples * tally.count.numel() for name, tally in tallies.items()}
        left_out = {name: n for name in tallies if (n := expected[name] - int(tallies[name].count.sum()))}
        for name, number in left_out.items():
            message = f"{name} leaves out {number} of {expected[name]} values, whose targets are zero or constant."
            warnings.warn(message, UserWarning, stacklevel=2)
        return {
            "samples": self.samples,
            "overall": {name: tally.value("").item() for name, tally in tallies.items()},
            "per_channel": {name: tally.value("c").tolist() for name, tally in tallies.items() if "c" in tally.axes},
            "over_time": {name: tally.value("t").tolist() for name, tally in tallies.items() if "t" in tally.axes},
            "left_out": left_out,
        }

    def _add(self, tallies: dict[str, Tally], samples: int) -> None:
        for name, tally in tallies.items():
            if name in self._tallies:
                self._tallies[name].add(tally)
            else:
                self._tallies[name] = replace(tally)
        self.samples += samples
