"""Words and numbers on the screen, the same on a terminal and in a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from torch import nn


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns; those of numbers to the right, the last one as long as it is."""
    columns = list(zip(titles, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    # How the cells of a column are aligned.
    aligned: list[Callable[[str, int], str]] = [str.ljust] * len(columns)
    for place, column in enumerate(columns[:-1]):
        if any(cell[:1].isdigit() for cell in column[1:]):
            aligned[place] = str.rjust
    for row in (titles, *rows):
        cells = [align(cell, width) for align, cell, width in zip(aligned, row, widths, strict=True)]
        typer.echo("  ".join(cells).rstrip())


def count_weights(model: nn.Module) -> str:
    """Return how many numbers a model has learnt or will learn, with commas."""
    from vcnef.models.interface import number_of_weights

    return f"{number_of_weights(model):,}"
