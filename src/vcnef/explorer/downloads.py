"""What a page shows, as files: arrays with their names, or a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from vcnef.explorer.workbench import Answer
from vcnef.grid import axes
from vcnef.problem import SPACE, Problem

MOST_ROWS = 500_000


def write_npz(problem: Problem, predicted: Answer, solved: Answer | None) -> bytes:
    """`t`, `x` (and `y`, `z`), each parameter, and `surrogate` and `reference` as [t, x(, y, z), channel]."""
    arrays: dict[str, Any] = {"t": predicted.question.t.numpy(), "channels": np.array(problem.channels)}
    arrays |= {name: line.numpy() for name, line in zip(SPACE, axes(predicted.question.grid), strict=False)}
    arrays |= {name: predicted.question.params[0, row].numpy() for row, name in enumerate(problem.parameters)}
    arrays["surrogate"] = predicted.u[0].numpy()
    if solved is not None:
        arrays["reference"] = solved.u[0].numpy()
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def write_csv(problem: Problem, predicted: Answer, solved: Answer | None) -> bytes:
    """Return a row for each time and point: t, x(, y, z), and a column for each channel of surrogate and reference."""
    lines = [predicted.question.t.numpy(), *(line.numpy() for line in axes(predicted.question.grid))]
    points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, len(lines))
    if len(points) > MOST_ROWS:
        raise ValueError(f"The table would have {len(points)} rows, more than {MOST_ROWS}. Download the .npz instead.")
    sources = {"surrogate": predicted}
    if solved is not None:
        sources["reference"] = solved
    columns = [each.u[0].numpy().reshape(len(points), -1) for each in sources.values()]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    titles = ["t", *SPACE[: problem.ndim]]
    for name in sources:
        titles += [f"{channel} {name}" for channel in problem.channels]
    table.writerow(titles)
    for row in np.concatenate([points, *columns], axis=1):
        table.writerow([f"{value:.7g}" for value in row])
    return text.getvalue().encode()


Writer = Callable[[Problem, Answer, Answer | None], bytes]
FORMATS: Mapping[str, tuple[str, Writer]] = MappingProxyType(
    {"npz": ("application/octet-stream", write_npz), "csv": ("text/csv; charset=utf-8", write_csv)}
)
