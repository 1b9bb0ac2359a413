"""`vcnef models`: what can be built."""

from __future__ import annotations

import typer


def models() -> None:
    """List the models, with the number of weights that their defaults have for one field in 1D, 2D and 3D.

    Below them stand the trained ones that come with the library, which every verb takes in place of a run folder.
    """
    from vcnef.cli._tables import print_table
    from vcnef.models.registry import list_models
    from vcnef.packaged import list_packaged

    rows = [(name, *(_count(name, ndim) for ndim in (1, 2, 3)), line) for name, line in list_models().items()]
    print_table(("model", "1D", "2D", "3D", ""), rows)
    if packaged := list_packaged():
        typer.echo("")
        print_table(("trained", ""), list(packaged.items()))


def _count(name: str, ndim: int) -> str:
    """Weights of the default model, which is described but never allocated."""
    import torch

    from vcnef.cli._tables import count_weights
    from vcnef.models.registry import build

    try:
        with torch.device("meta"):
            return count_weights(build(name, ndim=ndim, channels=1))
    except ValueError:  # the model is not for this dimension
        return "-"
