"""What is known of a run: its model, how training went, and what an evaluation found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Picture:
    """A drawn figure."""

    title: str
    png: bytes


@dataclass(frozen=True)
class RunRecord:
    """The contents of a run folder, and what was drawn from its model. Whatever is missing the page says so."""

    name: str
    """Tells the runs of a page apart."""
    folder: str = ""
    """As it is written in commands; a model of others' has none."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """The description in `model/config.json`."""
    history: Sequence[Mapping[str, Any]] = ()
    """The records of `log.jsonl`."""
    metrics: Mapping[str, Any] | None = None
    """`metrics.json`, or `Evaluation.to_dict()`."""
    weights: int | None = None
    pictures: Sequence[Picture] = ()
    spectra: Sequence[Picture] = ()
    warnings: Sequence[str] = ()
    """Said while the model was judged."""

    def found(self, *keys: str) -> Any:
        """A value of the evaluation, or None."""
        return dig(self.metrics, *keys)

    def score(self, metric: str) -> int | float | None:
        return self.found("result", "scores", "overall", metric)

    def results(self, axis: str) -> Sequence[Mapping[str, Any]]:
        """Super-resolution in "space" or "time"; alone, the resolution of training is none."""
        several = self.found(axis) or ()
        return several if len(several) > 1 else ()

    @property
    def provenance(self) -> Mapping[str, Any]:
        return self.model.get("provenance") or {}

    @property
    def architecture(self) -> str:
        return dig(self.model, "model", "name") or self.found("model") or "unknown model"

    @property
    def problem(self) -> str:
        return dig(self.model, "problem", "name") or self.found("problem") or "unknown data"

    @property
    def minutes(self) -> int | float | None:
        seconds = self.history[-1].get("seconds") if self.history else None
        return None if seconds is None else seconds / 60


def dig(record: Any, *keys: str) -> Any:
    """`record[a][b]…`, or None where that leads nowhere."""
    for key in keys:
        record = record.get(key) if isinstance(record, Mapping) else None
    return record
