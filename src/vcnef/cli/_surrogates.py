"""The trained model that a verb is about: its folder, its device, and what it says of itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from vcnef.surrogate import Surrogate


def load_surrogate(run: Path, device: str | None) -> Surrogate:
    """Return the surrogate of a run, model folder or packaged name, on a GPU if there is one and no other is named."""
    from vcnef.device import choose_device
    from vcnef.packaged import locate
    from vcnef.surrogate import Surrogate

    return Surrogate.load(locate(run)).to(choose_device(device))


def run_folder(run: Path) -> Path:
    """Return the folder of the run, also when its model folder was given."""
    return run.parent if run.name == "model" and not (run / "model").is_dir() else run


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Print warnings raised inside on stderr at once, before what follows them."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *others: typer.echo(f"Warning: {message}", err=True)
        yield


@contextmanager
def plain_warnings() -> Iterator[list[str]]:
    """Print warnings raised inside on stderr afterwards, each once; the list has them too."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield said
    said += dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, UserWarning))
    for message in said:
        typer.echo(f"Warning: {message}", err=True)
