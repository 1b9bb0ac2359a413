"""Words and numbers on the screen, the same on a terminal and in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from torch import nn


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns; those of numbers to the right, the last one as long as it is."""
    columns = list(zip(titles, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [any(cell[:1].isdigit() for cell in column[1:]) for column in columns[:-1]] + [False]
    for row in (titles, *rows):
        cells = zip(row, widths, right, strict=True)
        typer.echo(
            "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in cells).rstrip()
        )


def count_weights(model: nn.Module) -> str:
    """Return how many numbers a model has learnt or will learn, with commas."""
    from vcnef.models.interface import number_of_weights

    return f"{number_of_weights(model):,}"
