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
        """Return a value of the evaluation, or None."""
        return dig(self.metrics, *keys)

    def score(self, metric: str) -> int | float | None:
        return self.found("result", "scores", "overall", metric)

    def results(self, axis: str) -> Sequence[Mapping[str, Any]]:
        """Return super-resolution in "space" or "time"; alone, the resolution of training is none."""
        several = self.found(axis) or ()
        if len(several) < 2:
            return ()
        return several

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
        """Return how long the training took, or None where nothing says it."""
        if not self.history or self.history[-1].get("seconds") is None:
            return None
        return self.history[-1]["seconds"] / 60


def dig(record: Any, *keys: str) -> Any:
    """Return `record[a][b]…`, or None where that leads nowhere."""
    for key in keys:
        if not isinstance(record, Mapping):
            return None
        record = record.get(key)
    return record
